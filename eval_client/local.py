"""The servers that a run starts for itself: a controller, workers, an agent server, each a process of its own.

They hold on to our standard input and stop when it closes, so nothing outlives the run, even one killed with -9.
"""

import asyncio
import contextlib
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from environments.definition import TaskDefinition
from eval_client.endpoints import new_local_token

READY_S = 60.0
STOP_S = 40.0
RESTARTS = 5
RESTART_WAIT_S = 1.0


class LocalServerError(Exception):
    """A server of this run did not come up; the message names its log."""


@dataclass(frozen=True)
class LocalServers:
    """Where the run's own servers listen; None for those it has none of."""

    token: str
    controller: str | None
    agents: str | None
    failure: asyncio.Future[str]
    """Done when a server died too often; says which."""


class _Server:
    """One process, started again when it dies."""

    def __init__(self, name: str, arguments: Sequence[str], folder: Path, token: str) -> None:
        self._name, self._arguments = name, list(arguments)
        self._log = folder / f"{name}.log"
        self._environment = {**os.environ, "PROCTOR_TOKEN": token}
        self._process: Process | None = None

    async def start(self, *first_only: str) -> str:
        """The base URL, once it listens; `first_only` are arguments for this start alone. Raises LocalServerError."""
        arguments = [*self._arguments, *first_only, "--stop-with-stdin"]
        command = [sys.executable, "-m", "eval_client.cli.main", *arguments]
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
            raise LocalServerError(f"{self._name} did not start; its log ends: {_tail(self._log)}")
        return line.decode().strip()

    async def stop(self) -> None:
        """End it by closing its standard input, and after a while by killing it."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(STOP_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    async def supervise(self, failure: asyncio.Future[str]) -> None:
        """Start it again whenever it dies, RESTARTS times; then say so."""
        for restart in range(RESTARTS + 1):
            assert self._process is not None
            await self._process.wait()
            if restart < RESTARTS:
                await asyncio.sleep(RESTART_WAIT_S * restart)
                with contextlib.suppress(LocalServerError):
                    await self.start()
        if not failure.done():
            failure.set_result(f"{self._name} died {RESTARTS + 1} times; its log ends: {_tail(self._log)}")

    def pin(self, url: str) -> None:
        """From now on it is started at the port of this URL."""
        self._arguments += ["--port", str(urlsplit(url).port)]


@contextlib.asynccontextmanager
async def local_servers(
    folder: Path, tasks: Sequence[TaskDefinition], *, workers: int, builtin_agents: Sequence[tuple[str, str]]
) -> AsyncIterator[LocalServers]:
    """Start what a run needs, stop it afterwards. `workers` 0 starts no task servers; agents are (name, kind)."""
    folder.mkdir(parents=True, exist_ok=True)
    token = new_local_token()
    task_file = folder / "tasks.yaml"
    task_file.write_text(json.dumps({"tasks": [task.model_dump(mode="json") for task in tasks]}, indent=1))
    failure: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with contextlib.AsyncExitStack() as stack:

        async def up(name: str, arguments: Sequence[str], *first_only: str, keep_port: bool = False) -> str:
            server = _Server(name, arguments, folder, token)
            stack.push_async_callback(server.stop)
            url = await server.start(*first_only)
            if keep_port:
                server.pin(url)
            stack.push_async_callback(_cancel, asyncio.create_task(server.supervise(failure)))
            return url

        async def task_servers_up() -> str | None:
            if not workers:
                return None
            controller = await up("controller", ["controller"], "--settle=0", keep_port=True)
            held = ["worker", f"--tasks={task_file}", f"--controller={controller}"]
            await asyncio.gather(*(up(f"worker-{n + 1}", held) for n in range(workers)))
            return controller

        async def agents_up() -> str | None:
            if not builtin_agents:
                return None
            chosen = [f"--agent={name}={kind}" for name, kind in builtin_agents]
            return await up("agents", ["agents", f"--tasks={task_file}", *chosen], keep_port=True)

        starting = [asyncio.create_task(task_servers_up()), asyncio.create_task(agents_up())]
        try:
            controller, agents = await asyncio.gather(*starting)
        finally:
            await _settle(starting)
        yield LocalServers(token, controller, agents, failure)


async def _settle(starting: Sequence[asyncio.Task[str | None]]) -> None:
    """Where one start failed, or all were cancelled, let none go on behind our back."""
    for task in starting:
        task.cancel()
    await asyncio.gather(*starting, return_exceptions=True)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return " | ".join(lines[-3:]) or "(empty)"
