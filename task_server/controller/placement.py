"""Pure: which workers are live, where a session is placed, and which sessions are lost.

The state is a function of the latest heartbeats, so it can't drift from them; only placements newer than a worker's
heartbeat are kept beside it. `now` is in seconds on any monotonic clock.
"""

import itertools
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from task_server.controller.task_pool import TaskPool, WorkerSlots
from task_server.shares import Holder, Shares, holder_of
from task_server.wire.errors import TurnConflict, UnknownSession, UnknownTask, WorkerLost
from task_server.wire.messages import NOBODY, Sender, TaskCapacity
from task_server.wire.worker_messages import Heartbeat

REMEMBER_LOST_S = 600.0


@dataclass(frozen=True, slots=True)
class WorkerRef:
    """One process of a worker: its name, its boot id and its URL."""

    worker: str
    boot: str
    url: str


class _Placed(NamedTuple):
    """A session that was placed: its task, when, and for whom."""

    task: str
    at: float
    holder: Holder


@dataclass(slots=True)
class _Worker:
    heartbeat: Heartbeat
    received_at: float
    since: float
    """When its process reported first."""
    sessions: frozenset[str] = frozenset()
    placed: dict[str, "_Placed"] = field(default_factory=dict)
    """Sessions placed on this worker that no heartbeat has listed yet."""

    @property
    def ref(self) -> WorkerRef:
        return WorkerRef(self.heartbeat.worker, self.heartbeat.boot, self.heartbeat.url)

    def is_up_to_date(self, heartbeat: Heartbeat) -> bool:
        """Whether a heartbeat is a late or repeated one of the same process."""
        return self.heartbeat.boot == heartbeat.boot and heartbeat.sequence <= self.heartbeat.sequence

    def repeats(self, heartbeat: Heartbeat) -> bool:
        """Whether a heartbeat says what the latest one said, with no session elsewhere and none placed since."""
        before = self.heartbeat
        return (
            not self.placed
            and len(self.sessions) == len(before.sessions)
            and heartbeat.sessions == before.sessions
            and (heartbeat.url, heartbeat.draining, heartbeat.tasks) == (before.url, before.draining, before.tasks)
            and heartbeat.holds == before.holds
        )

    def slots_of(self, capacity: TaskCapacity) -> WorkerSlots:
        """The slots of a task in the latest heartbeat, less the placements since."""
        free = max(0, capacity.free - self._placed_since(capacity.name))
        return WorkerSlots(capacity.total, free, capacity.waiting, capacity.digest)

    def _placed_since(self, task: str) -> int:
        """Placements of a task since the latest heartbeat; `placed` is in order of time, so they are its last ones."""
        return sum(placed.task == task for placed in self.placed_since())

    def placed_since(self) -> Iterator[_Placed]:
        """The placements since the latest heartbeat."""
        return itertools.takewhile(lambda placed: placed.at >= self.received_at, reversed(self.placed.values()))

    def holds(self) -> Iterator[tuple[str, Holder, int]]:
        """(task, who plays, sessions), by the latest heartbeat and the placements since."""
        yield from ((hold.task, Holder(hold.user, hold.run), hold.sessions) for hold in self.heartbeat.holds)
        yield from ((placed.task, placed.holder, 1) for placed in self.placed_since())


class Placement:
    """The controller's view of its workers."""

    def __init__(self, lease_s: float, shares: Shares | None = None) -> None:
        self._lease_s = lease_s
        self.shares = shares or Shares()
        self._workers: dict[str, _Worker] = {}
        self._boots: dict[str, str] = {}
        """worker name -> its newest boot, kept after the worker is lost"""
        self._superseded: dict[str, set[str]] = {}
        """worker name -> earlier boots, refused while the worker that has the name now is live. Without this, a late
        heartbeat of a dead process would shut out its live successor."""
        self._lost: dict[str, tuple[float, str]] = {}
        """lost session -> when it was lost, and how"""
        self._replaced: list[tuple[Heartbeat, str]] = []
        """The last heartbeats of processes whose name or address another one took, since the last tick, with which."""
        self._by_url: dict[str, str] = {}
        """URL -> the name of the worker that announced it last"""
        self._holders: dict[str, str] = {}
        """session -> the name of the worker that holds it: that of its latest placement, or that first listed it"""
        self._pools: dict[str, TaskPool] = {}
        """task -> its workers, for every task that any heartbeat has listed"""
        self._changed: set[str] = set()
        """The tasks whose entries in `_listed` may be out of date."""
        self._listed: dict[str, tuple[TaskCapacity, ...]] = {}
        self._capacities: tuple[TaskCapacity, ...] = ()

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
        for name in (heartbeat.worker, self._by_url.get(heartbeat.url, "")):
            other = self._workers.get(name)
            if other is not None and other.heartbeat.boot != heartbeat.boot:  # a new process has its name or address
                cause = f"another process has taken its {'name' if name == heartbeat.worker else 'address'}"
                self._replaced.append((other.heartbeat, cause))
                self.forget(other.ref, now, cause)
        before = self._boots.get(heartbeat.worker, heartbeat.boot)
        if before != heartbeat.boot:
            self._superseded[heartbeat.worker] = superseded | {before}
        self._boots[heartbeat.worker] = heartbeat.boot
        return self._record(heartbeat, now)

    def _record(self, heartbeat: Heartbeat, now: float) -> tuple[str, ...]:
        name, known = heartbeat.worker, self._workers.get(heartbeat.worker)
        if known is not None and known.repeats(heartbeat):
            known.heartbeat, known.received_at = heartbeat, now
            return ()
        # A session is placed again only after its worker was lost, so the returning worker has the older copy.
        elsewhere = tuple(session for session in heartbeat.sessions if self._holders.get(session, name) != name)
        sessions = frozenset(heartbeat.sessions).difference(elsewhere)
        placed: dict[str, _Placed] = {}
        if known is not None:
            placed = {
                session: each
                for session, each in known.placed.items()
                if session not in sessions and now - each.at < self._lease_s
            }
            self._count(known, -1)
            self._release(name, (known.sessions | known.placed.keys()) - sessions - placed.keys())
            self._withdraw(known, but={capacity.name for capacity in heartbeat.tasks})
        self._holders.update(dict.fromkeys(sessions, name))
        worker = self._workers[name] = _Worker(heartbeat, now, now if known is None else known.since, sessions, placed)
        self._count(worker, 1)
        if known is not None and self._by_url.get(known.heartbeat.url) == name:
            del self._by_url[known.heartbeat.url]  # another worker may have that address now
        self._by_url[heartbeat.url] = name
        for session in self._lost.keys() & sessions:
            del self._lost[session]
        self._offer(worker)
        return elsewhere

    def _count(self, worker: _Worker, sign: int) -> None:
        for task, holder, sessions in worker.holds():
            self.shares.hold(task, holder, sign * sessions)

    def _offer(self, worker: _Worker) -> None:
        """Record a worker's slots of each task."""
        for capacity in worker.heartbeat.tasks:
            pool = self._pools.get(capacity.name)
            if pool is None:
                pool = self._pools[capacity.name] = TaskPool(capacity.name)
                self._changed.add(capacity.name)
            if pool.environment != capacity.environment:
                pool.environment = capacity.environment
                self._changed.add(capacity.name)
            self._set(capacity.name, worker, None if worker.heartbeat.draining else worker.slots_of(capacity))

    def _withdraw(self, worker: _Worker, but: Collection[str] = ()) -> None:
        """Take a worker out of its tasks, but of those named."""
        for capacity in worker.heartbeat.tasks:
            if capacity.name not in but:
                self._set(capacity.name, worker, None)

    def _set(self, task: str, worker: _Worker, slots: WorkerSlots | None) -> None:
        if self._pools[task].set(worker.heartbeat.worker, slots):
            self._changed.add(task)

    def _release(self, worker: str, sessions: Collection[str]) -> tuple[str, ...]:
        """The worker holds these sessions no longer; those that it did hold."""
        held = tuple(session for session in sessions if self._holders.get(session) == worker)
        for session in held:
            del self._holders[session]
        return held

    def place(
        self,
        session: str,
        task: str,
        now: float,
        avoiding: Collection[str] = (),
        digest: str | None = None,
        *,
        sender: Sender = NOBODY,
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
            raise WorkerLost(self._lost[session][1])
        pool = self._pool(task)
        chosen = self._workers[pool.least_loaded(digest, avoiding)]
        self.shares.take(task, holder_of(sender), pool.capacities()[-1].free, now)
        if holder is not None:
            holder.sessions -= {session}  # its next heartbeat is told that the session is elsewhere
        chosen.placed[session] = _Placed(task, now, holder_of(sender))
        self._holders[session] = chosen.heartbeat.worker
        slots = pool.slots(chosen.heartbeat.worker)
        assert slots is not None
        self._set(task, chosen, slots._replace(free=slots.free - 1))
        return chosen.ref

    def refused(self, session: str, worker: str) -> None:
        """Undo a placement that the worker refused."""
        refuser = self._workers.get(worker)
        if refuser is not None and session in refuser.placed:
            if any(placed is refuser.placed[session] for placed in refuser.placed_since()):
                self.shares.hold(refuser.placed[session].task, refuser.placed[session].holder, -1)
            del refuser.placed[session]
            self._release(worker, (session,))
            self._offer(refuser)

    def holder(self, session: str) -> WorkerRef:
        """The worker that holds a session. Raises WorkerLost, UnknownSession."""
        holder = self._holder(session)
        if holder is not None:
            return holder.ref
        if session in self._lost:
            raise WorkerLost(self._lost[session][1])
        raise UnknownSession(f"no worker holds session {session}")

    def any_holding(self, task: str, digest: str | None = None) -> WorkerRef:
        """Any worker that has read a task's data; one with the expected digest if there is one.

        Raises UnknownTask, NotReady.
        """
        return self._workers[self._pool(task).any_holding(digest)].ref

    def forget(self, ref: WorkerRef, now: float, cause: str) -> None:
        """Drop a worker; its sessions are lost. If the worker is in fact live, its next heartbeat restores both."""
        gone = self._workers.get(ref.worker)
        if gone is not None and gone.ref == ref:
            del self._workers[ref.worker]
            self._superseded.pop(ref.worker, None)
            if self._by_url.get(ref.url) == ref.worker:
                del self._by_url[ref.url]
            self._withdraw(gone)
            self._count(gone, -1)
            lost = self._release(ref.worker, gone.sessions | gone.placed.keys())
            self._lost.update(dict.fromkeys(lost, (now, f"worker {ref.worker} is lost: {cause}")))

    def tick(self, now: float) -> tuple[tuple[Heartbeat, str], ...]:
        """Drop the workers whose lease has expired; the last heartbeat of each, and of each replaced one, and why."""
        silent = [worker for worker in self._workers.values() if now - worker.received_at >= self._lease_s]
        cause = f"no heartbeat for {self._lease_s:g} s"
        for worker in silent:
            self.forget(worker.ref, now, cause)
        self._lost = {session: lost for session, lost in self._lost.items() if now - lost[0] < REMEMBER_LOST_S}
        replaced, self._replaced = self._replaced, []
        return (*replaced, *((worker.heartbeat, cause) for worker in silent))

    def workers(self) -> tuple[Heartbeat, ...]:
        """The latest heartbeat of every live worker."""
        return tuple(worker.heartbeat for worker in self._workers.values())

    def heard(self, now: float) -> dict[str, tuple[Heartbeat, float, float]]:
        """worker -> its latest heartbeat, how long its process has reported, and how long ago it did last"""
        return {
            name: (each.heartbeat, now - each.since, now - each.received_at) for name, each in self._workers.items()
        }

    @property
    def changed(self) -> bool:
        """Whether `capacities` may have changed since it was last asked for."""
        return bool(self._changed)

    def capacities(self) -> tuple[TaskCapacity, ...]:
        """The capacity of every task that any heartbeat has listed, in the order of `TaskList.tasks`.

        The same object as the last time if nothing has changed.
        """
        fresh = {task: self._pools[task].capacities() for task in self._changed}
        self._changed.clear()
        if any(self._listed.get(task) != capacities for task, capacities in fresh.items()):
            self._listed.update(fresh)
            self._capacities = tuple(capacity for task in sorted(self._listed) for capacity in self._listed[task])
        return self._capacities

    def _pool(self, task: str) -> TaskPool:
        """The workers of a task. Raises UnknownTask if no worker ever held it."""
        if task not in self._pools:
            raise UnknownTask(f"no worker holds a task {task[:100]!r}; known: {', '.join(sorted(self._pools))}")
        return self._pools[task]

    def _holder(self, session: str) -> _Worker | None:
        """The worker that holds a session."""
        name = self._holders.get(session)
        return self._workers[name] if name is not None else None
