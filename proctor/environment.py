"""The interfaces `Environment` and `Agent`: an environment's `play` sends observations to an agent and scores it."""

import math
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from proctor.digest import digest_of
from proctor.types import (
    Action,
    Drawing,
    Finish,
    FinishReason,
    Message,
    Observation,
    ParsedAction,
    Summary,
    TaskProtocol,
    Value,
)

Policy = Callable[[str, Sequence[Message]], Action]
"""A stateless agent: (conversation, its whole transcript so far) -> action."""

TurnAddress = Callable[[int], str]
"""The address of a turn of a trial in the viewer."""

PolicyKind = Literal["reference", "naive", "random"]
POLICY_KINDS: tuple[PolicyKind, ...] = get_args(PolicyKind)
"""The policies that an environment may provide; each kind is the name of the method that returns it."""

MEAN_SCORE = "mean_score"
"""The metric of the default `Environment.summarize`."""


class AgentStopped(Exception):
    """The agent can't continue and caused this itself; the environment scores the state reached."""

    def __init__(self, reason: FinishReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class ContextLimitExceeded(AgentStopped):
    """The transcript no longer fits the model's context."""

    def __init__(self) -> None:
        super().__init__(FinishReason.CONTEXT_LIMIT)


class InputRefused(AgentStopped):
    """The provider or the model declined this input; `why` is what it said, `text` the model's last text."""

    def __init__(self, why: str = "", text: str = "") -> None:
        super().__init__(FinishReason.REFUSED)
        self.why, self.text = why, text


class AgentUnavailable(Exception):
    """The agent's endpoint failed after all retries: a fault, not a score."""

    paid: object = None
    """The usage that the failed requests are estimated to have cost, a `proctor.llm.wire.Usage`; None where none."""


class RequestRejected(AgentUnavailable):
    """The endpoint refused a request by a status that no retry changes, such as 400; it may answer others."""


class ConversationLost(AgentUnavailable):
    """The agent's server has lost what a stateful agent remembers of a conversation: its trial begins anew."""


class AgentRefused(AgentUnavailable):
    """The endpoint rejects every request of this configuration (wrong key, unknown model): a retry can't succeed."""


class ToolsRefused(AgentRefused):
    """The endpoint rejects every request that offers tools; it may answer others."""


class EnvironmentFault(Exception):
    """A part that the environment depends on failed (container, database, judge): a fault, not a score."""


class ServiceAway(EnvironmentFault):
    """A service of the environment can't be reached, refuses, breaks off or answers 5xx: it may be back soon.

    The client waits, and then replays the trial in a new session, without an attempt. Not for what the agent did.
    """

    patience_s: float | None = None
    """How long it is waited for; None: as long as the plan says, `limits.patience_s`."""


class Agent(ABC):
    """Answers observations: a scripted policy, a model behind HTTP, a person."""

    @abstractmethod
    async def act(self, observation: Observation) -> Action:
        """The answer to an observation.

        Raises AgentStopped (ContextLimitExceeded among them) or AgentUnavailable.
        """


class SampleSelection(Value):
    """Which of a task's samples a plan plays. Patterns have the wildcards `*`, `?` and `[...]`."""

    include: tuple[str, ...] = Field(default=(), exclude_if=lambda patterns: not patterns)
    """Play only samples whose id matches one of these; empty: all."""
    exclude: tuple[str, ...] = Field(default=(), exclude_if=lambda patterns: not patterns)
    """Play no sample whose id matches one of these."""
    limit: int | None = Field(default=None, ge=1, exclude_if=lambda limit: limit is None)
    """Play at most so many, spread over the environment's categories."""
    shuffle_seed: int | None = Field(default=None, exclude_if=lambda seed: seed is None)
    """Take those of `limit` at random by this number, not the first of each category."""


class Environment(BaseModel, ABC):
    """A world that agents play in; the fields of an instance are its configuration.

    A subclass must define `samples` and `play`; everything else has a default. Only `play` runs inside `lifespan`; all
    other methods work without it and must be cheap.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    capacity: ClassVar[int] = 8
    """Sessions a worker holds at once unless its task definition sets another number."""

    revision: ClassVar[int] = 1
    """Raise it by one when the code changes what a trial sees or how it is scored: `digest` reflects no other code."""

    operational: ClassVar[frozenset[str]] = frozenset()
    """Fields that do not affect a trial, such as a cache's folder: the default `digest` omits them."""

    scales: ClassVar[Mapping[str, tuple[float, float]]] = {}
    """Metric -> the least and the greatest value that it can have, for primary metrics that are not the mean score."""
    bad_replies: ClassVar[str | None] = None
    """Name of the finish metric that counts the replies that could not be parsed; None: a session that ended as
    `invalid_format` counts as one such reply."""

    @model_validator(mode="after")
    def _default_paths_lie_beside_the_file(self) -> Self:
        """A relative path that is a field's default is meant from the folder of the class's file."""
        file = getattr(sys.modules.get(type(self).__module__), "__file__", None)
        for name in type(self).model_fields.keys() - self.model_fields_set:
            path = getattr(self, name)
            if file is not None and isinstance(path, Path) and not path.is_absolute():
                self.__dict__[name] = Path(file).resolve().parent / path
        return self

    @abstractmethod
    def samples(self) -> Sequence[str]:
        """The ids of all samples, in a stable order. Raises ValueError on broken data, naming file and field."""

    @abstractmethod
    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        """Play one session, from the first observation to its score. Equal seeds and actions give equal sessions.

        May raise AgentStopped, AgentUnavailable and EnvironmentFault: `play_to_finish` classifies them.
        Cancellation must release everything that the session holds.
        """

    def digest(self) -> str:
        """Hex digits that change whenever data, prompts or anything else that affects a trial changes.

        By default a hash of the class's name, its `revision` and all fields outside `operational`; a path is hashed by
        the contents of its file or folder. Raises ValueError, naming the field, where nothing exists at a path.
        """
        return digest_of((type(self).__name__, self.revision, self))

    def parse_action(self, action: Action) -> ParsedAction | None:
        """How `play` reads an answer, by the function that `play` calls; None where that takes more than the answer.

        Shown to readers of a trial. It neither raises nor changes anything.
        """
        return None

    @property
    def drawing_title(self) -> str | None:
        """What the viewer calls the drawings of this world; None for a world without `draw`."""
        return None

    def draw(self, finish: Finish, turn_address: TurnAddress | None = None) -> Drawing:
        """A finished trial as the world shows it; every text in it is escaped.

        Raises ValueError, with what to do, where the finish lacks what is needed.
        """
        raise ValueError("this world has no drawings")

    def cluster(self, sample: str) -> str:
        """The name of what the sample shares with others (a table, a house, a puzzle); by default the sample's own id.

        Scores within a cluster are not independent, which standard errors must know. At most 255 characters.
        """
        return sample

    def category(self, sample: str) -> str:
        """The kind of the sample (a type of question, a difficulty); by default all samples are of one kind, "".

        A limit on the number of samples takes some of every category. At most 255 characters.
        """
        return ""

    def reference(self, sample: str, seed: int = 0) -> Policy | None:
        """A policy known to solve the sample; None if the environment has no such policy, whatever the sample."""
        return None

    def naive(self, sample: str, seed: int = 0) -> Policy | None:
        """A weak heuristic that does not use the gold data, as a baseline for models; None as for `reference`."""
        return None

    def random(self, sample: str, seed: int = 0) -> Policy | None:
        """A policy of random well-formed actions, as the lowest baseline; None as for `reference`."""
        return None

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        """Named metrics over the finishes of this task; by default their mean score.

        Faults among them must never count as 0. `proctor.summary` adds the standard error.
        """
        scores = [finish.score for finish in finishes if finish.score is not None]
        return Summary(primary=MEAN_SCORE, metrics={MEAN_SCORE: math.fsum(scores) / len(scores)} if scores else {})

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Holds what all sessions of a worker share (a server, a pool), from before the first to after the last."""
        yield

    @classmethod
    def detect_parameters(cls) -> dict[str, JsonValue]:
        """Fields for the demo, chosen by what this machine has installed.

        Raises EnvironmentFault with the reason where the environment can't be played on this machine.
        """
        return {}

    @property
    def max_turns(self) -> int | None:
        """The maximum number of turns of a session; None if unknown. A subclass may set a class variable instead."""
        return None

    @property
    def drops_thoughts(self) -> bool:
        """True if what a model thought aloud (`<think>`, `[THINK]`, ...) is removed before `play` gets the reply.

        By default so in the profile `strict`; the published implementations treat it as part of the reply.
        """
        return getattr(self, "profile", None) == "strict"

    def not_comparable_because(self) -> str | None:
        """None if scores may be compared with published ones, else the reason why not.

        They are comparable only with the published data, prompts, judge, temperatures and lengths, with no limit below
        the usual ones, and in a profile that corrects none of these. A prompt in our own words is not the published
        one: see `proctor.published`.
        """
        return None

    def published_sampling(self) -> Mapping[str, JsonValue]:
        """Request fields, such as temperature, with which the published scores were measured; {} if unknown."""
        return {}

    def trusted_agents_only(self) -> bool:
        """True if the isolation is too weak for a model's actions: then only built-in agents may play."""
        return False

    def caution_for_models(self) -> str | None:
        """Why a model's score says little as the task is set up, and what to set instead; None if it says much."""
        return None


def protocol_of(environment: Environment) -> TaskProtocol:
    """How the environment takes answers: its field `protocol`; `text` if it has none."""
    protocol: TaskProtocol = getattr(environment, "protocol", "text")
    return protocol


def policy_of(environment: Environment, kind: PolicyKind, sample: str, seed: int = 0) -> Policy | None:
    """The environment's policy of a kind; None if it has none."""
    policy: Policy | None = getattr(environment, kind)(sample, seed)
    return policy


def missing_policies(environment: Environment, wanted: Iterable[PolicyKind | None]) -> tuple[PolicyKind, ...]:
    """The wanted policies that the environment lacks, judged by its first sample; () without samples.

    None in `wanted` means no policy and is skipped.
    """
    kinds = set(wanted)
    asked = [kind for kind in POLICY_KINDS if kind in kinds]
    return tuple(kind for sample in environment.samples()[:1] for kind in asked if _missing(environment, kind, sample))


def _missing(environment: Environment, kind: PolicyKind, sample: str) -> bool:
    try:
        return policy_of(environment, kind, sample) is None
    except Exception:
        return False  # the policy exists but fails for this sample: the session that plays it reports the cause


def default_folder(environment: str) -> Path:
    """Where an environment keeps what it caches unless a task sets another folder: in the user's cache folder."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "proctor" / environment
