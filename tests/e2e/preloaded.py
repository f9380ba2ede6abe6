"""Commands of `proctor`, each in a process of its own, forked from one that has imported them.

To start Python and import a command costs ten times what most of them do. The forked process has its own process id,
arguments, folder, environment, standard streams and exit code; it is signalled and ends as any other.
"""

import atexit
import functools
import itertools
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval_client.cli.main import SERVERS
from tests.e2e.forks.forked_servers import Start, forking
from tests.e2e.forks.forker import CLIENTS, PLAYING, Request, read_at_start
from tests.support import ROOT


class Forks:
    """A process that has imported commands, those of clients or those of servers; it ends when this one does.

    Clients have the servers of their runs forked by `servers`. `python` is whose packages are imported, and `folder`
    where it finds these tests.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        servers: "Forks | None" = None,
        *,
        python: Path = Path(sys.executable),
        folder: Path = ROOT,
    ) -> None:
        self.connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        given = [theirs.fileno(), *([servers.connection.fileno()] if servers else [])]
        with theirs:
            self.process = subprocess.Popen(
                [python, "-m", "tests.e2e.forks.forker", "clients" if servers else "servers", *map(str, given)],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                pass_fds=given,
                start_new_session=True,
            )
        atexit.register(self._end)

    def _end(self) -> None:
        self.connection.close()
        self.process.wait()


class Forked(subprocess.Popen[str]):
    """A forked command. It is no child of this process, so its end is read from a pipe. For `apart` see `Request`."""

    def __init__(
        self, forks: Forks, arguments: Sequence[str], cwd: Path, *, apart: bool = False, **options: Any
    ) -> None:
        self._forks, self._apart, self._once = forks, apart, threading.Lock()
        super().__init__(arguments, cwd=cwd, text=True, **options)

    def _execute_child(self, arguments: Sequence[str], *options: Any) -> None:
        folder, environment, pipes = options[4], options[5], options[9:15]
        streams = [stream if stream >= 0 else number for number, stream in enumerate((pipes[0], pipes[3], pipes[5]))]
        request = Request(arguments, str(folder), environment, apart=self._apart)
        self._told = request.send(self._forks.connection, streams)
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]  # as Popen does
        with open(self._told, "rb", buffering=0, closefd=False) as told:
            self.pid = int(told.readline())
        self._child_created = True

    def _internal_poll(self, **_: object) -> int | None:
        return self._ended(0)

    def _wait(self, timeout: float | None) -> int:
        if (code := self._ended(timeout)) is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return code

    def _ended(self, timeout_s: float | None) -> int | None:
        if self.returncode is None and self._is_told(timeout_s):
            with self._once:
                if self.returncode is None:
                    self.returncode = int(os.read(self._told, 16))
                    os.close(self._told)
        return self.returncode

    def _is_told(self, timeout_s: float | None) -> bool:
        poll = select.poll()
        poll.register(self._told, select.POLLIN)
        return bool(poll.poll(None if timeout_s is None else timeout_s * 1000))


def preloaded(command: str, environment: Mapping[str, str]) -> Forks | None:
    """The process to fork a command from; None where it is started, since Python reads another environment than ours.

    Commands that play take turns with two processes: equal runs must be equal whatever order a process gives to its
    sets. So do servers.
    """
    if command not in CLIENTS | SERVERS.keys() or read_at_start(environment) != _OURS:
        return None
    turn = next(_turns) % 2 if command in PLAYING | SERVERS.keys() else 0
    return _forks(turn) if command in SERVERS else _client_forks(turn)


def python(
    *arguments: str, cwd: Path, serves: bool = False, environment: Mapping[str, str] | None = None, **streams: Any
) -> Forked:
    """`python ...` with -c or -m under way, where all that clients import is imported, or all that servers do."""
    forks = _forks(0) if serves else _client_forks(0)
    given = dict(os.environ if environment is None else environment)
    assert read_at_start(given) == _OURS
    return Forked(forks, arguments, cwd, env=given, **streams)


def forking_servers() -> Start:
    """`asyncio.create_subprocess_exec` for runs that a test plays in its own process: their servers are forked."""
    return forking(_forks(0).connection, _AT_IMPORT)


_AT_IMPORT = dict(os.environ)
"""Without what a test adds for the processes that it starts, by which it may find them."""
_OURS = read_at_start(_AT_IMPORT)
_turns = itertools.count()


@functools.cache
def _client_forks(turn: int) -> Forks:
    return Forks(_AT_IMPORT, _forks(turn))


@functools.cache
def _forks(_turn: int) -> Forks:
    return Forks(_AT_IMPORT)
