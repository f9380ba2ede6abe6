"""Sandboxes from Linux namespaces: no daemon, no image, no privilege where the kernel allows it.

Files, processes, network and users are separate, and no file of the host can be written. But a sandbox shows the host's
programs and shares its memory and processors: isolation enough for built-in agents, too weak for models.
"""

import asyncio
import json
import marshal
import os
import socket
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

from proctor.environment import EnvironmentFault, ServiceAway
from proctor.sandbox.base import ENVIRONMENT, Engine, Process, Sandbox, SandboxLimits, within
from proctor.sandbox.namespaces.init import COMMAND

_START_S = 20.0
_CLOSE_S = 10.0
_WRITE_S = 30.0
_CHUNK = 1 << 16


class NamespaceEngine(Engine):
    """Sandboxes in namespaces of this kernel; an image name is ignored, the host's own programs are used."""

    def __init__(self, limits: SandboxLimits) -> None:
        self._server = _ForkServer(limits)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        try:
            async with self.sandbox():  # fails at once where this kernel does not allow it
                pass
            yield
        finally:
            await self._server.close()

    async def create(self, image: str | None = None) -> Sandbox:
        try:
            box = NamespaceSandbox(await self._server.fork(), self)
        except OSError as error:
            raise EnvironmentFault(f"namespace sandbox: {error}") from error
        try:
            await box.wait_until_ready()
        except BaseException:
            await box.close()
            raise
        return box


class NamespaceSandbox(Sandbox):
    """The socket to one sandbox's first process, and the requests in progress to it."""

    def __init__(self, control: socket.socket, engine: Engine) -> None:
        control.setblocking(False)
        self._engine = engine
        self._control = control
        self._sending = asyncio.Lock()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._started: dict[int, asyncio.Future[None]] = {}
        self._exits: dict[int, asyncio.Future[int]] = {}
        self._processes: list[Process] = []
        self._listening = asyncio.create_task(self._listen())

    async def wait_until_ready(self) -> None:
        """Wait until the sandbox is ready. Raises EnvironmentFault with the kernel's reason where it can't be made."""
        async with within(_START_S, "making namespaces"):
            await self._ready

    async def spawn(
        self, argv: Sequence[str], *, interactive: bool = False, variables: Mapping[str, str] | None = None
    ) -> Process:
        loop = asyncio.get_running_loop()
        number = len(self._exits)
        self._started[number], self._exits[number] = loop.create_future(), loop.create_future()
        output, their_output = os.pipe()
        input_, their_input = socket.socketpair()
        try:
            process = await NamespaceProcess.over(output, input_, self._exits[number])
            self._processes.append(process)
            try:
                if not interactive:
                    input_.shutdown(socket.SHUT_WR)
                request = (number, list(argv), {**ENVIRONMENT, **(variables or {})})
                await self._ask(request, [their_input.fileno(), their_output])
                await self._started[number]
            except BaseException:
                process.close()
                raise
        finally:
            their_input.close()
            os.close(their_output)
        return process

    def fresh(self) -> AbstractAsyncContextManager[Sandbox]:
        return self._engine.sandbox()

    async def ended_from_outside(self) -> bool:
        return self._listening.done()

    async def close(self) -> None:
        await asyncio.shield(asyncio.ensure_future(self._close()))

    async def _close(self) -> None:
        for process in self._processes:
            process.close()
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        try:
            async with within(_CLOSE_S, "ending a namespace sandbox"):
                await asyncio.wait({self._listening})
        finally:
            self._listening.cancel()
            self._control.close()

    async def _ask(self, request: tuple[int, list[str], dict[str, str]], streams: list[int]) -> None:
        body = marshal.dumps(request)
        loop = asyncio.get_running_loop()
        async with self._sending:
            try:
                socket.send_fds(self._control, [len(body).to_bytes(4, "big")], streams)
                await loop.sock_sendall(self._control, body)
            except OSError as error:
                raise ServiceAway(f"namespace sandbox: it has ended: {error}") from error

    async def _listen(self) -> None:
        """Complete the futures that the answers are for; when the whole sandbox has ended, fail those left."""
        loop = asyncio.get_running_loop()
        text = b""
        with suppress(OSError):
            while chunk := await loop.sock_recv(self._control, _CHUNK):
                *lines, text = (text + chunk).split(b"\n")
                for line in lines:
                    self._handle(json.loads(line))
        reason = ServiceAway("namespace sandbox: it has ended")
        waiting: list[asyncio.Future[Any]] = [self._ready, *self._started.values(), *self._exits.values()]
        for future in waiting:
            _fail(future, reason)

    def _handle(self, answer: dict[str, int | str | bool]) -> None:
        number = answer.get("id")
        if not isinstance(number, int):
            if "failed" in answer:
                _fail(self._ready, EnvironmentFault(f"namespace sandbox: not possible here: {answer['failed']}"))
            elif not self._ready.done():
                self._ready.set_result(None)
        elif "exit" in answer:
            self._exits[number].set_result(int(answer["exit"]))
        elif "failed" in answer:
            _fail(self._started[number], EnvironmentFault(f"namespace sandbox: {answer['failed']}"))
        elif not self._started[number].done():
            self._started[number].set_result(None)


class NamespaceProcess(Process):
    """A process in a namespace sandbox: its output is a pipe, its input a socket."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        output: asyncio.ReadTransport,
        input_: socket.socket,
        exit_: asyncio.Future[int],
    ) -> None:
        self._reader, self._output, self._input, self._exit = reader, output, input_, exit_

    @classmethod
    async def over(cls, output: int, input_: socket.socket, exit_: asyncio.Future[int]) -> "NamespaceProcess":
        """The process whose output, input and exit status these are. Closes both where it is cancelled."""
        input_.setblocking(False)
        reader = asyncio.StreamReader()
        try:
            transport, _ = await asyncio.get_running_loop().connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(output, "rb", 0)
            )
        except BaseException:
            input_.close()
            raise
        return cls(reader, transport, input_, exit_)

    async def read(self) -> bytes:
        return await self._reader.read(_CHUNK)

    async def write(self, data: bytes) -> None:
        with suppress(ConnectionError):
            async with within(_WRITE_S, "writing to a process"):
                await asyncio.get_running_loop().sock_sendall(self._input, data)

    async def wait(self) -> int:
        return await asyncio.shield(self._exit)

    def close(self) -> None:
        self._output.close()
        self._input.close()


class _ForkServer:
    """The process that sandboxes are forked from: started when the first is wanted, and anew where it was ended."""

    def __init__(self, limits: SandboxLimits) -> None:
        self._limits = limits
        self._starting = asyncio.Lock()
        self._requests: socket.socket | None = None
        self._process: asyncio.subprocess.Process | None = None

    async def fork(self) -> socket.socket:
        """The socket to the first process of a new sandbox. Raises OSError."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                await self._ask(theirs.fileno())
            except BaseException:
                ours.close()
                raise
        return ours

    async def _ask(self, control: int) -> None:
        requests, process = await self._started()
        try:
            socket.send_fds(requests, [b"1"], [control])
        except ConnectionError:  # it was ended from outside just now
            await process.wait()
            requests, _ = await self._started()
            socket.send_fds(requests, [b"1"], [control])

    async def close(self) -> None:
        """End the process; its sandboxes go on."""
        await asyncio.shield(asyncio.ensure_future(self._close()))

    async def _close(self) -> None:
        if self._requests is not None:
            self._requests.close()
        if self._process is not None:
            async with within(_CLOSE_S, "ending the server of namespace sandboxes"):
                await self._process.wait()

    async def _started(self) -> tuple[socket.socket, asyncio.subprocess.Process]:
        async with self._starting:
            if self._requests is None or self._process is None or self._process.returncode is not None:
                await self._close()
                self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with theirs:
                    self._process = await self._start(theirs)
            return self._requests, self._process

    async def _start(self, requests: socket.socket) -> asyncio.subprocess.Process:
        """In a session of its own, so that Ctrl-C in a terminal ends no sandbox."""
        return await asyncio.create_subprocess_exec(
            *(sys.executable, *COMMAND, str(requests.fileno()), *options(self._limits)),
            pass_fds=(requests.fileno(),),
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=DEVNULL,
            env={},
            start_new_session=True,
        )


def options(limits: SandboxLimits) -> list[str]:
    """The limits that the kernel holds here, as arguments of the process: `disk_mb=2048`."""
    names = {"disk_mb", "processes", "file_mb", "memory_mb", "max_age_s"}
    return [f"{name}={value}" for name, value in limits.model_dump(include=names).items()]


def _fail(future: asyncio.Future[Any], reason: EnvironmentFault) -> None:
    """Fail a future, without a warning where nothing awaits it."""
    if not future.done():
        future.set_exception(reason)
        future.exception()
