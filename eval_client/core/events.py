"""Pure: the events that a run's schedule is told of, and the instructions that it gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from eval_client.core import Pair
from eval_client.core.spend import SpendLimit
from proctor.types import FinishReason


class AttemptOutcome(Enum):
    """How an attempt ended, which decides what happens to its trial."""

    FINISHED = "finished"
    """The attempt has a finish; a fault of the task may be tried again."""
    LOST = "lost"
    """The session is gone; a new one replays the journal."""
    INTERRUPTED = "interrupted"
    """The client ended before the attempt did, whose session is gone now; a new one replays the journal."""
    FAILED = "failed"
    """The task server failed."""
    DIVERGED = "diverged"
    """The replay observed something else; the journal can't be used any more."""
    SERVICE_AWAY = "service_away"
    """A service of the environment is away; once it is back, a new session replays the journal, without an attempt."""
    PUT_BACK = "put_back"
    """No session could start, or the run was stopped first; the trial stays pending within the same attempt."""
    BUDGET = "budget"
    """The run has reached a spending limit."""
    ENDPOINT_DOWN = "endpoint_down"
    """The run drained while the trial waited for an endpoint that is down."""
    UNAUTHORIZED = "unauthorized"
    """The agent's endpoint answers no request of this configuration: wrong key, model or URL, no credits, or down."""
    TOOLS_REFUSED = "tools_refused"
    """The agent's endpoint refuses every request that offers tools, and so all trials of the task."""


class Job(NamedTuple):
    """A trial, as the schedule knows it."""

    trial: int
    """The trial's id."""
    pair: Pair


@dataclass(frozen=True, slots=True)
class TrialsTaken:
    """These trials are to be played, each pair's in the order of their ids here. Once they are, the run is over."""

    trials: Mapping[Pair, Sequence[int]]


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """An attempt ended. Its slots stay in use until `SlotFreed`: until what it leaves is durable."""

    job: Job
    outcome: AttemptOutcome
    reason: FinishReason | None = None
    """The reason of the attempt's finish; None without one."""
    cause: str = ""
    fault: str | None = None
    """The kind of fault, for counts; None for a score."""
    turns: int = 0
    """Turns in the trial's journal; a trial whose journal grew has all its attempts again."""
    started: bool = True
    """Whether its session gave an answer."""
    chance: float = 0.0
    """Uniform in [0, 1), for the wait before another attempt."""
    spend_limit: SpendLimit | None = None
    """For `AttemptOutcome.BUDGET`: the limit."""


@dataclass(frozen=True, slots=True)
class SlotFreed:
    """A trial that was started is not played any more."""

    job: Job


@dataclass(frozen=True, slots=True)
class RetryDue:
    """The wait of a `Retry` is over."""

    job: Job


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The final row of a `GiveUp` is durable, or can't be written."""

    job: Job


@dataclass(frozen=True, slots=True)
class TaskSlots:
    """How many sessions of a task the task server can hold."""

    task: str
    ours: int
    """Slots that this client may use."""
    total: int
    """All slots, for all clients."""
    waits_for: str | None = None
    """Why none can start; None if they can."""


@dataclass(frozen=True, slots=True)
class ServiceSlots:
    """How many trials of a task may be under way for what is known of the services of its environment."""

    task: str
    most: int | None = None
    """None where no service is away."""
    waits_for: str | None = None
    """Why it is no more."""


@dataclass(frozen=True, slots=True)
class EndpointsChanged:
    """How many trials each endpoint takes at once. At one that is down, a single trial probes."""

    capacities: Mapping[str, int]
    down: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class QuotasGranted:
    """This client's parts of limits that it shares with other runs: endpoint -> trials at once."""

    grants: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TaskLost:
    """A task was unavailable to this client for too long; told again while it is."""

    task: str
    cause: str
    refused: bool = False
    """Whether its server refused this client's token: then its trials stay pending."""


@dataclass(frozen=True, slots=True)
class Drain:
    """Start no more trials; those under way are played to their end."""

    why: str


@dataclass(frozen=True, slots=True)
class Abandon:
    """RunStopped at once; a resume goes on from the journal."""

    why: str


Event = (
    TrialsTaken
    | AttemptEnded
    | SlotFreed
    | RetryDue
    | GaveUp
    | TaskSlots
    | ServiceSlots
    | EndpointsChanged
    | QuotasGranted
    | TaskLost
    | Drain
    | Abandon
)


@dataclass(frozen=True, slots=True)
class Start:
    """Play an attempt; its slots are in use until `SlotFreed`."""

    job: Job
    suspect: bool
    """Whether the trial's last attempt lost its worker: the trial may be what kills it."""
    last_try: bool


@dataclass(frozen=True, slots=True)
class Settle:
    """Write the trial's final row, from the attempt that ended."""

    job: Job


@dataclass(frozen=True, slots=True)
class EndAttempt:
    """Write the attempt's end; its trial goes on."""

    job: Job


@dataclass(frozen=True, slots=True)
class Retry:
    """Tell of `RetryDue` after so many seconds."""

    job: Job
    wait_s: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Write the final row of a trial whose task is lost, without a score; tell of `GaveUp` then."""

    job: Job
    cause: str


@dataclass(frozen=True, slots=True)
class RunStopped:
    """The run drains; with `at_once`, it is abandoned."""

    at_once: bool


@dataclass(frozen=True, slots=True)
class RunFinished:
    """Nothing is left to do; cancel what is still under way."""


Instruction = Start | Settle | EndAttempt | Retry | GiveUp | RunStopped | RunFinished
