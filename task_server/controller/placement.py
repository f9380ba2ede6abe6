"""Pure: which workers live, where a session goes, and what was lost.

Everything follows from the latest heartbeats, so nothing can drift; only placements that no heartbeat can know yet are
remembered beside them. `now` is in seconds on any monotonic clock.
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
"""Of the workers that hold one digest."""


@dataclass(frozen=True, slots=True)
class WorkerRef:
    """A worker chosen for a session, or holding it."""

    worker: str
    boot: str
    url: str


@dataclass(slots=True)
class _Worker:
    beat: Heartbeat
    heard: float
    sessions: frozenset[str] = frozenset()
    placed: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Sessions sent there that no heartbeat has listed: their task, and when they were sent."""

    @property
    def ref(self) -> WorkerRef:
        return WorkerRef(self.beat.worker, self.beat.boot, self.beat.url)

    def standing(self, task: str) -> TaskCapacity | None:
        """As last heard, less what was placed since."""
        standing = next((standing for standing in self.beat.tasks if standing.name == task), None)
        if standing is None:
            return None
        return standing.model_copy(update={"free": max(0, standing.free - self._placed_since(task))})

    def _placed_since(self, task: str) -> int:
        """Placements of a task since the worker was heard; they stand last."""
        since = itertools.takewhile(lambda placed: placed[1] >= self.heard, reversed(self.placed.values()))
        return sum(name == task for name, _ in since)


_Holding = Sequence[tuple[_Worker, TaskCapacity]]
"""The workers of a task, with what each can take of it."""


class Placement:
    """What the controller knows of its workers."""

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._workers: dict[str, _Worker] = {}
        self._boots: dict[str, str] = {}
        """The boot that had a name last, also after it was lost."""
        self._superseded: dict[str, set[str]] = {}
        """Boots that are refused as long as the worker lives that has their name now: whichever of them was meant, a
        late beat of a dead process would else keep its living successor out for ever."""
        self._lost: dict[str, float] = {}
        self._environments: dict[str, str] = {}
        """The environment of every task ever heard of, by the task's name."""

    def heartbeat(self, beat: Heartbeat, now: float) -> tuple[str, ...]:
        """Take what a worker says; a late beat changes nothing. Those of its sessions that live at another worker now.

        Raises TurnConflict where another process took its name since.
        """
        if beat.boot in self._superseded.get(beat.worker, ()):
            raise TurnConflict(f"another process has taken the name {beat.worker!r}; give each worker its own")
        known = self._workers.get(beat.worker)
        if known is not None and known.beat.boot == beat.boot and beat.sequence <= known.beat.sequence:
            return ()
        superseded = self._superseded.get(beat.worker, set())
        for other in [other.ref for other in self._workers.values() if other.beat.boot != beat.boot]:
            if other.worker == beat.worker or other.url == beat.url:  # its name or its address is another's now
                self.forget(other, now)
        before = self._boots.get(beat.worker, beat.boot)
        if before != beat.boot:
            self._superseded[beat.worker] = superseded | {before}
        self._boots[beat.worker] = beat.boot
        return self._take(beat, now)

    def _take(self, beat: Heartbeat, now: float) -> tuple[str, ...]:
        known = self._workers.get(beat.worker)
        mine = known.sessions | known.placed.keys() if known is not None else frozenset()
        # Sessions are placed anew only while their worker is taken for lost: whoever comes back with one has the older.
        others = self._held_of(frozenset(beat.sessions) - mine)
        elsewhere = tuple(session for session in beat.sessions if session in others)
        sessions = frozenset(beat.sessions).difference(elsewhere)
        placed = known.placed if known is not None else {}
        placed = {
            session: (task, at)
            for session, (task, at) in placed.items()
            if session not in sessions and now - at < self._lease_s
        }
        self._workers[beat.worker] = _Worker(beat, now, sessions, placed)
        self._environments.update({standing.name: standing.environment for standing in beat.tasks})
        for session in self._lost.keys() & sessions:
            del self._lost[session]
        return elsewhere

    def place(
        self, session: str, task: str, now: float, avoiding: Collection[str] = (), digest: str | None = None
    ) -> WorkerRef:
        """Where the session is to be started: where it is already, else at the least loaded worker with a free slot.

        Only workers with the expected digest count; where none is expected, all workers must have the same.
        Raises WorkerLost where the worker that had it was lost: it may live there, and is to live nowhere else.
        Raises UnknownTask, DigestDiffers, NotReady, NoCapacity.
        """
        holder = self._holder(session)
        if holder is not None and holder.beat.worker not in avoiding:
            return holder.ref
        if holder is None and session in self._lost:
            raise WorkerLost(f"the worker of session {session} is gone")
        holding = self._known(task)
        free = [
            (1 - standing.free / max(standing.total, standing.free), worker.beat.worker, worker)
            for worker, standing in _serving(holding, digest)
            if standing.free > 0 and worker.beat.worker not in avoiding
        ]
        if not free:
            raise _why_not(task, holding, digest)
        _, _, chosen = min(free)
        chosen.placed[session] = (task, now)
        return chosen.ref

    def refused(self, session: str, worker: str) -> None:
        """The worker did not take the session after all."""
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
        """A worker that can say something about a task, of those with the expected digest where there are any.

        Raises UnknownTask, NotReady.
        """
        holding = self._known(task)
        expected = digest if digest in _workers_by_digest(holding) else None
        ready = [worker for worker, standing in _serving(holding, expected) if standing.digest is not None]
        if not ready:
            why = _waiting(holding, expected) or "its data are not read yet"
            raise NotReady(f"task {task!r}: {why}", retry_after_s=1.0)
        return ready[0].ref

    def forget(self, ref: WorkerRef, now: float) -> None:
        """The worker is gone, and its sessions with it. Should it still live, its next heartbeat says so."""
        gone = self._workers.get(ref.worker)
        if gone is not None and gone.ref == ref:
            del self._workers[ref.worker]
            self._superseded.pop(ref.worker, None)
            self._lost.update(dict.fromkeys([*gone.sessions, *gone.placed], now))

    def tick(self, now: float) -> tuple[Heartbeat, ...]:
        """Drop the workers whose lease ran out; what each of them said last."""
        silent = [worker for worker in self._workers.values() if now - worker.heard >= self._lease_s]
        for worker in silent:
            self.forget(worker.ref, now)
        self._lost = {session: at for session, at in self._lost.items() if now - at < REMEMBER_LOST_S}
        return tuple(worker.beat for worker in silent)

    def workers(self) -> tuple[Heartbeat, ...]:
        """The latest heartbeat of every live worker."""
        return tuple(worker.beat for worker in self._workers.values())

    def standings(self) -> tuple[TaskCapacity, ...]:
        """Every task ever heard of, over the workers that hold it now; in the order of `TaskList.tasks`."""
        return tuple(standing for task in sorted(self._environments) for standing in self._standings(task))

    def _standings(self, task: str) -> Iterator[TaskCapacity]:
        holding = list(self._holding(task))
        digests = list(_workers_by_digest(holding))
        if len(digests) > 1:
            for digest in digests:
                yield self._standing(task, _serving(holding, digest), digest)
        yield self._standing(task, holding, digests[0] if len(digests) == 1 else None)

    def _standing(self, task: str, holding: _Holding, digest: str | None) -> TaskCapacity:
        waiting = _waiting(holding, None)
        return TaskCapacity(
            name=task,
            environment=self._environments[task],
            total=sum(standing.total for _, standing in holding),
            free=0 if waiting is not None else sum(standing.free for _, standing in holding),
            waiting=waiting,
            digest=digest,
        )

    def _known(self, task: str) -> _Holding:
        """The workers that hold a task. Raises UnknownTask where none ever did."""
        if task not in self._environments:
            raise UnknownTask(f"no worker holds a task {task[:100]!r}; known: {', '.join(sorted(self._environments))}")
        return list(self._holding(task))

    def _holding(self, task: str) -> Iterator[tuple[_Worker, TaskCapacity]]:
        for worker in self._workers.values():
            standing = worker.standing(task)
            if standing is not None and not worker.beat.draining:
                yield worker, standing

    def _held_of(self, sessions: frozenset[str]) -> frozenset[str]:
        """Those that any worker has; costs no more than what all workers have, however many are asked for."""
        held = (
            sessions.intersection(names)
            for worker in self._workers.values()
            for names in (worker.sessions, worker.placed)
        )
        return frozenset().union(*held)

    def _holder(self, session: str) -> _Worker | None:
        """Placed beats listed: where both say so, the placement is the newer."""
        listed = None
        for worker in self._workers.values():
            if session in worker.placed:
                return worker
            if session in worker.sessions:
                listed = worker
        return listed


def _workers_by_digest(holding: _Holding) -> dict[str, list[str]]:
    """digest -> the workers that have it; those that have not read their data yet have none."""
    workers: dict[str, list[str]] = {}
    for worker, standing in holding:
        if standing.digest is not None:
            workers.setdefault(standing.digest, []).append(worker.beat.worker)
    return workers


def _serving(holding: _Holding, digest: str | None) -> _Holding:
    """The workers that may serve who expects a digest; where they differ, none for who expects none."""
    if digest is None:
        return holding if len(_workers_by_digest(holding)) < 2 else []
    return [(worker, standing) for worker, standing in holding if standing.digest == digest]


def _waiting(holding: _Holding, digest: str | None) -> str | None:
    """Why no session of a task can start anywhere, None where one could but for free slots."""
    if not holding:
        return "no live worker holds it"
    serving = _serving(holding, digest)
    if not serving:
        return f"its workers differ in data or version, give all the same ({_shown(holding)})"
    reasons = [standing.waiting for _, standing in serving]
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
    """Which workers have which digest, the rarest digest first."""
    digests = sorted(_workers_by_digest(holding).items(), key=lambda held: (len(held[1]), held[0]))
    return "; ".join(f"{digest[:12]}: {_some(workers)}" for digest, workers in digests)


def _some(names: list[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join([*sorted(names)[:NAMES_SHOWN], *([f"{more} more"] if more > 0 else [])])
