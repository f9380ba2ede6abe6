"""The run's store in memory, and the journal without its thread: commits take time, fail, or succeed unheard."""

import asyncio
import contextlib
import functools
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from enum import Enum

import sqlalchemy as sa

from eval_client.store.connection import Fenced
from eval_client.store.journal import MAX_GROUP, RETRY_S, Journal, JournalClosed, Operation, Write, resolve
from eval_client.store.store import Store
from eval_client.store.tables import metadata


class Health(Enum):
    """What becomes of commits for a while."""

    WELL = "well"
    REFUSING = "refusing"
    UNHEARD = "unheard"
    """They are made, and then the connection breaks."""


class Disk:
    """What all journals of a history write to."""

    def __init__(
        self,
        rng: random.Random,
        store: Store,
        wrote: Callable[[Sequence[Operation]], None],
        problem: Callable[[str], None],
    ) -> None:
        self.health = Health.WELL
        self.rng = rng
        self.store = store
        self.wrote, self.problem = wrote, problem
        """Told of what has just become durable, and of what should not have."""
        self.objections: Callable[[Sequence[Operation]], list[str]] = lambda operations: []
        """Why the process that runs now must not write this, before it does."""

    def next_health(self) -> Health:
        """What becomes of a commit that is made now."""
        return self.health if self.rng.random() < 0.7 else Health.WELL


class DiskJournal(Journal):
    """Journal, with its writer as callbacks of the event loop."""

    def __init__(
        self, disk: Disk, store: Store, fence: int, on_trouble: Callable[[str | None], None] = lambda _: None
    ) -> None:
        self._disk, self._store, self._fence, self._on_trouble = disk, disk.store, fence, on_trouble
        self._loop = asyncio.get_running_loop()
        self._closing = threading.Event()
        self._acknowledged, self._compiled = None, {}
        self.turns = 0
        self._waiting: list[Write] = []
        self._writing = False
        self._unknown: list[Write] = []
        """A group whose commit may have been made."""
        self._told = False
        """Its commit was made, and the disk has told so."""
        self._idle = asyncio.Event()

    async def close(self) -> None:
        self._closing.set()
        while self._writing:
            self._idle.clear()
            await self._idle.wait()

    async def _put(self, *operations: Operation) -> None:
        if self._closing.is_set():
            raise JournalClosed("the journal is closed")
        done: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(Write(operations, done))
        if not self._writing:
            self._writing = True
            self._loop.call_later(self._latency_s(), self._commit)
        await done

    def _commit(self) -> None:
        """One group; the next follows when its outcome is known."""
        group = self._unknown or self._waiting[:MAX_GROUP]
        again = bool(self._unknown)
        if not again:
            del self._waiting[: len(group)]
        health = self._disk.next_health()
        error: Exception | None = None
        if health is not Health.REFUSING:
            objections = [] if self._told else self._disk.objections(_operations(group))
            try:
                self.commit(group, again=again)
                self._tell(group, objections)
            except Fenced as fenced:
                error = fenced
        if health is Health.WELL or error is not None:
            self._unknown, self._told = [], False
            self._loop.call_later(self._latency_s(), self._acknowledge, group, error)
            return
        self._unknown = group
        self._on_trouble("the store can't be written to")
        if self._closing.is_set():
            self._acknowledge(group, JournalClosed("the store can't be written to"))
        else:
            self._loop.call_later(RETRY_S, self._commit)

    def _acknowledge(self, group: list[Write], error: Exception | None) -> None:
        self._on_trouble(None)
        resolve(group, error)
        if self._waiting:
            self._loop.call_later(self._latency_s(), self._commit)
        else:
            self._writing = False
            self._idle.set()

    def _tell(self, group: list[Write], objections: list[str]) -> None:
        if not self._told:
            self._told = True
            for objection in objections:
                self._disk.problem(objection)
            self._disk.wrote(_operations(group))

    def _latency_s(self) -> float:
        return 0.03 * self._disk.rng.random() ** 2


def _operations(group: list[Write]) -> list[Operation]:
    return [operation for write in group for operation in write.operations]


@functools.cache
def _engine() -> sa.Engine:
    engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
    metadata.create_all(engine)
    return engine


@contextlib.contextmanager
def empty_store(run: str) -> Iterator[Store]:
    """A store without rows, in the memory of this process; a process that dies loses what it had not committed."""
    store = Store(_engine(), run)
    try:
        yield store
    finally:
        with store.engine.begin() as connection:
            for table in metadata.sorted_tables:
                connection.execute(table.delete())
