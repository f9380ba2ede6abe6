"""The lock of a run, which one client at a time holds. It is released when its holder ends, even by SIGKILL."""

import asyncio
import contextlib
import fcntl
import hashlib
import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from eval_client.shared_disk import INSTEAD, distrust
from eval_client.store.connection import RunOver, StoreError
from eval_client.store.sqlite_file import is_writable
from eval_client.store.store import Store

log = logging.getLogger(__name__)

TURN_S = 1.0
"""How often a client that waits for its turn looks."""
PROBE_S, LOOK_S = 0.5, 0.02
"""How long a client waits for others that only look whether the lock is held, and between two tries."""
_POSTGRESQL = {
    "idle_in_transaction_session_timeout": "5s",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
"""PostgreSQL drops a connection, and so the lock, soon after its client is gone or stands still in mid-write."""


class Busy(StoreError):
    """Another client plays the run."""

    def __init__(self, run: str) -> None:
        super().__init__(
            f"run {run!r} is being played by another client; wait for that client to end, or stop it first"
        )


@contextlib.asynccontextmanager
async def taken_over(
    store: Store, ready: Callable[[], Awaitable[None]] | None = None, *, waits: bool = False
) -> AsyncIterator[int]:
    """Be the run's client while inside: hold its lock, and the fence, whose number this is.

    `ready` is awaited with the lock, before anything of the store is changed. Where another client plays the run, this
    one `waits` for its turn, or StoreError is raised. Raises RunOver where the run ended meanwhile.
    """
    if store.engine.dialect.name == "postgresql":
        sa.event.listen(store.engine, "connect", _set_up)
        store.engine.dispose()
    waited = False
    async with contextlib.AsyncExitStack() as held:
        while True:
            try:
                renew = held.enter_context(sole_client(store))
                break
            except Busy as busy:
                if not waits:
                    raise
                if not waited:
                    log.warning("%s; this one waits for its turn", str(busy).partition(";")[0])
                waited = True
                await asyncio.sleep(TURN_S)
        if waited and store.is_over():
            raise RunOver(f"run {store.run!r} is over")
        if ready is not None:
            await ready()
        store.upgrade()
        fence = store.take_over()
        await held.enter_async_context(_renewed(renew))
        yield fence


@contextlib.asynccontextmanager
async def _renewed(renew: Callable[[], None] | None) -> AsyncIterator[None]:
    """While inside, take a server's lock again after it has dropped the connection, so that the run is seen to play."""
    over = asyncio.Event()

    async def repeat() -> None:
        while renew is not None and not over.is_set():
            with contextlib.suppress(sa.exc.SQLAlchemyError, StoreError):  # the journal reports a server that is away
                await asyncio.to_thread(renew)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), TURN_S)

    renewing = asyncio.create_task(repeat())
    try:
        yield
    finally:
        over.set()
        await renewing


def sole_client(store: Store) -> contextlib.AbstractContextManager[Callable[[], None] | None]:
    """Hold the run's lock exclusively while inside. Raises StoreError when another client holds it, or where the disk's
    locks can't be trusted. What it gives takes a server's lock again, where the connection was dropped.

    In SQLite only after PROBE_S, since `is_worked_on` in another process holds the lock for a moment. In a read-only
    folder nobody can play the run, so nothing is held there.
    """
    if store.engine.dialect.name != "sqlite":
        return _server_lock(store)
    path = str(store.engine.url.database)
    if not is_writable(path):
        return contextlib.nullcontext()
    if (why := distrust(Path(path).parent)) is not None:
        raise StoreError(f"{why}; {INSTEAD}")
    return _file_lock(store, PROBE_S)


def is_worked_on(store: Store) -> bool:
    """Whether a client holds the run's lock."""
    of_file = store.engine.dialect.name == "sqlite"
    if of_file and not _lock_file(store).exists():
        return False  # the file is not created by looking
    try:
        with _file_lock(store, 0.0) if of_file else sole_client(store):
            return False
    except StoreError:
        return True


def try_lock(file: int, give_up: float, look_s: float) -> bool:
    """Take the lock of an open file, or return False where another process holds it until `give_up`."""
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= give_up:
                return False
            time.sleep(look_s)
        else:
            return True


def _set_up(connection: Any, _record: object) -> None:
    for name, value in _POSTGRESQL.items():
        connection.execute(f"SET {name} = '{value}'")
    connection.commit()


def _lock_file(store: Store) -> Path:
    return Path(f"{store.engine.url.database}.{store.run}.lock")


@contextlib.contextmanager
def _file_lock(store: Store, patience_s: float) -> Iterator[None]:
    """Hold the lock of a file, made where the folder allows it. Raises StoreError for a link or a device there."""
    path = _lock_file(store)
    try:
        made = os.O_RDWR | os.O_CREAT if is_writable(str(path)) else os.O_RDONLY
        file = os.open(path, made | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise StoreError(f"{path}: can't be opened: {error.strerror}; delete it") from error
    try:
        if not try_lock(file, time.monotonic() + patience_s, LOOK_S):
            raise Busy(store.run)
        yield
    finally:
        os.close(file)


@contextlib.contextmanager
def _server_lock(store: Store) -> Iterator[Callable[[], None]]:
    """Hold a server's lock, which lasts as long as its connection. If the server drops that, the fence guards the rows
    until it is taken again.

    Clients of version 0.2.0 share PostgreSQL's: they keep this one out too.
    """
    number = int.from_bytes(hashlib.blake2b(store.run.encode(), digest_size=7).digest(), "big")
    if store.engine.dialect.name == "postgresql":
        take, release = "pg_try_advisory_lock(:key)", "pg_advisory_unlock(:key)"
        key: dict[str, object] = {"key": number}
    else:
        take, release, key = "GET_LOCK(:key, 0)", "RELEASE_LOCK(:key)", {"key": f"proctor-{number:x}"}
    connection, lasts = store.engine.connect(), False

    def renew() -> None:
        nonlocal lasts
        try:
            query, given = ("1", {}) if lasts else (take, key)
            taken = connection.execute(sa.text(f"SELECT {query}"), given).scalar()
            connection.commit()
        except sa.exc.DBAPIError:
            lasts = False
            connection.rollback()
            raise
        if not taken:
            raise Busy(store.run)
        lasts = True

    try:
        renew()
        yield renew
    finally:
        with contextlib.suppress(sa.exc.SQLAlchemyError):  # without it the server would release the lock a moment later
            connection.rollback()
            connection.execute(sa.text(f"SELECT {release}"), key)
        connection.invalidate()
        connection.close()
