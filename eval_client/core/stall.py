"""Pure: how long a run has made no progress, and why."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from proctor.tables.table import counted

STILL_S = 5.0
"""A run without progress for this long shows the reasons."""
CALM_S = 60.0
"""A model may take this long to answer before it is a reason."""
MAX_REASONS = 6


@dataclass
class StallDetector:
    """Measures how long a run's counts (turns, final rows, attempts) stay the same."""

    _achieved: tuple[int, ...]
    _since: float

    def lasts_s(self, achieved: tuple[int, ...], now: float) -> float:
        """Seconds since the counts changed; `now` is monotonic."""
        if achieved != self._achieved:
            self._achieved, self._since = achieved, now
        return now - self._since


class PendingCall(Protocol):
    """A request without an answer yet, over all its tries."""

    @property
    def what(self) -> str:
        """The agent whose model it asks, or what it asks a task server for."""

    @property
    def since(self) -> float:
        """When its first try began, on the monotonic clock."""

    @property
    def trouble(self) -> str | None:
        """How the last try failed."""


@dataclass(frozen=True)
class StallReasons:
    """Everything that a run may be waiting for, at one time."""

    now: float
    """By the monotonic clock."""
    tasks: Mapping[str, str] = field(default_factory=dict)
    """task -> why none of its sessions can start"""
    cooling: Mapping[str, float] = field(default_factory=dict)
    """endpoint -> seconds left of its pause after a 429"""
    paced: Mapping[str, str] = field(default_factory=dict)
    """endpoint -> how many requests wait for which of its rates, as text"""
    models: Iterable[PendingCall] = ()
    """Requests to models, each named by its agent."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """agent -> how its last request failed"""
    server: Iterable[PendingCall] = ()
    """Requests to the task server."""
    store_since: float | None = None
    """When the oldest write that is not confirmed was requested."""
    slots: Mapping[str, int] = field(default_factory=dict)
    """`endpoint`, `agent` or `task` -> how many trials wait for a slot of theirs"""
    quiet: bool = False
    """Whether no trial is played, and none waits."""
    down: bool = False
    """Whether an endpoint does not answer, which is told apart from this."""

    def reasons(self) -> tuple[str, ...]:
        """The reasons, each as a short text, the most telling ones first; none while models alone take their time."""
        models = list(self.models)
        slow = [call for call in models if self.now - call.since >= CALM_S and not self.down]
        found = [
            *(f"task {task} waits: {why}" for task, why in sorted(self.tasks.items())),
            *self._store(),
            *(
                f"endpoint {name} pauses for another {left:.0f} s after a 429"
                for name, left in sorted(self.cooling.items())
                if left > 0
            ),
            *(f"endpoint {name}: {waits}" for name, waits in sorted(self.paced.items())),
            *(self._unanswered(f"model of agent {calls[0].what}", calls) for calls in _by_name(slow)),
            *(self._unanswered(f"task server, {calls[0].what}", calls) for calls in _by_name(self.server)),
        ]
        if not found:
            return () if models or self.down else self._otherwise()
        more = len(found) - MAX_REASONS
        return (*found[:MAX_REASONS], f"and {more} more") if more > 0 else tuple(found)

    def _otherwise(self) -> tuple[str, ...]:
        if self.quiet:
            return ("all trials are over; the last results are being stored",)
        slots = (
            f"{counted(trials, 'trial')} without a slot of the {kind}" for kind, trials in sorted(self.slots.items())
        )
        return tuple(slots) or ("trials pause before they are tried again",)

    def _store(self) -> list[str]:
        since = self.store_since
        if since is None or self.now - since < STILL_S / 2:
            return []
        return [f"the store has not confirmed a write for {self.now - since:.0f} s"]

    def _unanswered(self, of: str, calls: list[PendingCall]) -> str:
        count = "a request" if len(calls) == 1 else f"{len(calls)} requests"
        trouble = next((call.trouble for call in calls if call.trouble), None) or self.failures.get(calls[0].what)
        return (
            f"{of}: {count} without an answer for {self.now - calls[0].since:.0f} s{f' ({trouble})' if trouble else ''}"
        )


def _by_name(calls: Iterable[PendingCall]) -> list[list[PendingCall]]:
    """The calls grouped by name, in the order given."""
    names: dict[str, list[PendingCall]] = {}
    for call in calls:
        names.setdefault(call.what, []).append(call)
    return list(names.values())
