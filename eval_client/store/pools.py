"""Storage of endpoint pools: the state of an endpoint that several clients share, in files or in a database server.

Nothing here needs to be durable: live clients report their state again.
"""

import contextlib
import hashlib
import logging
import os
import platform
import stat
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import sqlalchemy as sa
from pydantic import ValidationError

from eval_client.core.limits.pool import Pool
from eval_client.store.connection import is_transient, reason
from eval_client.store.lock import try_lock
from eval_client.store.tables import endpoint_table

log = logging.getLogger(__name__)

MAX_POOL = 1 << 20
"""Bytes of the largest pool that is read: enough for some thousands of clients."""
LOCK_S = 2.0
"""How long to wait for a file's lock. It is held for about a millisecond; a longer holder is suspended."""
LOOK_S = 0.005
PRIVATE = 0o700
Settle = Callable[[Pool, float], Pool]
"""A pool and the time in seconds, by the clock that all its clients share -> the changed pool."""


class PoolError(Exception):
    """A pool can't be read or written; the message names the cause."""


class Pools(ABC):
    """Storage of pools; its methods may block, but not for long."""

    place = ""
    """Where the pools are, for warnings."""

    @abstractmethod
    def change(self, name: str, settle: Settle) -> None:
        """Change a pool, one client at a time; one that nobody uses goes. Raises PoolError."""

    def changed(self, stored: bytes, name: str, settle: Settle, now: float) -> bytes:
        """What to store of a pool instead; empty for one that nobody uses."""
        pool = settle(self.read(stored, name, now), now)
        return b"" if pool.idle(now) else pool.model_dump_json().encode()

    def read(self, stored: bytes, name: str, now: float) -> Pool:
        """A stored pool; an empty one where it is damaged, since its clients report their state again."""
        if not stored:
            return Pool()
        try:
            return Pool.model_validate_json(stored if len(stored) <= MAX_POOL else b"")
        except ValidationError as error:
            why = error.errors(include_input=False)[0]["msg"]
            log.warning("pool %s in %s is damaged and is reset: %s", name, self.place, why)
            return Pool()


def pool_name(*of: str) -> str:
    """The name of a pool: 32 hex digits that reveal neither the URL nor the key of its endpoint."""
    return hashlib.blake2b("\0".join(of).encode(), digest_size=16).hexdigest()


class FilePools(Pools):
    """Pools of this user's runs on this machine that keep their stores in SQLite: one private file for each.

    They are valid until this machine restarts; times are of its monotonic clock.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self.place = folder, str(folder)

    def change(self, name: str, settle: Settle) -> None:
        try:
            make_private(self._folder)
            path = self._folder / f"{_machine()}-{name}.json"
            with _locked(path) as file:
                if kept := self.changed(os.pread(file, MAX_POOL + 1, 0), name, settle, time.monotonic()):
                    if os.pwrite(file, kept, 0) != len(kept):
                        raise OSError("written in part only")
                    os.ftruncate(file, len(kept))
                else:
                    path.unlink()
        except OSError as error:
            raise PoolError(str(error) if error.filename else f"{self._folder / name}: {error}") from error


def state_folder() -> Path:
    """This user's folder for what runs of this machine share: in XDG_STATE_HOME, or `~/.local/state`."""
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (given if given.is_absolute() else Path(os.path.expanduser("~/.local/state"))) / "proctor"


def make_private(folder: Path) -> None:
    """Make a folder that no other user can read. Raises PoolError, OSError."""
    if not folder.is_absolute():
        raise PoolError("this user has no home folder; set XDG_STATE_HOME")
    folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PoolError(f"{folder} is no folder of this user; remove it, or set XDG_STATE_HOME")
    if stat.S_IMODE(found.st_mode) != PRIVATE:
        folder.chmod(PRIVATE)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Open a file and lock it exclusively while inside; the kernel releases the lock of a dead process.

    Raises OSError, PoolError.
    """
    give_up = time.monotonic() + LOCK_S
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise PoolError(f"{path} is no file; remove it")
            if not try_lock(file, give_up, LOOK_S):
                raise PoolError(f"{path} is locked by a process that is suspended")
            if _is_at(file, path):
                yield file
                return
        finally:
            os.close(file)


def _is_at(file: int, path: Path) -> bool:
    """Whether the open file is still the one at the path: the previous lock holder may have removed it."""
    try:
        return os.path.samestat(os.fstat(file), path.lstat())
    except FileNotFoundError:
        return False


@cache
def _machine() -> str:
    """A hash of this machine and its boot, so that all users of a file share one monotonic clock."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    started = boot.read_text() if boot.exists() else ""
    return hashlib.blake2b(f"{platform.node()}\0{started}".encode(), digest_size=4).hexdigest()


class RowPools(Pools):
    """Pools of all runs of a database server: a row of `proctor_endpoint` for each; times are of the server's clock.

    Methods also raise DatabaseError where the database is unavailable.
    """

    place = endpoint_table.name

    def __init__(self, engine: sa.Engine) -> None:
        self._engine, self._made = engine, False

    def change(self, name: str, settle: Settle) -> None:
        try:
            if not self._made:
                with contextlib.suppress(sa.exc.DatabaseError):  # another client may be making it at the same time
                    endpoint_table.create(self._engine, checkfirst=True)
                endpoint_table.create(self._engine, checkfirst=True)
                self._made = True
            while not self._change_row(name, settle):  # another client may be adding it at the same time
                with contextlib.suppress(sa.exc.IntegrityError), self._engine.begin() as connection:
                    connection.execute(endpoint_table.insert(), {"id": name, "state": ""})
        except sa.exc.DatabaseError as error:
            if is_transient(error):
                raise
            fix = "let the database's owner make it and grant the run's account SELECT, INSERT, UPDATE and DELETE"
            raise PoolError(f"the store's table {self.place} can't be used; {fix}: {reason(error)}") from error

    def read(self, stored: bytes, name: str, now: float) -> Pool:
        """The pool, whose clients could not report while the database was away."""
        return super().read(stored, name, now).excused(now)

    def _change_row(self, name: str, settle: Settle) -> bool:
        """Change a row while no other client does; False where there is none."""
        mine = endpoint_table.c.id == name
        with self._engine.begin() as connection:
            text = connection.execute(sa.select(endpoint_table.c.state).where(mine).with_for_update()).scalar()
            if text is None:
                return False
            clock = "extract(epoch FROM clock_timestamp())"
            if connection.dialect.name != "postgresql":
                clock = "unix_timestamp(sysdate(6))"
            now = float(connection.execute(sa.text(f"SELECT {clock}")).scalar_one())
            if kept := self.changed(text.encode(), name, settle, now):
                connection.execute(endpoint_table.update().where(mine).values(state=kept.decode()))
            else:
                connection.execute(endpoint_table.delete().where(mine))
            return True
