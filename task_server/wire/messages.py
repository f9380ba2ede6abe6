"""The messages between client, controller and workers: requests, replies, problems."""

import re
from collections.abc import Iterable
from functools import cached_property, lru_cache, partial
from importlib.metadata import version
from operator import is_, not_
from typing import Annotated, Literal, NamedTuple
from urllib.parse import quote, unquote

from pydantic import Field, JsonValue, model_validator

from proctor.config.wording import NAME
from proctor.session.kept_replies import KeptReply
from proctor.types import Action, Finish, FinishReason, Observation, ParsedAction, TaskProtocol, Value

SessionId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
"""128 random bits in hex, chosen by the client, so that a start can be repeated."""
VERSION = version("proctor")
"""The version that every part reports."""
UNKNOWN_VERSION = "unknown"
"""Stands for a part that is older than the version field."""
BASE_URL = r"^https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?$"
MAX_REQUEST_BYTES = 8 << 20
MAX_LARGE_BYTES = 64 << 20
"""For a summary request, with the finishes of a whole run, and for a start, with the trial's `KeptReply`s."""
STARTING = "starting"
"""Why no session of a task can start that has neither started nor failed to yet."""
SHORTEST_BLOCK_S, LONGEST_BLOCK_S = 1.0, 86_400.0
SESSION_LEASE_S = 60.0
"""A session is ended after this long without a client's request for it."""
STEP_WAIT_S = 20.0
"""A step that takes longer is answered `in_work`; the client repeats the request, which renews the lease."""
LONG_POLL_S = 60.0
HEARTBEAT_S = 2.0
SETTLE_S = 2 * HEARTBEAT_S
"""A controller that has just started waits this long for heartbeats: one may be late by a whole interval."""
WORKER_LEASE_S = 10.0
ExpectedDigest = Annotated[str | None, Field(exclude_if=partial(is_, None))]
"""The `Environment.digest` that a run began with; None expects none, and is omitted: older servers don't know it."""
KeptReplies = Annotated[tuple[KeptReply, ...], Field(exclude_if=not_)]
"""New replies of environment models (judges, hosts, users) that the client does not have, for the trial's journal.

Sent only if the request has the number of replies that the client has. Omitted if empty: older clients don't know it.
"""


class Sender(NamedTuple):
    """Who sends a request, by its headers; empty where it does not say."""

    run: str = ""
    """The run's random id, 32 hex digits."""
    name: str = ""
    """The run's name, for people."""
    user: str = ""
    client: str = ""
    """The client's process, 32 hex digits that it drew at random."""
    yields: bool = False
    """Whether another client may take its sessions at once: it ends, has not begun, or can't reach its store."""
    succeeds: str = ""
    """The client whose place it takes, a process that has certainly ended."""

    @classmethod
    def of(cls, headers: Iterable[tuple[bytes, bytes]]) -> "Sender":
        """The sender by the headers of a request; what is no valid value counts as not said."""
        return _sender(tuple([header for header in headers if header[0][:8] == b"proctor-"]))

    def headers(self) -> dict[str, str]:
        """The headers that say it."""
        said = {"proctor-run": self.run, "proctor-run-name": self.name, "proctor-user": quote(self.user)}
        said |= {"proctor-client": self.client, "proctor-yields": "true" if self.yields else ""}
        said |= {"proctor-succeeds": self.succeeds}
        return {name: value for name, value in said.items() if value}


@lru_cache(maxsize=256)
def _sender(headers: tuple[tuple[bytes, bytes], ...]) -> Sender:
    given = {name: value.decode("latin-1") for name, value in headers}
    ids = (given.get(name, "") for name in (b"proctor-run", b"proctor-client", b"proctor-succeeds"))
    run, client, succeeds = (text if re.fullmatch("[0-9a-f]{32}", text) else "" for text in ids)
    name, user = given.get(b"proctor-run-name", ""), unquote(given.get(b"proctor-user", ""))[:64]
    return Sender(
        run,
        name if re.fullmatch(NAME, name) else "",
        user if user.isprintable() else "",
        client,
        given.get(b"proctor-yields") == "true",
        succeeds,
    )


NOBODY = Sender()


class StartSession(Value):
    """`POST /sessions`: place and start a session. Repeatable: the same id gives the session's current step."""

    session: SessionId
    """128 random bits in hex, chosen by the client."""
    task: str
    sample: str
    seed: int = 0
    lease_s: float = Field(default=SESSION_LEASE_S, gt=0, le=3600)
    """The session ends after this long without a request for it."""
    digest: ExpectedDigest = None
    """With it, only a worker whose task has this digest takes the session."""
    replies: Annotated[tuple[KeptReply, ...] | None, Field(exclude_if=partial(is_, None))] = None
    """The replies of environment models in the trial's earlier sessions; None from a client that keeps none."""
    blocks_s: Annotated[float | None, Field(ge=SHORTEST_BLOCK_S, le=LONGEST_BLOCK_S, exclude_if=partial(is_, None))] = (
        None
    )
    """The environment is interrupted where it blocks its worker's event loop for longer: a fault of this session."""


class Act(Value):
    """The agent answers the observation."""

    kind: Literal["action"] = "action"
    action: Action
    reading: ParsedAction | None = Field(default=None, exclude_if=partial(is_, None))
    """In journals alone: how a world from a user's file reads the action, as whoever reads the run doesn't load it."""


class Stop(Value):
    """The agent stops at a limit of its own, or was refused; the environment scores what it reached."""

    kind: Literal["stop"] = "stop"
    reason: Literal[FinishReason.CONTEXT_LIMIT, FinishReason.TURN_LIMIT, FinishReason.REFUSED]
    """A worker is told `context_limit` for `refused`: worlds count the two alike, and earlier versions know one."""
    why: Annotated[str, Field(exclude_if=partial(is_, ""))] = ""
    """What the endpoint said of a refusal; for the journal."""
    text: Annotated[str, Field(exclude_if=partial(is_, ""))] = ""
    """The model's last text before a refusal; for the journal."""


class TurnRequest(Value):
    """`POST /sessions/{id}/turns`: answer turn `turn`. Repeatable; a skipped turn or a different answer is a 409."""

    turn: int = Field(ge=1)
    reply: Annotated[Act | Stop, Field(discriminator="kind")]
    replies: Annotated[int | None, Field(ge=0, exclude_if=partial(is_, None))] = None
    """How many `KeptReply` of the trial the client has; None from a client that keeps none."""


class Observed(Value):
    """The session waits for the agent's answer to turn `turn`, counted from 1."""

    kind: Literal["observation"] = "observation"
    turn: int = Field(ge=1)
    observation: Observation
    tools_as_before: Annotated[bool, Field(exclude_if=not_)] = False
    """The tools are those that this conversation was last sent, and left out of the observation."""


class Finished(Value):
    """The session is over and its slot is free."""

    kind: Literal["finish"] = "finish"
    finish: Finish


Step = Annotated[Observed | Finished, Field(discriminator="kind")]


class Started(Value):
    """Answer to `POST /sessions`."""

    worker: str
    url: str
    """Base URL of the worker that holds the session; the client sends turns to it directly if it can reach it."""
    step: Step
    replies: KeptReplies = ()


class TurnResponse(Value):
    """Answer to `POST /sessions/{id}/turns`."""

    step: Step
    replies: KeptReplies = ()


class RenewLeases(Value):
    """`POST /leases`: renew the leases of many sessions, so that they outlast long model calls."""

    sessions: tuple[SessionId, ...] = Field(max_length=10_000)


class LeasesRenewed(Value):
    """Answer to `POST /leases`: the sessions that no longer exist."""

    lost: tuple[SessionId, ...]
    blocked_s: Annotated[float, Field(exclude_if=not_)] = 0.0
    """How long the worker's event loop was blocked since the first of the other sessions started. Omitted if 0, and for
    a sender that names no client: 0.2.0 knows neither."""
    others: Annotated[bool, Field(exclude_if=not_)] = False
    """Whether another client of the sender's run was heard within 10 s. Omitted if not, and likewise."""


class TaskCapacity(Value):
    """A task's slots now, over all workers that hold it."""

    name: str = Field(pattern=NAME)
    environment: str
    total: int = Field(ge=0)
    free: int = Field(ge=0)
    waiting: str | None = None
    """Why no session can start: starting, draining, or what is broken; None if sessions can start."""
    digest: str | None = None
    """`Environment.digest`, once the data have been read. Workers that differ in it never serve the same run."""


class TasksQuery(Value):
    """Query of `GET /tasks`."""

    after: str | None = None
    """The version that the client has already."""
    wait_s: float = Field(default=0.0, ge=0.0, le=LONG_POLL_S)
    """With `after`, the answer comes when the list is no longer that version, or after so many seconds."""
    client: str | None = Field(default=None, pattern=r"^[0-9a-f]{32}$")
    """Identifies the run that asks, the same for all its clients: 128 bits in hex."""
    wants: str = Field(
        default="",
        max_length=8192,
        pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,63}:[0-9]{1,6}(,[A-Za-z0-9][A-Za-z0-9._-]{0,63}:[0-9]{1,6})*)?$",
        description="How many sessions of each task the client could hold if there were slots, those under way among "
        "them: `task:sessions,task:sessions`. Replaces what the client wanted before; forgotten after 30 s of silence.",
    )

    def wanted(self) -> dict[str, int]:
        """`wants` by task."""
        pairs = (each.rpartition(":") for each in self.wants.split(",") if each)
        return {task: int(sessions) for task, _, sessions in pairs}


class TaskList(Value):
    """Answer to `GET /tasks`. With `?after=VERSION&wait_s=S` it comes when the list changes, or after S seconds."""

    version: str
    tasks: tuple[TaskCapacity, ...]
    """Sorted by name. If a task's workers differ in digest, one entry for each digest comes before the task's own."""

    @cached_property
    def body(self) -> bytes:
        """The list as JSON, encoded once for all clients that get it."""
        return self.model_dump_json().encode()

    def find(self, task: str, digest: str | None) -> TaskCapacity | None:
        """The capacity of a task for a run with this digest; the task's own entry if no worker has the digest."""
        capacities = [capacity for capacity in self.tasks if capacity.name == task]
        agreeing = [capacity for capacity in capacities if capacity.digest == digest]
        return next(iter(agreeing + capacities[-1:]), None)


class SamplesQuery(Value):
    """Query of `GET /tasks/{task}/samples`."""

    digest: str | None = None
    """The answer is that of a worker with this digest, where there is one."""
    clusters: bool = False
    """Whether the answer may have clusters: older clients don't know them."""
    categories: bool = False
    """Whether it may have categories, likewise."""


Cluster = Annotated[str, Field(max_length=255)]
Category = Annotated[str, Field(max_length=255)]


class SampleList(Value):
    """Answer to `GET /tasks/{task}/samples`."""

    task: str
    environment: str
    samples: tuple[str, ...]
    digest: str
    """Changes when data, prompts or configuration change: `Environment.digest`."""
    comparable: str | None = None
    """Why scores can't be compared with published ones, else None: `Environment.not_comparable_because`."""
    published_sampling: dict[str, JsonValue] = Field(default_factory=dict, exclude_if=not_)
    """The sampling parameters of the published scores: `Environment.published_sampling`; omitted if empty."""
    published_rounds: int | None = Field(default=None, exclude_if=partial(is_, None))
    """The most turns of a session, where scores can be compared with published ones; omitted if unknown."""
    trusted_agents_only: bool = False
    protocol: TaskProtocol = Field(default="text", exclude_if=lambda protocol: protocol == "text")
    """How the task takes answers; omitted if by text: older clients don't know it."""
    clusters: tuple[Cluster, ...] = Field(default=(), exclude_if=not_)
    """The `Environment.cluster` of each sample, if asked for. Empty, and omitted: each sample is its own cluster."""
    categories: tuple[Category, ...] = Field(default=(), exclude_if=not_)
    """The `Environment.category` of each sample, if asked for. Empty, and omitted: all are of one category."""
    source: dict[str, str] = Field(default_factory=dict, exclude_if=not_, repr=False)
    """Of a world from a user's file: `proctor.own_files.source.OwnSource.files`, by which a change is named."""
    scales: dict[str, tuple[float, float]] = Field(default_factory=dict, exclude_if=not_)
    """Of a world from a user's file: `Environment.scales`, since reports don't load it."""

    @model_validator(mode="after")
    def _one_for_each_sample(self) -> "SampleList":
        for name, values in (("clusters", self.clusters), ("categories", self.categories)):
            if values and len(values) != len(self.samples):
                raise ValueError(f"{name}: must be as many as samples, or none")
        return self

    def cluster_of(self) -> dict[str, str]:
        """sample -> its cluster"""
        return dict(zip(self.samples, self.clusters or self.samples, strict=True))

    def category_of(self) -> dict[str, str]:
        """sample -> its category; all empty where there are none"""
        return dict(zip(self.samples, self.categories or [""] * len(self.samples), strict=True))


class SummarizeRequest(Value):
    """`POST /tasks/{task}/summary`; the answer is a `Summary` with the standard error of its primary metric."""

    finishes: tuple[Finish, ...]
    clusters: tuple[int, ...] = ()
    """The cluster number of each finish; epochs of one sample share one. Empty: each finish is a cluster of its own."""
    samples: tuple[int, ...] = Field(default=(), exclude_if=not_)
    """The sample number of each finish. Empty: each finish is of a sample of its own; older workers know no others."""
    digest: ExpectedDigest = None

    @model_validator(mode="after")
    def _a_number_each(self) -> "SummarizeRequest":
        for name, numbers in (("clusters", self.clusters), ("samples", self.samples)):
            if numbers and len(numbers) != len(self.finishes):
                raise ValueError(f"{name}: must be as many as finishes, or none")
        return self


def cluster_numbers(names: Iterable[str]) -> list[int]:
    """`SummarizeRequest.clusters` from the name of each finish's cluster."""
    numbers: dict[str, int] = {}
    return [numbers.setdefault(name, len(numbers)) for name in names]


class Health(Value):
    """Answer to `GET /healthz`: which server this is, so that a client can check that it reached the right one."""

    role: Literal["worker", "controller"]
    url: str
    version: str = UNKNOWN_VERSION
    time: float | None = None
    """The server's wall clock, in Unix seconds. Nothing of ours decides by it."""


ProblemType = Literal[
    "bad_request",
    "unauthorized",
    "forbidden",
    "unknown_task",
    "unknown_sample",
    "unknown_session",
    "turn_conflict",
    "session_held",
    "session_taken",
    "digest_differs",
    "in_work",
    "no_capacity",
    "not_ready",
    "worker_lost",
    "too_large",
    "internal",
]


class Problem(Value):
    """The body of every error reply (RFC 9457).

    `type` maps to one exception class; `retryable` is whether a retry can help.
    """

    type: ProblemType
    title: str
    detail: str = ""
    retryable: bool = False
    retry_after_s: float | None = None
    replies: KeptReplies = ()
    """Only with `in_work`, which is answered at once if there are any."""
