"""Which tasks wait for a service of their environment (a container engine, a database server, an endpoint)."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from eval_client.core.events import Job, ServiceSlots

SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 5.0
"""Between two trials that probe a service."""
MOST = 3
"""So often at least a trial may find its service away, though that worked for others in between, without an attempt."""


@dataclass
class _Outage:
    since: float
    cause: str
    probe_at: float
    patience_s: float


@dataclass
class _Met:
    """Since when a trial meets the service away without getting further, though it worked for others so many times."""

    turns: int
    since: float
    worked: int
    times: int = 0


class Services:
    """A task waits from the first attempt that finds its service away until an answer to a new turn is carried out.

    While it waits, one trial at a time probes. `tell` is called with each change of what may start. `patience_s` is how
    long a service that says nothing else is waited for, and one that works for others by a trial. Times are monotonic.
    """

    def __init__(self, tell: Callable[[ServiceSlots], None], patience_s: float) -> None:
        self._tell, self._patience_s = tell, patience_s
        self._outages: dict[str, _Outage] = {}
        self._worked = Counter[str]()
        self._met: dict[int, _Met] = {}

    def away(self, job: Job, turns: int, cause: str, now: float, patience_s: object = None) -> bool:
        """Record an attempt, with so many turns in its journal, that found its service away.

        False where the service is not to blame: it worked for others again and again, and never for this trial.
        """
        task = job.pair[1]
        met = self._met.get(job.trial)
        if met is None or turns > met.turns:
            met = self._met[job.trial] = _Met(turns, now, self._worked[task])
        elif self._worked[task] > met.worked:
            met.worked, met.times = self._worked[task], met.times + 1
            if met.times >= MOST and now - met.since > self._patience_s:
                return False
        outage = self._outages.setdefault(task, _Outage(now, cause, now, self._patience_s))
        outage.patience_s = patience_s if isinstance(patience_s, float) else self._patience_s
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

    def waiting(self) -> dict[str, tuple[float, str, float]]:
        """task -> since when it waits for its service, why, and how long it may"""
        return {task: (outage.since, outage.cause, outage.patience_s) for task, outage in self._outages.items()}
