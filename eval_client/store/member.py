"""Membership of this client in a run: its shard, its hold on the run's lock, and its heartbeats."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import AsyncIterator

import sqlalchemy as sa

from eval_client.core.failure_detector import BEAT_S, LEASE_S, FailureDetector
from eval_client.store import lock, shards
from eval_client.store.connection import Fenced, RunOver, StoreError, is_transient
from eval_client.store.store import Store

log = logging.getLogger(__name__)

SURE_FOR_S = 0.7 * LEASE_S
"""For so long after the start of a committed heartbeat no other client can have declared this one lost."""
LOOK_S = 0.05
NOT_ENDED = "run %r: its clients did not shut down cleanly; waiting %.0f s for heartbeats of one that may still run"


class Member:
    """The only client of a run. Another client can take the run over only with the run's lock."""

    alone = True

    def __init__(self, store: Store, shard: int, *, joined: bool = False) -> None:
        self.store, self.shard, self.joined = store, shard, joined

    async def ensure_lease(self) -> None:
        """Return once no other client can play this one's trials. Raises Fenced."""

    def fenced(self) -> Fenced | None:
        """Why this client's writes are rejected; None while they are accepted."""
        return None


class ShardMember(Member):
    """One of several clients of a run. Its own thread sends heartbeats, so a busy event loop delays none."""

    alone = False

    def __init__(self, store: Store, shard: int, held: sa.Connection, *, joined: bool) -> None:
        super().__init__(store, shard, joined=joined)
        self._held: sa.Connection | None = held
        """The connection that holds the lock and sends the heartbeats. If this client is killed, the server closes the
        connection and releases the lock."""
        self._locked = True
        self._sure_until = time.monotonic() + SURE_FOR_S
        self._fenced: Fenced | None = None
        self._over = threading.Event()
        self._start_heartbeats()

    def _start_heartbeats(self) -> None:
        self._thread = threading.Thread(target=self._send_heartbeats, name="heartbeats", daemon=True)
        self._thread.start()

    def _stop_heartbeats(self) -> None:
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
        """Stop the heartbeats, leave the run unless that is done already, and release the lock."""
        self._stop_heartbeats()
        with contextlib.suppress(sa.exc.SQLAlchemyError, Fenced):
            shards.leave(self.store.engine, self.store.run, self.shard)
        if self._held is not None:
            lock.release(self._held)

    def _send_heartbeats(self) -> None:
        while self._fenced is None and not self._over.wait(BEAT_S):
            self._try_heartbeat(time.monotonic())

    def _try_heartbeat(self, begun: float) -> None:
        try:
            self._send_heartbeat(begun)
        except Fenced as fenced:
            self._fenced = fenced
        except sa.exc.SQLAlchemyError as error:
            if not is_transient(error):
                raise
            self._drop()

    def _send_heartbeat(self, begun: float) -> None:
        if self._held is None:
            self._held, self._locked = self.store.engine.connect(), False
        if not self._locked:  # another client may hold it exclusively while it watches our heartbeats
            self._locked = lock.share(self._held, self.store.run)
        with self._held.begin():
            shards.send_heartbeat(self._held, self.store.run, self.shard)
        self._sure_until = begun + SURE_FOR_S

    def _drop(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.invalidate()
            held.close()


@contextlib.asynccontextmanager
async def membership(store: Store, *, joins: bool = False, either: bool = False) -> AsyncIterator[Member]:
    """Be a member of a run while inside: as its first client, which ends all earlier shards, or beside other clients.

    `joins` means beside others; `either` means beside others if there are any, else as the first.

    Raises StoreError where that is impossible: other clients hold the run, or there are none to join.
    """
    if not shards.several_may_work(store.engine):
        with lock.sole_client(store):
            store.upgrade()
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
            store.upgrade()
            shard = shards.join(store.engine, store.run)
            if not others_hold_it:
                lock.make_shared(held, store.run)
            return ShardMember(store, shard, held, joined=True)
        if alone_too:
            return _take_over(store, held)
        if store.is_over():
            raise RunOver(f"run {store.run!r} is over")
        raise StoreError(
            f"run {store.run!r}: no client is playing it; start or resume it first: proctor resume {store.run}"
        )
    except BaseException:
        lock.release(held)
        raise


async def _others_live(store: Store) -> bool:
    """Whether other clients are alive although this one holds the lock exclusively. Takes a lease if shards are live.

    A restart of the database closes the clients' connections and so releases their locks; each takes its lock again
    with its next heartbeat.
    """
    failure_detector, first = FailureDetector(), shards.observed_heartbeats(store.engine, store.run)
    heartbeats = first
    while set(failure_detector.look(time.monotonic(), heartbeats)) != heartbeats.keys():
        if heartbeats is first:
            log.warning(NOT_ENDED, store.run, LEASE_S)
        await asyncio.sleep(BEAT_S)
        heartbeats = shards.observed_heartbeats(store.engine, store.run)
        if any(first.get(shard) != count for shard, count in heartbeats.items()):
            return True
    return False


def _take_over(store: Store, held: sa.Connection) -> ShardMember:
    """Upgrade the run and end all earlier shards while the lock is exclusive, then share the lock."""
    store.upgrade()
    shard = store.take_over()
    lock.make_shared(held, store.run)
    return ShardMember(store, shard, held, joined=False)


IDLE_IN_TRANSACTION_S = 5
"""The server closes a connection that is idle in a transaction for longer, since its locks block other clients."""
_SETTINGS = {
    "idle_in_transaction_session_timeout": f"{IDLE_IN_TRANSACTION_S}s",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}


def _connection(store: Store) -> sa.Connection:
    """A new connection. The server drops it, and all later ones of this engine, soon after their client is gone."""

    def set_up(connection: object, _record: object) -> None:
        for name, value in _SETTINGS.items():
            connection.execute(f"SET {name} = '{value}'")  # type: ignore[attr-defined]
        connection.commit()  # type: ignore[attr-defined]

    sa.event.listen(store.engine, "connect", set_up)
    store.engine.dispose()
    return store.engine.connect()
