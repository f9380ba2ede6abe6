"""The servers that a run starts for itself: workers, a controller, an agent server, each a process of its own.

A worker alone needs no controller: clients speak to it as they do to a controller. Each has a pipe from this process as
its standard input and stops when that closes, so no server outlives the run, even one killed with -9.
"""

import asyncio
import contextlib
import dataclasses
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from eval_client.endpoints.chat_configs import local_token
from proctor.config.task import TaskDefinition, task_file_text

if TYPE_CHECKING:
    from eval_client.endpoints.called_agents import CalledAgent
    from proctor.agent_function import FunctionCaller
    from proctor.environment import Environment, PolicyKind
    from task_server.worker.worker import Worker

READY_S = 60.0
STOP_S = 40.0
RESTARTS = 5
RESTART_WAIT_S = 1.0
IN_PROCESS = "http://in-process"
"""The address of a worker in this process, which nothing is sent to."""
ALONE = dict.fromkeys(
    ("PROCTOR_TOKEN_FILE", "PROCTOR_TLS_CERT", "PROCTOR_TLS_KEY", "PROCTOR_TLS_CA", "PROCTOR_TLS_CLIENT_CA"), ""
)
"""Environment variables unset for our own servers: those have a token of their own, and use plain HTTP on loopback."""


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


@dataclass(frozen=True)
class LocalServers:
    """The URLs of the run's own servers; None for a server that the run has not started."""

    token: str
    controller: str | None
    agents: str | None
    failure: asyncio.Future[str]
    """Done when a server died too often; its result is the message."""
    here: "Worker | None" = None
    """The worker of this process, at the address of the controller."""
    called: Mapping[str, "CalledAgent"] = field(default_factory=dict)
    """The agents of this process, by name."""


@contextlib.asynccontextmanager
async def local_servers(
    folder: Path, tasks: Sequence[TaskDefinition], *, workers: int, builtin_agents: Sequence[tuple[str, str]]
) -> AsyncIterator[LocalServers]:
    """Start a run's own servers, and stop them afterwards.

    `workers` 0 starts no task servers; `builtin_agents` are (name, kind). Raises ServerProcessError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    token = local_token()
    task_file = folder / "tasks.yaml"
    task_file.write_text(task_file_text(tasks))
    failure: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with contextlib.AsyncExitStack() as stack:

        async def up(name: str, arguments: Sequence[str], *first_only: str, keep_port: bool = False) -> str:
            server = ServerProcess(name, arguments, folder, {**ALONE, "PROCTOR_TOKEN": token})
            stack.push_async_callback(server.stop)
            url = await server.start(*first_only)
            if keep_port:
                server.pin(url)
            stack.push_async_callback(_cancel, asyncio.create_task(server.supervise(failure)))
            return url

        async def task_servers_up() -> str | None:
            if not workers:
                return None
            held = ["worker", f"--tasks={task_file}"]
            if workers == 1:
                return await up("worker-1", held, keep_port=True)
            controller = await up("controller", ["controller"], "--settle=0", keep_port=True)
            held.append(f"--controller={controller}")
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


@contextlib.asynccontextmanager
async def servers_with_worker(
    servers: contextlib.AbstractAsyncContextManager[LocalServers],
    tasks: Sequence[TaskDefinition],
    worlds: Mapping[str, "Environment"],
) -> AsyncIterator[LocalServers]:
    """The same servers, and a worker in this process; `worlds` are the tasks' environments that were given in Python.

    It is called, not posted to. Raises FileError where a task can't be built.
    """
    from task_server.worker.worker import Worker  # FastAPI, which runs with worker processes do without

    worker = Worker("in-process", IN_PROCESS, tasks, worlds=worlds)
    async with servers as local:
        try:
            async with worker.running():
                yield dataclasses.replace(local, controller=IN_PROCESS, here=worker)
        except BaseExceptionGroup as group:  # a task group wraps what is raised within
            raise (group.exceptions[0] if len(group.exceptions) == 1 else group) from None


@contextlib.asynccontextmanager
async def servers_with_called(
    servers: contextlib.AbstractAsyncContextManager[LocalServers],
    functions: Mapping[str, "FunctionCaller"],
    policies: Mapping[str, "PolicyKind"],
    tasks: Sequence[TaskDefinition],
) -> AsyncIterator[LocalServers]:
    """The same servers, and Python functions and policies of tasks as agents of this process, by agent name."""
    from eval_client.endpoints.called_agents import called_agents  # runs without such agents load no part of a server

    async with servers as local:
        yield dataclasses.replace(local, called=called_agents(functions, policies, tasks))


async def _settle(starting: Sequence[asyncio.Task[str | None]]) -> None:
    """Cancel the starts that are still under way, after one failed or all were cancelled, and wait for them."""
    for task in starting:
        task.cancel()
    await asyncio.gather(*starting, return_exceptions=True)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
