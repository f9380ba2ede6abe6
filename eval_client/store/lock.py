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
from typing import TextIO

import sqlalchemy as sa

from eval_client.store.connection import RunOver, StoreError, is_writable
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
        _set_up(store.engine)
    with contextlib.ExitStack() as held:
        if not waits:
            held.enter_context(sole_client(store))
        else:
            await _wait_for_turn(store, held)
        if ready is not None:
            await ready()
        store.upgrade()
        yield store.take_over()


async def _wait_for_turn(store: Store, held: contextlib.ExitStack) -> None:
    said = False
    while True:
        try:
            held.enter_context(sole_client(store))
        except Busy as busy:
            if not said:
                log.warning("%s; this one waits for its turn", str(busy).partition(";")[0])
            said = True
            await asyncio.sleep(TURN_S)
        else:
            if said and store.is_over():
                raise RunOver(f"run {store.run!r} is over")
            return


@contextlib.contextmanager
def sole_client(store: Store) -> Iterator[None]:
    """Hold the run's lock exclusively while inside. Raises StoreError when another client holds it.

    In SQLite only after PROBE_S, since `is_worked_on` in another process holds the lock for a moment.
    """
    match store.engine.dialect.name:
        case "sqlite":
            with _file_lock(store, PROBE_S):
                yield
        case "postgresql":
            with _advisory_lock(store):
                yield
        case _:
            with _server_lock(store):
                yield


def no_client(store: Store) -> contextlib.AbstractContextManager[None]:
    """Hold the lock of a run that is only read. In a read-only folder nobody can play it, so nothing is held there.

    Raises StoreError where a client plays the run.
    """
    path = str(store.engine.url.database)
    if store.engine.dialect.name == "sqlite" and not is_writable(path):
        return contextlib.nullcontext()
    return sole_client(store)


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


def check_idle(store: Store) -> None:
    """Raises StoreError where a client plays the run."""
    if is_worked_on(store):
        raise StoreError(f"run {store.run!r} is being played; stop it first: proctor stop {store.run}")


def _release(connection: sa.Connection, unlock: str, **key: object) -> None:
    """Release the lock of a connection and close it. Without `unlock` the server would release it a moment later."""
    with contextlib.suppress(sa.exc.SQLAlchemyError):
        connection.rollback()
        connection.execute(sa.text(unlock), key)
    connection.invalidate()
    connection.close()


@contextlib.contextmanager
def _advisory_lock(store: Store) -> Iterator[None]:
    """Hold PostgreSQL's lock, which clients of version 0.2.0 share: they keep this one out too."""
    connection = store.engine.connect()
    key = _key_number(store.run)
    try:
        if not connection.execute(sa.text("SELECT pg_try_advisory_lock(:key)"), {"key": key}).scalar():
            raise Busy(store.run)
        connection.commit()
        yield
    finally:
        _release(connection, "SELECT pg_advisory_unlock(:key)", key=key)


def _set_up(engine: sa.Engine) -> None:
    """Let each connection of an engine have _POSTGRESQL from now on."""

    def set_up(connection: object, _record: object) -> None:
        for name, value in _POSTGRESQL.items():
            connection.execute(f"SET {name} = '{value}'")  # type: ignore[attr-defined]
        connection.commit()  # type: ignore[attr-defined]

    sa.event.listen(engine, "connect", set_up)
    engine.dispose()


def _lock_file(store: Store) -> Path:
    return Path(f"{store.engine.url.database}.{store.run}.lock")


@contextlib.contextmanager
def _file_lock(store: Store, patience_s: float) -> Iterator[None]:
    path = _lock_file(store)
    give_up = time.monotonic() + patience_s
    with _opened(path) as file:
        while not try_lock(file):
            if time.monotonic() >= give_up:
                raise Busy(store.run)
            time.sleep(LOOK_S)
        yield


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    """The lock's file, made where the folder allows it. Raises StoreError for a pipe, a link or a device there."""
    try:
        made = os.O_RDWR | os.O_CREAT if is_writable(str(path)) else os.O_RDONLY
        file = os.open(path, made | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise StoreError(f"{path}: can't be opened: {error.strerror}; delete it") from error
    try:
        yield file
    finally:
        os.close(file)


def try_lock(file: TextIO | int) -> bool:
    """Take the lock of an open file, or return False where another process holds it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def _server_lock(store: Store) -> Iterator[None]:
    """Hold a lock that lasts as long as its connection. If the server drops that, the fence still guards the rows."""
    connection = store.engine.connect()
    key = f"proctor-{_key_number(store.run):x}"
    try:
        if not connection.execute(sa.text("SELECT GET_LOCK(:key, 0)"), {"key": key}).scalar():
            raise Busy(store.run)
        connection.commit()
        yield
    finally:
        _release(connection, "SELECT RELEASE_LOCK(:key)", key=key)


def _key_number(run: str) -> int:
    return int.from_bytes(hashlib.blake2b(run.encode(), digest_size=7).digest(), "big")
