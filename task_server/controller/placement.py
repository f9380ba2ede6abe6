"""Pure: which workers are live, where a session is placed, and which sessions are lost.

The state is a function of the latest heartbeats, so it can't drift from them; only placements newer than a worker's
heartbeat are kept beside it. `now` is in seconds on any monotonic clock.
"""

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from task_server.wire.errors import (
    ApiError,
    DigestDiffers,
    NoCapacity,
    NotReady,
    TurnConflict,
    UnknownSession,
    UnknownTask,
    WorkerLost,
)
from task_server.wire.messages import Heartbeat, TaskCapacity

REMEMBER_LOST_S = 600.0
NAMES_SHOWN = 3
"""Longest list of worker names in an error, for each digest."""


@dataclass(frozen=True, slots=True)
class WorkerRef:
    """One process of a worker: its name, its boot id and its URL."""

    worker: str
    boot: str
    url: str


@dataclass(slots=True)
class _Worker:
    heartbeat: Heartbeat
    received_at: float
    sessions: frozenset[str] = frozenset()
    placed: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Sessions placed on this worker that no heartbeat has listed yet: (task, when it was placed)."""

    @property
    def ref(self) -> WorkerRef:
        return WorkerRef(self.heartbeat.worker, self.heartbeat.boot, self.heartbeat.url)

    def is_up_to_date(self, heartbeat: Heartbeat) -> bool:
        """Whether a heartbeat is a late or repeated one of the same process."""
        return self.heartbeat.boot == heartbeat.boot and heartbeat.sequence <= self.heartbeat.sequence

    def capacity_of(self, task: str) -> TaskCapacity | None:
        """The task's capacity in the latest heartbeat, less the placements since; None if the worker lacks the task."""
        capacity = next((capacity for capacity in self.heartbeat.tasks if capacity.name == task), None)
        if capacity is None:
            return None
        return capacity.model_copy(update={"free": max(0, capacity.free - self._placed_since(task))})

    def _placed_since(self, task: str) -> int:
        """Placements of a task since the latest heartbeat; `placed` is in order of time, so they are its last ones."""
        since = itertools.takewhile(lambda placed: placed[1] >= self.received_at, reversed(self.placed.values()))
        return sum(name == task for name, _ in since)


_Holding = Sequence[tuple[_Worker, TaskCapacity]]
"""The workers of a task, each with its capacity for it."""


class Placement:
    """The controller's view of its workers."""

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._workers: dict[str, _Worker] = {}
        self._boots: dict[str, str] = {}
        """worker name -> its newest boot, kept after the worker is lost"""
        self._superseded: dict[str, set[str]] = {}
        """worker name -> earlier boots, refused while the worker that has the name now is live. Without this, a late
        heartbeat of a dead process would shut out its live successor."""
        self._lost: dict[str, float] = {}
        """lost session -> when it was lost"""
        self._environments: dict[str, str] = {}
        """task -> its environment, for every task that any heartbeat has listed"""

    def heartbeat(self, heartbeat: Heartbeat, now: float) -> tuple[str, ...]:
        """Record a heartbeat; the sessions in it that another worker holds now. A late heartbeat changes nothing.

        Raises TurnConflict if another process has taken the worker's name since.
        """
        if heartbeat.boot in self._superseded.get(heartbeat.worker, ()):
            raise TurnConflict(f"another process has taken the name {heartbeat.worker!r}; give each worker its own")
        known = self._workers.get(heartbeat.worker)
        if known is not None and known.is_up_to_date(heartbeat):
            return ()
        superseded = self._superseded.get(heartbeat.worker, set())
        for other in [other.ref for other in self._workers.values() if other.heartbeat.boot != heartbeat.boot]:
            if other.worker == heartbeat.worker or other.url == heartbeat.url:  # a new process has its name or address
                self.forget(other, now)
        before = self._boots.get(heartbeat.worker, heartbeat.boot)
        if before != heartbeat.boot:
            self._superseded[heartbeat.worker] = superseded | {before}
        self._boots[heartbeat.worker] = heartbeat.boot
        return self._record(heartbeat, now)

    def _record(self, heartbeat: Heartbeat, now: float) -> tuple[str, ...]:
        known = self._workers.get(heartbeat.worker)
        mine = known.sessions | known.placed.keys() if known is not None else frozenset()
        # A session is placed again only after its worker was lost, so the returning worker has the older copy.
        others = self._held_of(frozenset(heartbeat.sessions) - mine)
        elsewhere = tuple(session for session in heartbeat.sessions if session in others)
        sessions = frozenset(heartbeat.sessions).difference(elsewhere)
        placed = known.placed if known is not None else {}
        placed = {
            session: (task, at)
            for session, (task, at) in placed.items()
            if session not in sessions and now - at < self._lease_s
        }
        self._workers[heartbeat.worker] = _Worker(heartbeat, now, sessions, placed)
        self._environments.update({capacity.name: capacity.environment for capacity in heartbeat.tasks})
        for session in self._lost.keys() & sessions:
            del self._lost[session]
        return elsewhere

    def place(
        self, session: str, task: str, now: float, avoiding: Collection[str] = (), digest: str | None = None
    ) -> WorkerRef:
        """Choose the worker to start a session on: the one that holds it, else the least loaded with a free slot.

        Only workers with the expected digest count; if none is expected, all workers of the task must have the same.
        Raises WorkerLost if the session's worker was lost: the session may still live there, and must not live twice.
        Raises UnknownTask, DigestDiffers, NotReady, NoCapacity.
        """
        holder = self._holder(session)
        if holder is not None and holder.heartbeat.worker not in avoiding:
            return holder.ref
        if holder is None and session in self._lost:
            raise WorkerLost(f"the worker of session {session} is gone")
        holding = self._known(task)
        free = [
            (1 - capacity.free / max(capacity.total, capacity.free), worker.heartbeat.worker, worker)
            for worker, capacity in _serving(holding, digest)
            if capacity.free > 0 and worker.heartbeat.worker not in avoiding
        ]
        if not free:
            raise _why_not(task, holding, digest)
        _, _, chosen = min(free)
        chosen.placed[session] = (task, now)
        return chosen.ref

    def refused(self, session: str, worker: str) -> None:
        """Undo a placement that the worker refused."""
        if worker in self._workers:
            self._workers[worker].placed.pop(session, None)

    def holder(self, session: str) -> WorkerRef:
        """The worker that holds a session. Raises WorkerLost, UnknownSession."""
        holder = self._holder(session)
        if holder is not None:
            return holder.ref
        if session in self._lost:
            raise WorkerLost(f"the worker of session {session} is gone")
        raise UnknownSession(f"no worker holds session {session}")

    def any_holding(self, task: str, digest: str | None = None) -> WorkerRef:
        """Any worker that has read a task's data; one with the expected digest if there is one.

        Raises UnknownTask, NotReady.
        """
        holding = self._known(task)
        expected = digest if digest in _workers_by_digest(holding) else None
        ready = [worker for worker, capacity in _serving(holding, expected) if capacity.digest is not None]
        if not ready:
            why = _waiting(holding, expected) or "its data are not read yet"
            raise NotReady(f"task {task!r}: {why}", retry_after_s=1.0)
        return ready[0].ref

    def forget(self, ref: WorkerRef, now: float) -> None:
        """Drop a worker; its sessions are lost. If the worker is in fact live, its next heartbeat restores both."""
        gone = self._workers.get(ref.worker)
        if gone is not None and gone.ref == ref:
            del self._workers[ref.worker]
            self._superseded.pop(ref.worker, None)
            self._lost.update(dict.fromkeys([*gone.sessions, *gone.placed], now))

    def tick(self, now: float) -> tuple[Heartbeat, ...]:
        """Drop the workers whose lease has expired; the last heartbeat of each."""
        silent = [worker for worker in self._workers.values() if now - worker.received_at >= self._lease_s]
        for worker in silent:
            self.forget(worker.ref, now)
        self._lost = {session: at for session, at in self._lost.items() if now - at < REMEMBER_LOST_S}
        return tuple(worker.heartbeat for worker in silent)

    def workers(self) -> tuple[Heartbeat, ...]:
        """The latest heartbeat of every live worker."""
        return tuple(worker.heartbeat for worker in self._workers.values())

    def capacities(self) -> tuple[TaskCapacity, ...]:
        """The capacity of every task that any heartbeat has listed, in the order of `TaskList.tasks`."""
        return tuple(capacity for task in sorted(self._environments) for capacity in self._capacities(task))

    def _capacities(self, task: str) -> Iterator[TaskCapacity]:
        holding = list(self._holding(task))
        digests = list(_workers_by_digest(holding))
        if len(digests) > 1:
            for digest in digests:
                yield self._capacity(task, _serving(holding, digest), digest)
        yield self._capacity(task, holding, digests[0] if len(digests) == 1 else None)

    def _capacity(self, task: str, holding: _Holding, digest: str | None) -> TaskCapacity:
        waiting = _waiting(holding, None)
        return TaskCapacity(
            name=task,
            environment=self._environments[task],
            total=sum(capacity.total for _, capacity in holding),
            free=0 if waiting is not None else sum(capacity.free for _, capacity in holding),
            waiting=waiting,
            digest=digest,
        )

    def _known(self, task: str) -> _Holding:
        """The workers that hold a task. Raises UnknownTask if no worker ever did."""
        if task not in self._environments:
            raise UnknownTask(f"no worker holds a task {task[:100]!r}; known: {', '.join(sorted(self._environments))}")
        return list(self._holding(task))

    def _holding(self, task: str) -> Iterator[tuple[_Worker, TaskCapacity]]:
        for worker in self._workers.values():
            capacity = worker.capacity_of(task)
            if capacity is not None and not worker.heartbeat.draining:
                yield worker, capacity

    def _held_of(self, sessions: frozenset[str]) -> frozenset[str]:
        """Which of the sessions any worker holds. The cost does not grow with the number of sessions asked for."""
        held = (
            sessions.intersection(names)
            for worker in self._workers.values()
            for names in (worker.sessions, worker.placed)
        )
        return frozenset().union(*held)

    def _holder(self, session: str) -> _Worker | None:
        """The worker that holds a session. A placement takes precedence over a heartbeat: it is the newer one."""
        listed = None
        for worker in self._workers.values():
            if session in worker.placed:
                return worker
            if session in worker.sessions:
                listed = worker
        return listed


def _workers_by_digest(holding: _Holding) -> dict[str, list[str]]:
    """digest -> the workers that have it; workers that have not read their data yet are left out."""
    workers: dict[str, list[str]] = {}
    for worker, capacity in holding:
        if capacity.digest is not None:
            workers.setdefault(capacity.digest, []).append(worker.heartbeat.worker)
    return workers


def _serving(holding: _Holding, digest: str | None) -> _Holding:
    """The workers that can serve a client with this expected digest. If it expects none, they must not differ."""
    if digest is None:
        return holding if len(_workers_by_digest(holding)) < 2 else []
    return [(worker, capacity) for worker, capacity in holding if capacity.digest == digest]


def _waiting(holding: _Holding, digest: str | None) -> str | None:
    """Why no worker can start a session of a task; None if at least one could, given a free slot."""
    if not holding:
        return "no live worker holds it"
    serving = _serving(holding, digest)
    if not serving:
        return f"its workers differ in data or version, give all the same ({_shown(holding)})"
    reasons = [capacity.waiting for _, capacity in serving]
    return None if None in reasons else next(reason for reason in reasons if reason is not None)


def _why_not(task: str, holding: _Holding, digest: str | None) -> ApiError:
    digests = _workers_by_digest(holding)
    if digest is not None and digests and digest not in digests:
        return DigestDiffers(
            f"task {task!r}: the run began with digest {digest[:12]}, its workers have {_shown(holding)}"
        )
    waiting = _waiting(holding, digest if digest in digests else None)
    if waiting is not None:
        return NotReady(f"task {task!r}: {waiting}", retry_after_s=1.0)
    return NoCapacity(f"every worker of task {task!r} is full", retry_after_s=1.0)


def _shown(holding: _Holding) -> str:
    """The digests and their workers as text, the rarest digest first."""
    digests = sorted(_workers_by_digest(holding).items(), key=lambda held: (len(held[1]), held[0]))
    return "; ".join(f"{digest[:12]}: {_some(workers)}" for digest, workers in digests)


def _some(names: list[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join([*sorted(names)[:NAMES_SHOWN], *([f"{more} more"] if more > 0 else [])])
