"""One of our servers as a child process: started, restarted when it dies, stopped.

It has a pipe from this process as its standard input and stops when that closes, so it does not outlive this process,
even one killed with -9.
"""

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

READY_S = 60.0
STOP_S = 40.0
RESTARTS = 5
RESTART_WAIT_S = 1.0


def own_command(*arguments: str) -> list[str]:
    """`proctor ...` in this Python. As by the installed command, nothing is imported from the working directory."""
    return [sys.executable, "-P", "-m", "eval_client.cli.main", *arguments]


class ServerProcessError(Exception):
    """A server did not start; the message has the end of its log."""


class ServerProcess:
    """`proctor` with these arguments. `variables` are added to our environment; the log is `NAME.log` in `folder`."""

    def __init__(self, name: str, arguments: Sequence[str], folder: Path, variables: Mapping[str, str]) -> None:
        self._name, self._arguments = name, list(arguments)
        self._log = folder / f"{name}.log"
        self._environment = {**os.environ, **variables}
        self._process: Process | None = None

    async def start(self, *first_only: str) -> str:
        """Start the server; its base URL, once it listens.

        `first_only` are arguments that a restart does not get. Raises ServerProcessError.
        """
        arguments = [*self._arguments, *first_only, "--stop-with-stdin"]
        command = own_command(*arguments)
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, stderr=log, env=self._environment, start_new_session=True
            )
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(READY_S):
                line = await self._process.stdout.readline()
        except TimeoutError:
            line = b""
        if not line:
            await self.stop()
            raise ServerProcessError(f"{self._name} did not start; its log ends: {_tail(self._log)}")
        return line.decode().strip()

    async def stop(self) -> None:
        """End the server by closing its standard input; kill it if it is not gone after STOP_S."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOP_S):
                    await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
        await process.wait()

    async def supervise(self, failure: asyncio.Future[str]) -> None:
        """Restart the server when it dies, up to RESTARTS times; after that, `failure` gets a message as its result."""
        for restart in range(RESTARTS + 1):
            assert self._process is not None
            await self._process.wait()
            if restart < RESTARTS:
                await asyncio.sleep(RESTART_WAIT_S * restart)
                with contextlib.suppress(ServerProcessError):
                    await self.start()
        if not failure.done():
            failure.set_result(f"{self._name} died {RESTARTS + 1} times; its log ends: {_tail(self._log)}")

    def pin(self, url: str) -> None:
        """Restart the server at the port of this URL from now on."""
        self._arguments += ["--port", str(urlsplit(url).port)]


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return " | ".join(lines[-3:]) or "(empty)"
