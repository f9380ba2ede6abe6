"""The lock of a run, which ends with its holder, even one killed with -9.

One client at a time holds a run in SQLite or MariaDB. In PostgreSQL all clients of a run share its lock, and who begins
or resumes it has it alone for a moment.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import time
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa

from eval_client.store.connection import StoreError, is_writable
from eval_client.store.store import Store

ENTER_S = 30.0
"""Whoever takes a run over has the lock alone for a little longer than a lease."""
PAUSE_S = 0.1


def _busy(run: str) -> StoreError:
    return StoreError(f"run {run!r} is being worked on by another client; wait for it, or stop it first")


@contextlib.contextmanager
def sole_client(store: Store) -> Iterator[None]:
    """Hold the run while inside. Raises StoreError when another client holds it."""
    match store.engine.dialect.name:
        case "sqlite":
            with _file_lock(store):
                yield
        case "postgresql":
            connection = store.engine.connect()
            try:
                seize(connection, store.run)
                yield
            finally:
                release(connection)
        case _:
            with _server_lock(store):
                yield


def is_worked_on(store: Store) -> bool:
    """Whether a client holds the run."""
    try:
        with sole_client(store) if _lockable(store) else contextlib.nullcontext():
            return False
    except StoreError:
        return True


def seize(connection: sa.Connection, run: str) -> None:
    """The lock for this connection alone, in PostgreSQL. Raises StoreError when clients hold the run."""
    if not _alone(connection, run):
        raise joinable(run)


def release(connection: sa.Connection, unlock: str = "SELECT pg_advisory_unlock_all()", **key: str) -> None:
    """End a connection and its locks: of the connection's end alone the server would hear a moment later."""
    with contextlib.suppress(sa.exc.SQLAlchemyError):
        connection.rollback()
        connection.execute(sa.text(unlock), key)
    connection.invalidate()
    connection.close()


def joinable(run: str) -> StoreError:
    """Other clients hold the run."""
    return StoreError(
        f"run {run!r} is being worked on by another client; to work on it as well: proctor join {run}; "
        "else wait for it, or stop it first"
    )


def share(connection: sa.Connection, run: str) -> bool:
    """The lock together with other clients; False where one has it alone."""
    return _ask(connection, "SELECT pg_try_advisory_lock_shared(:key)", run)


def let_in(connection: sa.Connection, run: str) -> None:
    """Have the lock no longer alone, but together with others."""
    share(connection, run)
    _ask(connection, "SELECT pg_advisory_unlock(:key)", run)


async def enter(connection: sa.Connection, run: str) -> bool:
    """The lock: True together with the clients that hold it already, False alone, where there are none."""
    give_up = time.monotonic() + ENTER_S
    while not _alone(connection, run):
        if share(connection, run):
            return True
        if time.monotonic() > give_up:
            raise _busy(run)
        await asyncio.sleep(PAUSE_S)
    return False


def _alone(connection: sa.Connection, run: str) -> bool:
    return _ask(connection, "SELECT pg_try_advisory_lock(:key)", run)


def _ask(connection: sa.Connection, question: str, run: str) -> bool:
    answer = bool(connection.execute(sa.text(question), {"key": _key_number(run)}).scalar())
    connection.commit()
    return answer


def _lockable(store: Store) -> bool:
    """Whether asking leaves no trace: a file that no client has made yet is not made."""
    return store.engine.dialect.name != "sqlite" or _lock_file(store).exists()


def _lock_file(store: Store) -> Path:
    return Path(f"{store.engine.url.database}.{store.run}.lock")


@contextlib.contextmanager
def _file_lock(store: Store) -> Iterator[None]:
    path = _lock_file(store)
    with path.open("a" if is_writable(str(path)) else "r") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise _busy(store.run) from error
        yield


@contextlib.contextmanager
def _server_lock(store: Store) -> Iterator[None]:
    """The lock lives as long as its connection; should the server drop that, the fence still guards the rows."""
    connection = store.engine.connect()
    key = f"proctor-{_key_number(store.run):x}"
    try:
        if not connection.execute(sa.text("SELECT GET_LOCK(:key, 0)"), {"key": key}).scalar():
            raise _busy(store.run)
        connection.commit()
        yield
    finally:
        release(connection, "SELECT RELEASE_LOCK(:key)", key=key)


def _key_number(run: str) -> int:
    return int.from_bytes(hashlib.blake2b(run.encode(), digest_size=7).digest(), "big")
