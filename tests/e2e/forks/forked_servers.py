"""The servers of a run whose client was forked: they are forked too, from a process that has imported servers."""

import asyncio
import contextlib
import os
import signal
import socket
from asyncio.subprocess import Process
from collections.abc import Callable, Coroutine, Mapping
from typing import IO, Any

from eval_client.cli.main import SERVERS
from eval_client.run.servers import own_command
from tests.e2e.forks.forker import Request, read_at_start


class ForkedServer:
    """What a client needs of `asyncio.subprocess.Process`. It is not the client's child; all else is as if it were."""

    def __init__(self, pid: int, stdin: IO[bytes], stdout: asyncio.StreamReader, told: asyncio.StreamReader) -> None:
        self.pid, self.stdin, self.stdout = pid, stdin, stdout
        self.returncode: int | None = None
        self._end = asyncio.create_task(self._until_end(told))

    async def wait(self) -> int:
        """Its exit code, once it has ended."""
        return await asyncio.shield(self._end)

    def send_signal(self, number: int) -> None:
        """Send a signal. Raises ProcessLookupError."""
        if self.returncode is not None:
            raise ProcessLookupError
        os.kill(self.pid, number)

    def kill(self) -> None:
        """kill -9"""
        self.send_signal(signal.SIGKILL)

    async def _until_end(self, told: asyncio.StreamReader) -> int:
        self.returncode = int(await told.read())
        return self.returncode


async def _fork(connection: socket.socket, request: Request, log: IO[bytes]) -> ForkedServer:
    reading, stdin = os.pipe()
    stdout, writing = os.pipe()
    told = request.send(connection, [reading, writing, log.fileno()])
    for descriptor in (reading, writing):
        os.close(descriptor)
    with contextlib.ExitStack() as stack:
        held = stack.enter_context(os.fdopen(stdin, "wb"))
        output, news = await _reader(stdout), await _reader(told)
        pid = int(await news.readline())
        stack.pop_all()
    return ForkedServer(pid, held, output, news)


async def _reader(descriptor: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    pipe = os.fdopen(descriptor, "rb", buffering=0)  # closed by the transport
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader


Start = Callable[..., Coroutine[Any, Any, Process | ForkedServer]]


def forking(connection: socket.socket, environment: Mapping[str, str]) -> Start:
    """`asyncio.create_subprocess_exec`, but servers are forked by asking there. `environment` is that of the process
    that forks; a server that reads another at its start is started."""
    start, ours = asyncio.create_subprocess_exec, read_at_start(environment)
    prefix = own_command()

    async def start_or_fork(*command: Any, **options: Any) -> Process | ForkedServer:
        name, arguments = command[len(prefix) : len(prefix) + 1], command[len(prefix) :]
        if list(command[: len(prefix)]) != prefix or name[0] not in SERVERS or read_at_start(options["env"]) != ours:
            return await start(*command, **options)
        request = Request(arguments, os.getcwd(), options["env"], apart=True)
        return await _fork(connection, request, options["stderr"])

    return start_or_fork
