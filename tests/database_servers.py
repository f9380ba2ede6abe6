"""Real database servers for tests: private, on a Unix socket, in a temporary folder."""

import contextlib
import functools
import os
import pwd
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.pace import slowly, until

START_S = 60.0


def program(name: str) -> str | None:
    """Where a server's program lies, Debian's own folders included."""
    folders = [*map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), "/usr/sbin"]
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *folders]))


def _account(name: str) -> str | None:
    """The account a server runs under: its own where we are root, else ours."""
    return name if os.geteuid() == 0 and name in {entry.pw_name for entry in pwd.getpwall()} else None


class DatabaseServer:
    """A server that can be stopped, killed and started again."""

    def __init__(
        self, folder: Path, account: str | None, command: Sequence[str], url: str, ready: Sequence[str]
    ) -> None:
        self._folder, self._account, self._command, self._ready = folder, account, command, ready
        self._process: subprocess.Popen[bytes] | None = None
        self.url = url

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._begin()
        until(self._answers, START_S, lambda: (self._folder / "log").read_text()[-2000:])

    def _begin(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, user=self._account, cwd=self._folder
            )

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:  # it does not start beside the children that a kill of the last one left
            self._begin()
        return subprocess.run(self._ready, capture_output=True, check=False).returncode == 0

    def kill(self) -> None:
        """kill -9"""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """SIGINT to PostgreSQL is a fast stop; MariaDB takes SIGTERM."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(2 if "postgres" in self._command[0] else 15)
            self._process.wait(timeout=slowly(60))


@contextlib.contextmanager
def postgresql() -> Iterator[DatabaseServer]:
    """PostgreSQL with the database `proctor`."""
    account = _account("postgres")
    with _folder("pg", account) as folder:
        data = _copied(_made_by_initdb(), folder)
        postgres, ready = (str(program(name)) for name in ("postgres", "pg_isready"))
        command = [postgres, "-D", str(data), "-k", str(folder), "-c", "listen_addresses="]
        url = f"postgresql+psycopg://proctor@/postgres?host={folder}"
        server = DatabaseServer(folder, account, command, url, [ready, "-q", "-h", str(folder)])
        with _running(server):
            yield server


@contextlib.contextmanager
def mariadb() -> Iterator[DatabaseServer]:
    """MariaDB with the database `proctor`, durable as by default."""
    account = _account("mysql")
    with _folder("my", account) as folder:
        data, socket = _copied(_made_by_mariadb(), folder), folder / "socket"
        mariadbd, admin = (str(program(name)) for name in ("mariadbd", "mariadb-admin"))
        flags = ["--no-defaults", f"--datadir={data}"]
        command = [mariadbd, *flags, f"--socket={socket}", "--skip-networking", "--innodb-buffer-pool-size=32M"]
        url = f"mysql+pymysql://root@localhost/proctor?unix_socket={socket}"
        ask = [admin, "--no-defaults", f"--socket={socket}", "--user=root"]
        server = DatabaseServer(folder, account, command, url, [*ask, "ping"])
        with _running(server):
            subprocess.run([*ask, "create", "proctor"], check=True, capture_output=True)
            yield server


@functools.cache
def _made_by_initdb() -> Path:
    """PostgreSQL's data before its first start: made once by this process, copied for each server."""
    account = _account("postgres")
    folder = _kept_folder("pg", account)
    quiet = ["--auth=trust", "--username=proctor", "--encoding=UTF8", "--no-sync", "-D", str(folder / "data")]
    command = [str(program("initdb")), *quiet]
    subprocess.run(command, check=True, capture_output=True, user=account, cwd=folder)
    return folder / "data"


@functools.cache
def _made_by_mariadb() -> Path:
    """MariaDB's data before its first start, likewise."""
    account = _account("mysql")
    folder = _kept_folder("my", account)
    normal = ["--auth-root-authentication-method=normal", "--skip-test-db"]
    command = [str(program("mariadb-install-db")), "--no-defaults", f"--datadir={folder / 'data'}", *normal]
    subprocess.run(command, check=True, capture_output=True, user=account, cwd=folder)
    return folder / "data"


def _copied(data: Path, folder: Path) -> Path:
    """A copy in a folder, of the same account."""
    subprocess.run(["cp", "-a", data, folder], check=True)
    return folder / data.name


@contextlib.contextmanager
def _running(server: DatabaseServer) -> Iterator[DatabaseServer]:
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def _folder(name: str, account: str | None) -> Iterator[Path]:
    folder = _new_folder(name, account)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _kept_folder(name: str, account: str | None) -> Path:
    """A folder that lasts as long as this process, not as those that are forked from it."""
    folder = _new_folder(name, account)
    weakref.finalize(_kept_folder, shutil.rmtree, folder, ignore_errors=True)
    return folder


def _new_folder(name: str, account: str | None) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=f"proctor-{name}-", dir="/tmp"))
    if account is not None:
        shutil.chown(folder, account)
    return folder
