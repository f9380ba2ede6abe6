"""The messages between workers and their controller."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from proctor.config.wording import NAME
from proctor.types import Value
from task_server.wire.messages import BASE_URL, UNKNOWN_VERSION, SessionId, TaskCapacity


class Hold(Value):
    """The sessions of a task that play for one run."""

    task: str = Field(pattern=NAME)
    run: str = Field(max_length=32)
    user: str = Field(max_length=64)
    sessions: int = Field(ge=1)


class Heartbeat(Value):
    """`POST /workers`: the state of a worker. `boot` identifies its process; `sequence` grows within one boot."""

    worker: str = Field(pattern=NAME)
    boot: str = Field(min_length=1, max_length=64)
    url: str = Field(max_length=512, pattern=BASE_URL)
    sequence: int = Field(ge=0)
    draining: bool = False
    tasks: tuple[TaskCapacity, ...] = Field(max_length=1_000)
    sessions: tuple[SessionId, ...] = Field(max_length=100_000)
    """The sessions that the worker can still answer for: live ones, and finished ones that were not deleted."""
    version: str = Field(default=UNKNOWN_VERSION, max_length=64)
    holds: Annotated[tuple[Hold, ...], Field(max_length=10_000, exclude_if=lambda holds: not holds)] = ()
    """For whom its sessions play. Omitted if empty: older controllers don't know it."""


class WorkersQuery(Value):
    """Query of `GET /workers`."""

    details: bool = False
    """Whether the answer has `WorkerDetails`: older clients don't know them."""


class WorkerDetails(Value):
    """What a worker does."""

    tasks: tuple[TaskCapacity, ...]
    sessions: int
    """Those that it can still answer for."""
    since_s: float
    """How long its process has reported."""
    heard_s: float
    """How long ago it reported last."""


class WorkerStatus(Value):
    """A live worker, by its latest heartbeat."""

    worker: str
    url: str
    version: str
    draining: bool
    details: Annotated[WorkerDetails | None, Field(exclude_if=lambda details: details is None)] = None


class WorkerList(Value):
    """Answer to `GET /workers`, sorted by name."""

    workers: tuple[WorkerStatus, ...]

    @classmethod
    def of(cls, heartbeats: Mapping[str, tuple[Heartbeat, float, float]], *, details: bool) -> "WorkerList":
        """The workers of these heartbeats, the latest of each, with since when it reports, and when it did last."""
        statuses = (
            WorkerStatus(
                worker=name,
                url=heartbeat.url,
                version=heartbeat.version,
                draining=heartbeat.draining,
                details=WorkerDetails(
                    tasks=heartbeat.tasks, sessions=len(heartbeat.sessions), since_s=since_s, heard_s=heard_s
                )
                if details
                else None,
            )
            for name, (heartbeat, since_s, heard_s) in sorted(heartbeats.items())
        )
        return cls(workers=tuple(statuses))


class RunHold(Value):
    """What a run has of a task."""

    run: str
    """Its random id; empty for clients that name none, which count as one run."""
    name: str
    user: str
    """Whose it is; the run's id where it has no user."""
    task: str
    held: int
    """Sessions that play for it."""
    wants: int
    """Sessions that it could hold, those that it holds among them."""
    waits_s: float
    """How long it has wanted more than it holds; 0 if it does not."""


class RunList(Value):
    """Answer to `GET /runs`: the largest holders first."""

    runs: tuple[RunHold, ...]


class HeartbeatAck(Value):
    """Answer to a heartbeat."""

    lease_s: float
    """A worker that is silent for this long counts as lost. Without an answer for 0.7 of it, it starts no session."""
    elsewhere: tuple[SessionId, ...] = Field(default=(), exclude_if=lambda sessions: not sessions)
    """The worker's sessions that were placed on another worker while this one counted as lost; it must end them.
    Omitted if empty: older workers don't know it."""
    access: str | None = None
    """The token that clients will send to the worker's URL; only if the worker is verified to be at that URL."""
    accepted: tuple[str, ...] = Field(default=(), exclude_if=lambda tokens: not tokens)
    """Every token that clients may send there, `access` the first; for a worker that sends TAKES_ALL."""


TAKES_ALL = {"proctor-takes-all": "1"}
"""The header of a heartbeat whose worker knows `HeartbeatAck.accepted`: older ones refuse an unknown field."""
