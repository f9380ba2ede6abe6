"""The servers that a run starts for itself: workers, a controller, an agent server, each a process of its own.

A worker alone needs no controller: clients speak to it as they do to a controller.

Each has a pipe from this process as its standard input and stops when that closes, so no server outlives the run, even
one killed with -9.
"""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from eval_client.endpoints.chat_configs import local_token
from eval_client.servers.server_process import ServerProcess
from proctor.config.task import TaskDefinition, task_file_text

if TYPE_CHECKING:
    from proctor.agent_function import AgentFunction
    from proctor.environment import PolicyKind

ALONE = dict.fromkeys(
    ("PROCTOR_TOKEN_FILE", "PROCTOR_TLS_CERT", "PROCTOR_TLS_KEY", "PROCTOR_TLS_CA", "PROCTOR_TLS_CLIENT_CA"), ""
)
"""Environment variables unset for our own servers: those have a token of their own, and use plain HTTP on loopback."""


@dataclass(frozen=True)
class LocalServers:
    """The URLs of the run's own servers; None for a server that the run has not started."""

    token: str
    controller: str | None
    agents: str | None
    failure: asyncio.Future[str]
    """Done when a server died too often; its result is the message."""


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
async def servers_with_functions(
    servers: contextlib.AbstractAsyncContextManager[LocalServers],
    functions: Mapping[str, "AgentFunction"],
    policies: Mapping[str, "PolicyKind"],
    tasks: Sequence[TaskDefinition],
) -> AsyncIterator[LocalServers]:
    """The same servers, and an agent server in this process for Python functions and policies, by agent name."""
    from agent_server.in_process import serving

    async with servers as local, serving(functions, policies, tasks, local.token) as url:
        yield dataclasses.replace(local, agents=url)


async def _settle(starting: Sequence[asyncio.Task[str | None]]) -> None:
    """Cancel the starts that are still under way, after one failed or all were cancelled, and wait for them."""
    for task in starting:
        task.cancel()
    await asyncio.gather(*starting, return_exceptions=True)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
