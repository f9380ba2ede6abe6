"""What runs on the nodes: a Ray actor around an ordinary server process of ours. No request passes through it."""

import asyncio
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import ray
from ray.exceptions import GetTimeoutError, RayError

from eval_client.cluster.forward import Forwarder
from eval_client.server_process import ServerProcess, ServerProcessError

log = logging.getLogger(__name__)

CONTROLLER = "controller"
RETRY_S = 5.0
"""A server that can't be started is tried again after this long, wherever there is room then."""
ASK_S = 5.0


@dataclass(frozen=True)
class Hosted:
    """What a host runs: `proctor` with these arguments, and with variables that only it and its child know."""

    name: str
    arguments: tuple[str, ...]
    variables: Mapping[str, str] = field(repr=False)
    tasks: str = ""
    """The contents of its task file, if it takes one."""
    controlled: bool = False
    """It talks to the run's controller."""


@dataclass(frozen=True)
class Standing:
    """Where a host's server is, and of which version."""

    node: str
    url: str
    version: str


async def find_controller(namespace: str) -> str:
    """The base URL of the run's controller now. Raises ConnectionError."""
    try:
        async with asyncio.timeout(ASK_S):
            actor = await asyncio.to_thread(ray.get_actor, CONTROLLER, namespace)
            standing: Standing = await actor.standing.remote()
    except (RayError, GetTimeoutError, TimeoutError, ValueError) as error:
        raise ConnectionError(f"the controller is on no node now: {type(error).__name__}") from error
    return standing.url


class ServerHost:
    """Keeps one server running on its node: restarts it there, and elsewhere by ending, which Ray then mends."""

    def __init__(self, hosted: Hosted) -> None:
        self._hosted = hosted
        self._node = str(ray.util.get_node_ip_address())
        self._url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._server: ServerProcess | None = None
        self._running = asyncio.create_task(self._run())

    async def standing(self) -> Standing:
        """Where the server is, once it is up. Raises ServerProcessError where it can't be started."""
        return Standing(self._node, await asyncio.shield(self._url), version("proctor"))

    async def node(self) -> str:
        """The address of the node, at once."""
        return self._node

    async def stop(self) -> None:
        """End the server: its sessions end and free what they hold."""
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
        if self._server is not None:
            await self._server.stop()

    async def _run(self) -> None:
        failure: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        try:
            self._url.set_result(await self._start())
            assert self._server is not None
            await self._server.supervise(failure)
            log.error("%s", failure.result())
        except (ServerProcessError, OSError) as error:
            log.error("%s", error)
            self._url.set_exception(error)
            await asyncio.sleep(RETRY_S)
        os._exit(1)  # Ray takes it for a crash, and starts this host again where there is room

    async def _start(self) -> str:
        """The server's base URL. Raises ServerProcessError, OSError."""
        name, folder = self._hosted.name, log_folder()
        arguments = [*self._hosted.arguments, f"--host={self._node}"]
        if self._hosted.tasks:
            task_file = folder / f"{name}.yaml"
            task_file.write_text(self._hosted.tasks)
            arguments.append(f"--tasks={task_file}")
        if self._hosted.controlled:
            namespace = ray.get_runtime_context().namespace
            arguments.append(f"--controller={await Forwarder(lambda: find_controller(namespace)).open()}")
        self._server = ServerProcess(name, arguments, folder, self._hosted.variables)
        url = await self._server.start()
        if not self._hosted.controlled:
            self._server.pin(url)
        return url


def log_folder() -> Path:
    """Where this host's files go: among Ray's own logs of this session, under the run's name."""
    context = ray.get_runtime_context()
    folder = Path(str(context.get_temp_dir()), str(context.get_session_name()), "logs", str(context.namespace))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
