"""This client as one of those that work on a run: its shard, the run's lock, and the sign of life it gives."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import AsyncIterator

import sqlalchemy as sa

from eval_client.core.failure_detector import BEAT_S, LEASE_S, FailureDetector
from eval_client.store import lock, shards
from eval_client.store.connection import RunOver, StoreError, passes
from eval_client.store.shards import Fenced
from eval_client.store.store import Store

log = logging.getLogger(__name__)

SURE_FOR_S = 0.7 * LEASE_S
"""So long after a beat was begun no other client can have taken this one for lost."""
LOOK_S = 0.05
UNENDED = "run %r: its clients did not leave in order; looking for %.0f s whether any of them is still at work"


class Member:
    """A client that is alone on its run: nobody takes anything away from it but with the lock."""

    alone = True

    def __init__(self, store: Store, shard: int, *, joined: bool = False) -> None:
        self.store, self.shard, self.joined = store, shard, joined

    async def ensure_lease(self) -> None:
        """Come back once no other client can play what this one plays. Raises Fenced."""

    def fenced(self) -> Fenced | None:
        """Why nothing of this client is written any more, None while it is."""
        return None


class ShardMember(Member):
    """One of several clients. A thread of its own gives the sign of life, whatever the event loop is at."""

    alone = False

    def __init__(self, store: Store, shard: int, held: sa.Connection, *, joined: bool) -> None:
        super().__init__(store, shard, joined=joined)
        self._held: sa.Connection | None = held
        """Has the lock, and beats. The server frees the lock with it, should this client be killed."""
        self._locked = True
        self._sure_until = time.monotonic() + SURE_FOR_S
        self._fenced: Fenced | None = None
        self._over = threading.Event()
        self._start_beating()

    def _start_beating(self) -> None:
        self._thread = threading.Thread(target=self._beat_on, name="beats", daemon=True)
        self._thread.start()

    def _stop_beating(self) -> None:
        self._over.set()
        self._thread.join()

    async def ensure_lease(self) -> None:
        while True:
            if self._fenced is not None:
                raise self._fenced
            if time.monotonic() <= self._sure_until:
                return
            await asyncio.sleep(LOOK_S)

    def fenced(self) -> Fenced | None:
        return self._fenced

    def leave(self) -> None:
        """Give no further sign, and leave the run where that was not done yet."""
        self._stop_beating()
        with contextlib.suppress(sa.exc.SQLAlchemyError, Fenced):
            shards.leave(self.store.engine, self.store.run, self.shard)
        if self._held is not None:
            lock.release(self._held)

    def _beat_on(self) -> None:
        while self._fenced is None and not self._over.wait(BEAT_S):
            self._try_to_beat(time.monotonic())

    def _try_to_beat(self, begun: float) -> None:
        try:
            self._beat(begun)
        except Fenced as fenced:
            self._fenced = fenced
        except sa.exc.SQLAlchemyError as error:
            if not passes(error):
                raise
            self._drop()

    def _beat(self, begun: float) -> None:
        if self._held is None:
            self._held, self._locked = self.store.engine.connect(), False
        if not self._locked:  # somebody may have it alone, who looks whether the run is worked on, and by our beats
            self._locked = lock.share(self._held, self.store.run)
        with self._held.begin():
            shards.beat(self._held, self.store.run, self.shard)
        self._sure_until = begun + SURE_FOR_S

    def _drop(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.invalidate()
            held.close()


@contextlib.asynccontextmanager
async def membership(store: Store, *, joins: bool = False, either: bool = False) -> AsyncIterator[Member]:
    """Work on a run while inside: as its first client, ending whatever was left of others, or beside others.

    `either` is beside others where there are some, else as the first.

    Raises StoreError where that can't be: other clients hold the run, or there are none to join.
    """
    if not shards.several_may_work(store.engine):
        with lock.sole_client(store):
            yield Member(store, store.take_over())
        return
    member = await (_join(store, alone_too=either) if joins or either else _begin(store))
    try:
        yield member
    finally:
        member.leave()


async def _begin(store: Store) -> ShardMember:
    held = _connection(store)
    try:
        lock.seize(held, store.run)
        if await _others_live(store):
            raise lock.joinable(store.run)
        return _take_over(store, held)
    except BaseException:
        lock.release(held)
        raise


async def _join(store: Store, *, alone_too: bool) -> ShardMember:
    held = _connection(store)
    try:
        others_hold_it = await lock.enter(held, store.run)
        if others_hold_it or await _others_live(store):
            shard = shards.join(store.engine, store.run)
            if not others_hold_it:
                lock.let_in(held, store.run)
            return ShardMember(store, shard, held, joined=True)
        if alone_too:
            return _take_over(store, held)
        if store.is_over():
            raise RunOver(f"run {store.run!r} is over")
        raise StoreError(
            f"run {store.run!r}: no client works on it; begin or resume it first: proctor resume {store.run}"
        )
    except BaseException:
        lock.release(held)
        raise


async def _others_live(store: Store) -> bool:
    """With the lock alone: whether clients live nevertheless, which takes a lease to find out where any may.

    They lost the lock with their connections, in a restart of the database, and take it again one by one.
    """
    failure_detector, first = FailureDetector(), shards.observed_heartbeats(store.engine, store.run)
    beats = first
    while set(failure_detector.look(time.monotonic(), beats)) != beats.keys():
        if beats is first:
            log.warning(UNENDED, store.run, LEASE_S)
        await asyncio.sleep(BEAT_S)
        beats = shards.observed_heartbeats(store.engine, store.run)
        if any(first.get(shard) != count for shard, count in beats.items()):
            return True
    return False


def _take_over(store: Store, held: sa.Connection) -> ShardMember:
    """With the lock alone: end what was left of others, then let others in."""
    shard = store.take_over()
    lock.let_in(held, store.run)
    return ShardMember(store, shard, held, joined=False)


STANDSTILL_S = 5
"""A client that stands still in the midst of a transaction holds others up no longer than this."""
_SETTINGS = {
    "idle_in_transaction_session_timeout": f"{STANDSTILL_S}s",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}


def _connection(store: Store) -> sa.Connection:
    """A new connection; this one and all later ones are dropped by the server soon after their client is gone."""

    def set_up(connection: object, _record: object) -> None:
        for name, value in _SETTINGS.items():
            connection.execute(f"SET {name} = '{value}'")  # type: ignore[attr-defined]
        connection.commit()  # type: ignore[attr-defined]

    sa.event.listen(store.engine, "connect", set_up)
    store.engine.dispose()
    return store.engine.connect()
