"""What travels between client, controller and workers: requests, replies, errors."""

from collections.abc import Iterable
from importlib.metadata import version
from typing import Annotated, Literal

from pydantic import Field, JsonValue, model_validator

from proctor.config.task import NAME
from proctor.llm.kept_replies import KeptReply
from proctor.types import Action, Finish, FinishReason, Observation, Value

SessionId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
"""128 random bits in hex, chosen by the client, so that a start can be repeated."""

VERSION = version("proctor")
"""What every part says it is."""
UNKNOWN_VERSION = "unknown"
"""Of a part older than the field."""
BASE_URL = r"^https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?$"
MAX_REQUEST_BYTES = 8 << 20
MAX_LARGE_BYTES = 64 << 20
"""Of finishes of a whole run, and of a start with all that models on the environment's side said in its trial."""
SESSION_LEASE_S = 60.0
"""A session that no client has asked for or renewed for this long is ended."""
STEP_WAIT_S = 20.0
"""A step that takes longer is answered `in_work`; the client asks again and so shows that it still waits."""
LONG_POLL_S = 60.0
HEARTBEAT_S = 2.0
SETTLE_S = 2 * HEARTBEAT_S
"""A controller that has just started waits this long for its workers' heartbeats; one may be late by a whole one."""
WORKER_LEASE_S = 10.0


ExpectedDigest = Annotated[str | None, Field(exclude_if=lambda digest: digest is None)]
"""The `Environment.digest` that a run began with; None expects none, and is left out: older servers don't know it."""


KeptReplies = Annotated[tuple[KeptReply, ...], Field(exclude_if=lambda replies: not replies)]
"""What models on the environment's side said since the client last heard of it: for the trial's journal.

Only where the client says how many it has; left out where there are none: older clients don't know it.
"""


class StartSession(Value):
    """`POST /sessions`: place and start a session. Repeatable: the same id gives the step the session stands at."""

    session: SessionId
    task: str
    sample: str
    seed: int = 0
    lease_s: float = Field(default=SESSION_LEASE_S, gt=0, le=3600)
    digest: ExpectedDigest = None
    replies: Annotated[tuple[KeptReply, ...] | None, Field(exclude_if=lambda replies: replies is None)] = None
    """All that models on the environment's side said in the trial's earlier sessions; None from who keeps none."""


class Act(Value):
    """The agent answers the observation."""

    kind: Literal["action"] = "action"
    action: Action


class Stop(Value):
    """The agent can't go on, by its own doing; the environment scores what was reached."""

    kind: Literal["stop"] = "stop"
    reason: Literal[FinishReason.CONTEXT_LIMIT, FinishReason.TURN_LIMIT]


class TurnRequest(Value):
    """`POST /sessions/{id}/turns`: answer turn `turn`. Repeatable; a gap or another answer is a 409."""

    turn: int = Field(ge=1)
    reply: Annotated[Act | Stop, Field(discriminator="kind")]
    replies: Annotated[int | None, Field(ge=0, exclude_if=lambda count: count is None)] = None
    """How many `KeptReply` of the trial the client has; None from who keeps none."""


class Observed(Value):
    """The session waits for the agent's answer to turn `turn`, counted from 1."""

    kind: Literal["observation"] = "observation"
    turn: int = Field(ge=1)
    observation: Observation


class Finished(Value):
    """The session is over and its slot is free."""

    kind: Literal["finish"] = "finish"
    finish: Finish


Step = Annotated[Observed | Finished, Field(discriminator="kind")]


class Started(Value):
    """Answer to `POST /sessions`."""

    worker: str
    url: str
    """Base URL of the worker that holds the session; turns go straight there where it can be reached."""
    step: Step
    replies: KeptReplies = ()


class TurnResponse(Value):
    """Answer to `POST /sessions/{id}/turns`."""

    step: Step
    replies: KeptReplies = ()


class RenewLeases(Value):
    """`POST /leases`: keep sessions alive during long model calls, many at once."""

    sessions: tuple[SessionId, ...] = Field(max_length=10_000)


class LeasesRenewed(Value):
    """Answer to `POST /leases`: those of the sessions that no longer live here."""

    lost: tuple[SessionId, ...]


class TaskCapacity(Value):
    """What a task can take now, over all workers that hold it."""

    name: str = Field(pattern=NAME)
    environment: str
    total: int = Field(ge=0)
    free: int = Field(ge=0)
    waiting: str | None = None
    """Why nothing can start, where nothing can: starting, draining, or what is broken."""
    digest: str | None = None
    """`Environment.digest`, once the data are read; no run is served by workers that differ in it."""


class TasksQuery(Value):
    """Query of `GET /tasks`."""

    after: str | None = None
    """The version the client knows already."""
    wait_s: float = Field(default=0.0, ge=0.0, le=LONG_POLL_S)
    client: str | None = Field(default=None, pattern=r"^[0-9a-f]{32}$")
    """Who asks: 128 random bits in hex."""
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
    """Answer to `GET /tasks`. With `?after=VERSION&wait_s=S` it comes when the list changed, or after S seconds."""

    version: str
    tasks: tuple[TaskCapacity, ...]
    """Sorted by name. Where a task's workers differ in digest there is one for each digest before the task's own."""

    def find(self, task: str, digest: str | None) -> TaskCapacity | None:
        """What a task can take of a run that expects this digest; the task's own standing where no worker has it."""
        standings = [standing for standing in self.tasks if standing.name == task]
        agreeing = [standing for standing in standings if standing.digest == digest]
        return next(iter(agreeing + standings[-1:]), None)


class SamplesQuery(Value):
    """Query of `GET /tasks/{task}/samples`."""

    digest: str | None = None
    """Ask a worker with this digest, where there is one."""


class SampleList(Value):
    """Answer to `GET /tasks/{task}/samples`."""

    task: str
    environment: str
    samples: tuple[str, ...]
    digest: str
    """Changes when data, prompts or configuration change: `Environment.digest`."""
    comparable: str | None = None
    """Why scores may not be compared with published ones: `Environment.not_comparable_because`."""
    published_sampling: dict[str, JsonValue] = Field(default_factory=dict, exclude_if=lambda sampling: not sampling)
    """What agents' requests had for those: `Environment.published_sampling`; left out where there is nothing."""
    trusted_agents_only: bool = False


class SummarizeRequest(Value):
    """`POST /tasks/{task}/summary`; the answer is a `Summary` with the standard error of its primary metric."""

    finishes: tuple[Finish, ...]
    clusters: tuple[int, ...] = ()
    """Finish by finish, which belong together (epochs of one sample); empty: each stands for itself."""
    digest: ExpectedDigest = None

    @model_validator(mode="after")
    def _a_cluster_each(self) -> "SummarizeRequest":
        if self.clusters and len(self.clusters) != len(self.finishes):
            raise ValueError("clusters: as many as finishes, or none")
        return self


class Heartbeat(Value):
    """`POST /workers`: everything a controller knows of a worker. `sequence` grows within one `boot`."""

    worker: str = Field(pattern=NAME)
    boot: str = Field(min_length=1, max_length=64)
    url: str = Field(max_length=512, pattern=BASE_URL)
    sequence: int = Field(ge=0)
    draining: bool = False
    tasks: tuple[TaskCapacity, ...] = Field(max_length=1_000)
    sessions: tuple[SessionId, ...] = Field(max_length=100_000)
    """The sessions that the worker can still answer for: live ones, and finished ones not yet deleted."""
    version: str = Field(default=UNKNOWN_VERSION, max_length=64)


class WorkerStatus(Value):
    """A live worker, as last heard."""

    worker: str
    url: str
    version: str
    draining: bool


class WorkerList(Value):
    """Answer to `GET /workers`, sorted by name."""

    workers: tuple[WorkerStatus, ...]

    @classmethod
    def of(cls, beats: Iterable[Heartbeat]) -> "WorkerList":
        """The workers that these are the latest heartbeats of."""
        standings = (
            WorkerStatus(worker=beat.worker, url=beat.url, version=beat.version, draining=beat.draining)
            for beat in sorted(beats, key=lambda beat: beat.worker)
        )
        return cls(workers=tuple(standings))


class HeartbeatAck(Value):
    """Answer to a heartbeat."""

    lease_s: float
    """A worker silent for this long is taken for lost; it starts no session after 0.7 of it without an answer."""
    elsewhere: tuple[SessionId, ...] = Field(default=(), exclude_if=lambda sessions: not sessions)
    """Those of its sessions that were placed at another worker while this one was taken for lost: it is to end them.
    Left out where there are none: older workers don't know it."""
    access: str | None = None
    """The token that clients will show at the worker's URL, told where it is sure that the worker is there."""


class Health(Value):
    """Answer to `GET /healthz`: who listens here, so that a client knows that it reached the worker it meant."""

    role: Literal["worker", "controller"]
    url: str
    version: str = UNKNOWN_VERSION
    time: float | None = None
    """Its wall clock, in Unix seconds; no part decides by it, `proctor doctor` compares it."""


ProblemType = Literal[
    "bad_request",
    "unauthorized",
    "forbidden",
    "unknown_task",
    "unknown_sample",
    "unknown_session",
    "turn_conflict",
    "digest_differs",
    "in_work",
    "no_capacity",
    "not_ready",
    "worker_lost",
    "too_large",
    "internal",
]


class Problem(Value):
    """Every error reply (RFC 9457): `type` maps to one exception class, `retryable` says whether a retry can help."""

    type: ProblemType
    title: str
    detail: str = ""
    retryable: bool = False
    retry_after_s: float | None = None
    replies: KeptReplies = ()
    """With `in_work`, which is answered at once where there are any."""
