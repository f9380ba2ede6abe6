"""What runs on the nodes: a Ray actor around an ordinary process of ours. No request passes through Ray."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from abc import ABC, abstractmethod
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import ray
from ray.exceptions import RayError

from eval_client.ray.forward import Forwarder
from eval_client.servers.server_process import ServerProcess, ServerProcessError
from eval_client.servers.shard_processes import ORDERLY

log = logging.getLogger(__name__)

CONTROLLER, AGENTS = "controller", "agents"
RETRY_S = 5.0
"""What can't be started is tried again after this long, a server wherever there is room then."""
ASK_S = 5.0
CLIENT_STOP_S = 20.0


@dataclass(frozen=True)
class Hosted:
    """What a host runs: `proctor` with these arguments, and with variables that only it and its child know."""

    name: str
    arguments: tuple[str, ...]
    variables: Mapping[str, str] = field(repr=False)
    tasks: str = ""
    """The contents of its task file, if it takes one."""
    follows: tuple[str, ...] = ()
    """The hosts that it talks to; the option `--NAME` gives it an address that leads to each, wherever it is."""


@dataclass(frozen=True)
class HostStatus:
    """Where a host's server is, and of which version."""

    node: str
    url: str
    version: str


async def find(name: str, namespace: str) -> str:
    """The base URL of a host's server now. Raises ConnectionError."""
    try:
        async with asyncio.timeout(ASK_S):
            actor = await asyncio.to_thread(ray.get_actor, name, namespace)
            standing: HostStatus = await actor.standing.remote()
    except (RayError, TimeoutError, ValueError) as error:
        raise ConnectionError(f"the {name} is on no node now: {type(error).__name__}") from error
    return standing.url


async def address_of(name: str, namespace: str) -> tuple[Forwarder, str]:
    """A base URL at this process that leads to a host's server, wherever it is, and what makes it so."""
    forwarder = Forwarder(lambda: find(name, namespace))
    return forwarder, await forwarder.open() + ("/v1" if name == AGENTS else "")


def log_folder() -> Path:
    """Where this host's files go: among Ray's own logs of this session, under the run's name."""
    context = ray.get_runtime_context()
    folder = Path(str(context.get_temp_dir()), str(context.get_session_name()), "logs", str(context.namespace))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class NodeHost(ABC):
    """What the hosts have in common."""

    def __init__(self, hosted: Hosted) -> None:
        self._hosted = hosted
        self._node = str(ray.util.get_node_ip_address())
        self._url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._running = asyncio.create_task(self._run())

    async def node(self) -> str:
        """The address of the node, at once."""
        return self._node

    async def standing(self) -> HostStatus:
        """Where the server is, once it is up. Raises ServerProcessError where it can't be started."""
        return HostStatus(self._node, await asyncio.shield(self._url), version("proctor"))

    async def stop(self) -> None:
        """End what runs here: a server's sessions end and free what they hold."""
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    @abstractmethod
    async def _run(self) -> None:
        """What is done here, to its end."""

    async def _arguments(self) -> list[str]:
        namespace = str(ray.get_runtime_context().namespace)
        followed = [(name, (await address_of(name, namespace))[1]) for name in self._hosted.follows]
        return [*self._hosted.arguments, *(f"--{name}={url}" for name, url in followed)]


class ServerHost(NodeHost):
    """Keeps one server running on its node: restarts it there, and elsewhere by ending, which Ray then mends."""

    _server: ServerProcess | None = None

    async def stop(self) -> None:
        await super().stop()
        if self._server is not None:
            await self._server.stop()

    async def _run(self) -> None:
        failure: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        try:
            self._server = await self._process()
            url = await self._server.start()
            if not self._hosted.follows:  # others know its address
                self._server.pin(url)
            self._url.set_result(url)
            await self._server.supervise(failure)
            log.error("%s", failure.result())
        except (ServerProcessError, OSError) as error:
            log.error("%s", error)
            if not self._url.done():
                self._url.set_exception(error)
            await asyncio.sleep(RETRY_S)
        os._exit(1)  # Ray takes it for a crash, and starts this host again where there is room

    async def _process(self) -> ServerProcess:
        name, folder = self._hosted.name, log_folder()
        arguments = [*await self._arguments(), f"--host={self._node}"]
        if self._hosted.tasks:
            task_file = folder / f"{name}.yaml"
            task_file.write_text(self._hosted.tasks)
            arguments.append(f"--tasks={task_file}")
        return ServerProcess(name, arguments, folder, self._hosted.variables)


class ClientHost(NodeHost):
    """Runs one client of the run to its end; one that dies or finds nobody to join is tried again."""

    async def _run(self) -> None:
        folder = log_folder()
        arguments = [*await self._arguments(), f"--output={folder}"]
        code: int | None = None
        while code not in ORDERLY:
            if code is not None:
                log.error("%s ended with %s", self._hosted.name, code)
                await asyncio.sleep(RETRY_S)
            code = await self._client(arguments, folder / f"{self._hosted.name}.log")
        self._url.set_result("")

    async def _client(self, arguments: list[str], log_file: Path) -> int:
        """The exit code; the client holds on to our standard input, and dies when that closes."""
        with log_file.open("ab") as written:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "eval_client.cli.main", *arguments),
                stdin=PIPE,
                stdout=written,
                stderr=STDOUT,
                env={**os.environ, **self._hosted.variables},
                start_new_session=True,
            )
        assert process.stdin is not None
        try:
            return await process.wait()
        except asyncio.CancelledError:
            await _stop(process)
            raise
        finally:
            process.stdin.close()


async def _stop(client: Process) -> None:
    """Have a client stop at once, as Ctrl-C does twice, while there is time."""
    with contextlib.suppress(ProcessLookupError, TimeoutError):
        client.send_signal(signal.SIGINT)
        client.send_signal(signal.SIGTERM)
        async with asyncio.timeout(CLIENT_STOP_S):
            await client.wait()
