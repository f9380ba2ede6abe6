"""Which tasks wait for a service of their environment (a container engine, a database server, an endpoint)."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from eval_client.core.events import Job, ServiceSlots

SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 5.0
"""Between two trials that probe a service."""
MOST = 10
"""As often a trial may find its service away, though that worked for others in between, without an attempt."""


@dataclass
class _Outage:
    since: float
    cause: str
    probe_at: float


@dataclass
class _Met:
    """How often a trial met the service away without getting further, while the service worked in between."""

    turns: int = -1
    worked: int = 0
    times: int = 0


class Services:
    """A task waits from the first attempt that finds its service away until an answer to a new turn is carried out.

    While it waits, one trial at a time probes. `tell` is called with each change of what may start. Times are monotonic.
    """

    def __init__(self, tell: Callable[[ServiceSlots], None]) -> None:
        self._tell = tell
        self._outages: dict[str, _Outage] = {}
        self._worked = Counter[str]()
        self._met: dict[int, _Met] = {}

    def away(self, job: Job, turns: int, cause: str, now: float) -> bool:
        """Record an attempt, with so many turns in its journal, that found its service away.

        False where the service is not to blame: it worked for others MOST times, and each time not for this trial.
        """
        task, met = job.pair[1], self._met.setdefault(job.trial, _Met())
        if turns > met.turns:
            met.turns, met.times = turns, 1
        elif self._worked[task] > met.worked:
            met.times += 1
        met.worked = self._worked[task]
        if met.times > MOST:
            return False
        outage = self._outages.setdefault(task, _Outage(now, cause, now))
        pause_s = min(max(SHORTEST_PAUSE_S, (now - outage.since) / 2), LONGEST_PAUSE_S)
        outage.cause, outage.probe_at = cause, now + pause_s
        self._tell(ServiceSlots(task, 0, cause))
        return True

    def worked(self, task: str) -> None:
        """Record that an environment has carried out the answer to a new turn."""
        self._worked[task] += 1
        if self._outages.pop(task, None) is not None:
            self._tell(ServiceSlots(task))

    def probe(self, now: float) -> None:
        """Let a trial probe each service whose pause is over."""
        for task, outage in self._outages.items():
            if now >= outage.probe_at:
                self._tell(ServiceSlots(task, 1, outage.cause))

    def waiting(self) -> dict[str, tuple[float, str]]:
        """task -> since when it waits for its service, and why"""
        return {task: (outage.since, outage.cause) for task, outage in self._outages.items()}
