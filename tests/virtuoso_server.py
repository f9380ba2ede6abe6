"""A real Virtuoso for tests: private, in a temporary folder, on a port of its own."""

import contextlib
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.database_servers import program
from tests.pace import slowly, until
from tests.support import free_port

START_S = 60.0
_SETTINGS = """\
[Database]
DatabaseFile = virtuoso.db
ErrorLogFile = virtuoso.log
LockFile = virtuoso.lck
TransactionFile = virtuoso.trx
xa_persistent_file = virtuoso.pxa
[TempDatabase]
DatabaseFile = virtuoso-temp.db
TransactionFile = virtuoso-temp.trx
[Parameters]
ServerPort = 127.0.0.1:{sql}
DisableUnixSocket = 1
NumberOfBuffers = 4000
MaxDirtyBuffers = 3000
ServerThreads = 20
MaxClientConnections = 20
DirsAllowed = .
CheckpointInterval = 0
[HTTPServer]
ServerPort = 127.0.0.1:{http}
ServerThreads = 10
[SPARQL]
ResultSetMaxRows = 10000
"""


class VirtuosoServer:
    """A server that can be killed and started again with what it holds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._sql, http = free_port(), free_port()
        (folder / "virtuoso.ini").write_text(_SETTINGS.format(sql=self._sql, http=http))
        self.url = f"http://127.0.0.1:{http}/sparql"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with (self._folder / "out").open("ab") as out:
            self._process = subprocess.Popen(
                [str(program("virtuoso-t")), "+foreground", "+configfile", "virtuoso.ini"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=self._folder,
            )
        until(self._answers, START_S, lambda: (self._folder / "out").read_text()[-2000:])

    def load(self, quads: Path) -> None:
        """Add the quads of a file, and write them to disk."""
        shutil.copy(quads, self._folder / "quads.nq")
        sql = "DB.DBA.TTLP(file_to_string_output('quads.nq'), '', 'urn:none', 512); checkpoint;"
        command = [str(program("isql-vt")), f"127.0.0.1:{self._sql}", "dba", "dba", f"exec={sql}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "Error" not in done.stdout + done.stderr, done.stdout + done.stderr

    def kill(self) -> None:
        """kill -9"""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        (self._folder / "virtuoso.lck").unlink(missing_ok=True)

    def signal(self, number: int) -> None:
        """Send it a signal, such as SIGSTOP."""
        assert self._process is not None
        self._process.send_signal(number)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(self.url, timeout=slowly(5)):
                return True
        except OSError:
            return False


@contextlib.contextmanager
def virtuoso() -> Iterator[VirtuosoServer]:
    """A running, empty Virtuoso."""
    folder = Path(tempfile.mkdtemp(prefix="proctor-virtuoso-", dir="/tmp"))
    server = VirtuosoServer(folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)
