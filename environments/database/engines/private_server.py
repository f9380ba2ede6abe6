"""A mariadbd for this process alone: own data folder, own socket, no network; it ends when this process ends."""

import asyncio
import ctypes
import errno
import fcntl
import os
import pwd
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, NoReturn

from environments.database.engines.base import ServerAddress
from proctor.environment import EnvironmentFault, ServiceAway

PREFIX = "proctor-db-"
"""The prefix of the server's folder below the system's folder for temporary files."""
_SEARCH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin", "/usr/libexec"])
_START_S = 60.0
_POLL_S = 0.02
_HUNG_S = 15.0
"""Without a greeting for so long, a server hangs: stopped, or told to end while it started."""
_PR_SET_PDEATHSIG = 1
_MAX_FILE_BYTES = 1 << 30
_COMMON = ("--no-defaults", "--innodb-log-file-size=8M", "--innodb-buffer-pool-size=32M")
_FLAGS = (
    "--skip-networking",
    "--skip-log-bin",
    "--skip-name-resolve",
    "--sql-mode=",
    "--character-set-server=utf8mb4",
    "--group-concat-max-len=4194304",
    "--max-allowed-packet=4M",
    "--max-connections=600",
    "--performance-schema=OFF",
    "--event-scheduler=OFF",
    "--local-infile=OFF",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=OFF",
    "--innodb-temp-data-file-path=ibtmp1:12M:autoextend:max:512M",
    "--aria-log-file-size=64M",
)


class PrivateServer:
    """A server that is started again, with an empty data folder, after it died."""

    def __init__(self) -> None:
        self._server_program = _program("mariadbd")
        self._install_program = _program("mariadb-install-db")
        self._account = _account()
        self._lock = asyncio.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._boots = 0
        self._folder = Path()
        self._owned: IO[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id of the running server."""
        return self._process.pid if self._process and self._process.poll() is None else None

    async def start(self) -> None:
        """Makes the server ready. Raises EnvironmentFault."""
        _remove_orphaned_folders()
        self._folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._owned = (self._folder / "new").open("wb")
        fcntl.flock(self._owned, fcntl.LOCK_EX)
        (self._folder / "new").rename(self._folder / "owner")
        if self._account:
            shutil.chown(self._folder, self._account, self._account)
        await asyncio.to_thread(self._install)
        await self.address()

    async def address(self) -> ServerAddress:
        """The current address; a server that died is started again first. Raises EnvironmentFault."""
        async with self._lock:
            if self._process and self.pid is not None and not _listens(self._data / "socket"):
                self._process.kill()  # it is shutting down: its socket closes before the process ends
                await asyncio.to_thread(self._process.wait)
            if self.pid is None:
                await self._boot()
            return ServerAddress(user="root", socket=str(self._data / "socket"))

    async def end_if_hung(self) -> None:
        """Ends a server that answers no new connection, so that the next address is another's."""
        async with self._lock:
            if self._process and self.pid is not None and not await _greets(self._data / "socket"):
                self._process.kill()
                await asyncio.to_thread(self._process.wait)

    async def stop(self) -> None:
        """Ends the server and removes its folder."""
        if self._process:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
        if self._owned:
            self._owned.close()

    @property
    def _data(self) -> Path:
        return self._folder / f"data-{self._boots}"

    def _install(self) -> None:
        """Makes the data folder that every start copies."""
        command = [self._install_program, *_COMMON, f"--datadir={self._folder / 'template'}"]
        command += ["--auth-root-authentication-method=normal", "--skip-test-db", *self._as_root()]
        done = subprocess.run(
            command,
            user=self._account,
            group=self._account,
            extra_groups=[] if self._account else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self._folder,
            env={**os.environ, "TMPDIR": str(self._folder)},  # servers that start delete temporary tables they find
            check=False,
        )
        if done.returncode:
            raise EnvironmentFault(f"mariadb-install-db failed: {done.stdout.decode(errors='replace')[-2000:]}")

    async def _boot(self) -> None:
        await asyncio.to_thread(shutil.rmtree, self._data, ignore_errors=True)
        self._boots += 1
        await asyncio.to_thread(self._copy_template)
        self._process = self._spawn()
        await self._wait_until_ready()

    def _spawn(self) -> subprocess.Popen[bytes]:
        # The event loop's thread forks, since the signal set in _before_exec is sent when the forking thread ends.
        # The user changes before exec, since a later change would clear that signal.
        return subprocess.Popen(
            [self._server_program, *_COMMON, *_FLAGS, *self._paths(), *self._as_root()],
            user=self._account,
            group=self._account,
            extra_groups=[] if self._account else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self._folder,
            start_new_session=True,
            restore_signals=False,  # with SIGXFSZ ignored, a file too large fails the statement, not the server
            preexec_fn=_before_exec(os.getpid()),  # noqa: PLW1509 - calls nothing that acquires a lock
        )

    def _copy_template(self) -> None:
        shutil.copytree(self._folder / "template", self._data)
        if self._account:
            for path in (self._data, *self._data.rglob("*")):
                shutil.chown(path, self._account, self._account)

    def _paths(self) -> list[str]:
        files = self._folder / "no-files-for-agents"
        files.mkdir(exist_ok=True)
        return [
            f"--datadir={self._data}",
            f"--socket={self._data / 'socket'}",
            f"--pid-file={self._data / 'pid'}",
            f"--log-error={self._data / 'log'}",
            f"--tmpdir={self._data}",
            f"--secure-file-priv={files}",
        ]

    def _as_root(self) -> list[str]:
        return ["--user=root"] if self._account == "root" else []

    async def _wait_until_ready(self) -> None:
        try:
            async with asyncio.timeout(_START_S):
                while not _listens(self._data / "socket"):
                    if self.pid is None:
                        self._fail("ended while starting")
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            self._fail(f"did not start within {_START_S:.0f} s")

    def _fail(self, what: str) -> NoReturn:
        log = self._data / "log"
        lines = log.read_text(errors="replace").splitlines()[-10:] if log.exists() else []
        raise ServiceAway("\n".join([f"mariadbd {what}; the end of its log:", *lines]))


def installed() -> bool:
    """Whether a private server can be started on this machine."""
    return all(shutil.which(name, path=_SEARCH) for name in ("mariadbd", "mariadb-install-db"))


def _program(name: str) -> str:
    path = shutil.which(name, path=_SEARCH)
    if path is None:
        raise EnvironmentFault(
            f"no program {name}; install mariadb-server, or give the field `server` or `engine: sqlite`"
        )
    return path


def _account() -> str | None:
    """The account that the server runs as; None for this process's own. Root becomes `mysql` where that exists."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("mysql").pw_name
    except KeyError:
        return "root"


def _before_exec(parent: int) -> Callable[[], None]:
    """A function to run between fork and exec: it limits file sizes, and lets the process die with its parent."""
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def prepare() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (_MAX_FILE_BYTES, _MAX_FILE_BYTES))
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

    return prepare


def _listens(path: Path) -> bool:
    """Whether a server listens at a socket; also True where its queue of connections is full."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        return probe.connect_ex(str(path)) in {0, errno.EAGAIN}


async def _greets(path: Path) -> bool:
    """Whether a server greets a new connection."""
    try:
        async with asyncio.timeout(_HUNG_S):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                return bool(await reader.read(1))
            finally:
                writer.close()
    except OSError:  # a TimeoutError too
        return False


def _remove_orphaned_folders() -> None:
    """Removes the folders that dead processes left behind; a live owner holds the lock of its `owner` file."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            with (folder / "owner").open("rb") as owner:
                fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue
