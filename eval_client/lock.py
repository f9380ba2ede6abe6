"""One client at a time works on a run: a lock that ends with its holder, even one killed with -9."""

import contextlib
import fcntl
import hashlib
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa

from eval_client.connection import StoreError
from eval_client.store import Store


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
            with _server_lock(store, "SELECT pg_try_advisory_lock(:key)", _key_number(store.run)):
                yield
        case _:
            with _server_lock(store, "SELECT GET_LOCK(:key, 0)", f"proctor-{_key_number(store.run):x}"):
                yield


def is_worked_on(store: Store) -> bool:
    """Whether a client holds the run."""
    try:
        with sole_client(store) if _lockable(store) else contextlib.nullcontext():
            return False
    except StoreError:
        return True


def _lockable(store: Store) -> bool:
    """Whether asking leaves no trace: a file that no client has made yet is not made."""
    return store.engine.dialect.name != "sqlite" or _lock_file(store).exists()


def _lock_file(store: Store) -> Path:
    return Path(f"{store.engine.url.database}.{store.run}.lock")


@contextlib.contextmanager
def _file_lock(store: Store) -> Iterator[None]:
    path = _lock_file(store)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise _busy(store.run) from error
        yield


@contextlib.contextmanager
def _server_lock(store: Store, statement: str, key: int | str) -> Iterator[None]:
    """The lock lives as long as its connection; should the server drop that, the fence still guards the rows."""
    connection = store.engine.connect()
    try:
        if not connection.execute(sa.text(statement), {"key": key}).scalar():
            raise _busy(store.run)
        connection.commit()
        yield
    finally:
        connection.invalidate()
        connection.close()


def _key_number(run: str) -> int:
    return int.from_bytes(hashlib.blake2b(run.encode(), digest_size=7).digest(), "big")
