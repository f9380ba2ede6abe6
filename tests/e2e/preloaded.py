"""Commands of `proctor` that play nothing, each in a process of its own, forked from one that has imported them.

To start Python and import a command costs ten times what most of them do. The forked process has its own arguments,
folder, environment, output and exit code; it ends as any other.
"""

import atexit
import functools
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from eval_client.cli.main import COMMANDS, main
from tests.support import ROOT

PRELOADED = frozenset({"copy", "export", "ls", "prune", "report", "rm", "show", "stop"})
"""Those that play are started anew: equal runs must be equal whatever order a process gives to its sets. `status` too:
tests ask it beside a run, and one of them counts on the time that this takes."""
READ_AT_START = ("LANG", "LC_", "LD_", "PYTHON")
"""How variables begin that have their effect before a command is read."""
MOST_BYTES = 1 << 20
Variables = tuple[tuple[str, str], ...]


class Forks:
    """The process that has imported the commands; it plays one after the other, and ends when this one does."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._lock = threading.Lock()
        self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.e2e.preloaded", str(theirs.fileno())],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        atexit.register(self._end)

    def run(
        self, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """A command to its end. Raises TimeoutExpired, after which all processes forked from here are dead."""
        request = json.dumps([list(arguments), str(cwd), dict(environment)]).encode()
        pipes = os.pipe(), os.pipe()
        with self._lock, ThreadPoolExecutor(2) as readers:
            socket.send_fds(self._connection, [request], [write for _, write in pipes])
            for _, write in pipes:
                os.close(write)
            texts = [readers.submit(_text, read) for read, _ in pipes]
            try:
                self._connection.settimeout(timeout_s)
                code = int(self._connection.recv(MOST_BYTES))
            except TimeoutError as error:
                os.killpg(self._process.pid, signal.SIGKILL)
                _of.cache_clear()
                raise subprocess.TimeoutExpired(arguments, timeout_s) from error
            return subprocess.CompletedProcess(arguments, code, *(text.result() for text in texts))

    def _end(self) -> None:
        self._connection.close()
        self._process.wait()


def _text(pipe: int) -> str:
    with open(pipe, encoding="utf-8") as file:
        return file.read()


def preloaded(environment: Mapping[str, str]) -> Forks:
    """The process for commands of this environment; another for each that starts Python otherwise."""
    return _of(tuple(sorted((name, value) for name, value in environment.items() if name.startswith(READ_AT_START))))


@functools.cache
def _of(variables: Variables) -> Forks:
    others = {name: value for name, value in os.environ.items() if not name.startswith(READ_AT_START)}
    return Forks(others | dict(variables))


def serve(connection: socket.socket) -> None:
    """Fork once for each request, and tell its exit code. Only a forked process returns, ready to be the command."""
    while True:
        request, pipes, _, _ = socket.recv_fds(connection, MOST_BYTES, 2)
        if not request:
            sys.exit()
        if (forked := os.fork()) == 0:
            connection.close()
            arguments, folder, environment = json.loads(request)
            _become(arguments, folder, environment, pipes)
            return
        for pipe in pipes:
            os.close(pipe)
        _, status = os.waitpid(forked, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(arguments: Sequence[str], folder: str, environment: Mapping[str, str], pipes: Sequence[int]) -> None:
    for number, pipe in enumerate(pipes, start=1):
        os.dup2(pipe, number)
        os.close(pipe)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv[1:], sys.path[0] = arguments, folder


if __name__ == "__main__":
    for name in PRELOADED:
        importlib.import_module(f"eval_client.cli.{COMMANDS[name][0]}")
    importlib.import_module("sqlalchemy.dialects.sqlite")
    assert threading.active_count() == 1, "a fork has only the thread that forked"
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))
    main()
