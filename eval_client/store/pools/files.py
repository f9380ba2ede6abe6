"""Pools in a folder of this user, shared by the runs of this machine that keep their stores in SQLite.

Nothing here needs to be durable: live clients report their state again.
"""

import contextlib
import os
import platform
import stat
import time
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path

from eval_client.store.lock import try_lock
from eval_client.store.pools.base import MAX_POOL, PoolError, Pools, Settle, read_pool

LOCK_S = 2.0
"""How long to wait for a lock. A lock is held for about a millisecond; a longer holder is suspended."""
LOOK_S = 0.005
SALT_BYTES = 32
PRIVATE = 0o700


def state_folder() -> Path:
    """This user's folder for what runs of this machine share: in XDG_STATE_HOME, or `~/.local/state`."""
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (given if given.is_absolute() else Path(os.path.expanduser("~/.local/state"))) / "proctor"


class FilePools(Pools):
    """One file per pool, valid until this machine restarts; times are of its monotonic clock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._salt: bytes | None = None

    def salt(self) -> bytes:
        if self._salt is None:
            with _described(self._folder):
                self._salt = self._kept_salt()
        return self._salt

    def change(self, name: str, settle: Settle) -> None:
        path = self._folder / f"{_machine()}-{name}.json"
        with _described(path):
            make_private(self._folder)
            with _locked(path) as file:
                pool = settle(read_pool(_content(file), str(path)), time.monotonic())
                if pool.idle(time.monotonic()):
                    path.unlink()
                else:
                    _write(file, pool.model_dump_json().encode())

    def _kept_salt(self) -> bytes:
        make_private(self._folder)
        with _locked(self._folder / "salt") as file:
            salt = _content(file)
            if len(salt) != SALT_BYTES:
                salt = os.urandom(SALT_BYTES)
                _write(file, salt)
            return salt


@contextlib.contextmanager
def _described(path: Path) -> Iterator[None]:
    """Turn OSError into PoolError."""
    try:
        yield
    except OSError as error:
        raise PoolError(str(error) if error.filename else f"{path}: {error}") from error


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
            _lock(file, path, give_up)
            if _is_at(file, path):
                yield file
                return
        finally:
            os.close(file)


def _lock(file: int, path: Path, give_up: float) -> None:
    while not try_lock(file):
        if time.monotonic() > give_up:
            raise PoolError(f"{path} is locked by a process that is suspended")
        time.sleep(LOOK_S)


def _is_at(file: int, path: Path) -> bool:
    """Whether the open file is still the one at the path: the previous lock holder may have removed it."""
    try:
        return os.path.samestat(os.fstat(file), path.lstat())
    except FileNotFoundError:
        return False


def _content(file: int) -> bytes:
    """The file's content, cut one byte after MAX_POOL."""
    return os.pread(file, MAX_POOL + 1, 0)


def _write(file: int, content: bytes) -> None:
    if os.pwrite(file, content, 0) != len(content):
        raise OSError("written in part only")
    os.ftruncate(file, len(content))


@cache
def _machine() -> str:
    """A hash of this machine and its boot, so that all users of a file share one monotonic clock."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    started = boot.read_text() if boot.exists() else ""
    return blake2b(f"{platform.node()}\0{started}".encode(), digest_size=4).hexdigest()
