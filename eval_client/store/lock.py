"""The lock of a run. It is released when its holder ends, even by SIGKILL.

In SQLite, MySQL and MariaDB one client at a time holds the lock. In PostgreSQL all clients of a run hold it in shared
mode; a client that starts or resumes the run holds it exclusively for a moment.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import sqlalchemy as sa

from eval_client.store.connection import StoreError, is_writable
from eval_client.store.store import Store

ENTER_S = 30.0
"""How long `enter` waits. A client that takes a run over holds the lock exclusively for little longer than a lease."""
PAUSE_S = 0.1
PROBE_S, LOOK_S = 0.5, 0.02
"""How long a client waits for others that only look whether the lock is held, and between two tries."""


def _busy(run: str) -> StoreError:
    return StoreError(f"run {run!r} is being played by another client; wait for that client to end, or stop it first")


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
            connection = store.engine.connect()
            try:
                seize(connection, store.run)
                yield
            finally:
                release(connection)
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


def seize(connection: sa.Connection, run: str) -> None:
    """Take the lock exclusively, in PostgreSQL. Raises StoreError when other clients hold it."""
    if not _alone(connection, run):
        raise joinable(run)


def release(connection: sa.Connection, unlock: str = "SELECT pg_advisory_unlock_all()", **key: str) -> None:
    """Release the locks of a connection and close it. Without `unlock` the server would release them a moment later."""
    with contextlib.suppress(sa.exc.SQLAlchemyError):
        connection.rollback()
        connection.execute(sa.text(unlock), key)
    connection.invalidate()
    connection.close()


def joinable(run: str) -> StoreError:
    """The error for a run in PostgreSQL whose lock other clients hold."""
    return StoreError(
        f"run {run!r} is being played by another client; join it (proctor join {run}), wait for that client to end, "
        "or stop it first"
    )


def share(connection: sa.Connection, run: str) -> bool:
    """Take the lock in shared mode; False where a client holds it exclusively."""
    return _ask(connection, "SELECT pg_try_advisory_lock_shared(:key)", run)


def make_shared(connection: sa.Connection, run: str) -> None:
    """Turn the exclusive lock into a shared one."""
    share(connection, run)
    _ask(connection, "SELECT pg_advisory_unlock(:key)", run)


async def enter(connection: sa.Connection, run: str) -> bool:
    """Take the lock: True if shared with the clients that hold it, False if exclusively because none does.

    Raises StoreError where neither is possible within ENTER_S.
    """
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


def _lock_file(store: Store) -> Path:
    return Path(f"{store.engine.url.database}.{store.run}.lock")


@contextlib.contextmanager
def _file_lock(store: Store, patience_s: float) -> Iterator[None]:
    path = _lock_file(store)
    give_up = time.monotonic() + patience_s
    with path.open("a" if is_writable(str(path)) else "r") as file:
        while not try_lock(file):
            if time.monotonic() >= give_up:
                raise _busy(store.run)
            time.sleep(LOOK_S)
        yield


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
            raise _busy(store.run)
        connection.commit()
        yield
    finally:
        release(connection, "SELECT RELEASE_LOCK(:key)", key=key)


def _key_number(run: str) -> int:
    return int.from_bytes(hashlib.blake2b(run.encode(), digest_size=7).digest(), "big")
