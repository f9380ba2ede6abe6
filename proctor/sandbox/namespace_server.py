"""The process that the sandboxes of a namespace engine are forked from, as their worker sees it."""

import asyncio
import socket
import sys
from asyncio.subprocess import DEVNULL

from proctor.namespaces.server import COMMAND
from proctor.sandbox.base import SandboxLimits, within

_CLOSE_S = 10.0


def options(limits: SandboxLimits) -> list[str]:
    """The limits that the kernel holds here, as arguments of the process: `disk_mb=2048`."""
    names = {"disk_mb", "processes", "file_mb", "memory_mb", "max_age_s"}
    return [f"{name}={value}" for name, value in limits.model_dump(include=names).items()]


class NamespaceServer:
    """Starts the process when the first sandbox is wanted, and anew where it was ended from outside."""

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
