"""The metrics of workers and controllers."""

import functools
import re
from collections.abc import Callable, Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, Metric

from proctor.observability.metrics import SECONDS, gauge
from proctor.types import Finish, FinishReason
from task_server.wire.messages import TaskCapacity
from task_server.wire.worker_messages import Heartbeat

_EXCEPTION = re.compile(r"([A-Z][A-Za-z]{2,59}): ")
_WAITS = {
    "starting": "starting",
    "stopping": "stopping",
    "draining": "draining",
    "no live worker": "no_worker",
    "no worker": "no_worker",
    "its workers differ": "workers_differ",
    "the task server refuses the token": "refused",
    "the task server": "unreachable",
}


def kind_of(cause: str) -> str:
    """The exception class that a cause begins with; `other` if it begins with none."""
    found = _EXCEPTION.match(cause)
    return found[1] if found else "other"


def waiting_class(waiting: str) -> str:
    """A metric label for the reason why a task starts no sessions, from a small set.

    The text itself may hold host names, paths and numbers.
    """
    known = (word for start, word in _WAITS.items() if waiting.startswith(start))
    return next(known, None) or kind_of(waiting)


def task_gauges(capacities: Iterable[TaskCapacity]) -> list[Metric]:
    """Gauges of which tasks can start sessions, and why the others can't."""
    listed = list(capacities)
    up = {(task.name,): float(task.waiting is None) for task in listed}
    waits = {(task.name, waiting_class(task.waiting)): 1.0 for task in listed if task.waiting is not None}
    return [
        gauge("proctor_task_up", "1 where sessions of the task can start.", ("task",), up),
        gauge("proctor_task_waiting", "1 with the kind of reason where none can.", ("task", "reason"), waits),
    ]


def worker_gauges(workers: Sequence[Heartbeat]) -> list[Metric]:
    """Gauges of the slots and sessions of each live worker."""
    capacities = [(worker.worker, capacity) for worker in workers for capacity in worker.tasks]
    at = ("worker", "task")
    slots = {(name, task.name): task.total for name, task in capacities}
    free = {(name, task.name): task.free for name, task in capacities}
    held = {(worker.worker,): len(worker.sessions) for worker in workers}
    return [
        gauge("proctor_workers", "Live workers.", (), {(): len(workers)}),
        gauge("proctor_worker_slots", "Sessions that a worker can hold.", at, slots),
        gauge("proctor_worker_slots_free", "Sessions that a worker can start now.", at, free),
        gauge("proctor_worker_sessions", "Sessions that a worker answers for.", ("worker",), held),
    ]


class PlacementMetrics(CollectorRegistry):
    """A controller's counters of placed sessions, relayed requests and lost workers."""

    def __init__(self) -> None:
        super().__init__()
        self.placed = functools.cache(
            Counter("proctor_sessions_placed_total", "Sessions that a worker took.", ["task"], registry=self).labels
        )
        self.relayed = Counter(
            "proctor_relayed_total", "Requests passed on to a worker for a client that can't reach it.", registry=self
        )
        self.lost = Counter(
            "proctor_workers_lost_total", "Workers that died, hung or refused connections.", registry=self
        )


class SessionMetrics(CollectorRegistry):
    """The session metrics of a worker."""

    def __init__(self) -> None:
        super().__init__()
        self.started = self._counter("proctor_sessions_started_total", "Sessions begun.", "task")
        self.turns = self._counter("proctor_turns_total", "Turns answered.", "task")
        self.expired = Counter(
            "proctor_sessions_expired_total", "Sessions ended because no client asked for them.", registry=self
        )
        self._finishes = self._counter("proctor_finishes_total", "Sessions that came to a finish.", "task", "reason")
        self._faults = self._counter("proctor_faults_total", "Sessions that ended with a fault.", "task", "kind")
        self._start_s = self._histogram(
            "proctor_session_start_seconds", "From a session's start to its first observation."
        )
        self._turn_s = self._histogram("proctor_turn_seconds", "From an answer to the environment's next step.")

    def stepped(self, task: str, turn: int, seconds: float) -> None:
        """Record how long the environment took to reach the next step after turn `turn`; turn 0 is the start."""
        (self._turn_s if turn else self._start_s)(task).observe(seconds)

    def finished(self, task: str, finish: Finish) -> None:
        """Record a session that reached a finish; sessions that were ended from outside don't count."""
        self._finishes(task, finish.reason.value).inc()
        if finish.reason.is_fault:
            agents = finish.reason is FinishReason.AGENT_ERROR
            self._faults(task, "agent" if agents else kind_of(str(finish.detail.get("cause")))).inc()

    def _counter(self, name: str, meaning: str, *labels: str) -> Callable[..., Counter]:
        return functools.cache(Counter(name, meaning, labels, registry=self).labels)

    def _histogram(self, name: str, meaning: str) -> Callable[..., Histogram]:
        return functools.cache(Histogram(name, meaning, ["task"], buckets=SECONDS, registry=self).labels)
