"""The hosts on the nodes: each is a Ray actor that runs one of our processes. No request passes through Ray."""

import asyncio
import contextlib
import logging
import os
import signal
from abc import ABC, abstractmethod
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import ray
from ray.exceptions import RayError

from eval_client.run.servers import ServerProcess, ServerProcessError, own_command
from proctor_ray.forward import Forwarder

log = logging.getLogger(__name__)

CONTROLLER, AGENTS = "controller", "agents"
ORDERLY = (0, 1, 130)
"""Exit codes of a client that reached the end of its run, with all trials scored or not, or was stopped."""
RETRY_S = 5.0
"""Pause before a process that could not be started is retried; Ray may place a server on another node then."""
ASK_S = 5.0
CLIENT_STOP_S = 20.0


@dataclass(frozen=True)
class Hosted:
    """The process of a host: `proctor` with these arguments, and variables that only the host and its child have."""

    name: str
    arguments: tuple[str, ...]
    variables: Mapping[str, str] = field(repr=False)
    tasks: str = ""
    """The contents of its task file or, of a client, of its plan; empty if it needs none."""
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """The user's own files that its tasks name, by their places beside the task file."""
    follows: tuple[str, ...] = ()
    """The hosts that it sends requests to; for each it gets an option with a fixed address."""


@dataclass(frozen=True)
class HostStatus:
    """The node, base URL and Proctor version of a host's server."""

    node: str
    url: str
    version: str


async def find(name: str, namespace: str) -> str:
    """The present base URL of a host's server. Raises ConnectionError."""
    try:
        async with asyncio.timeout(ASK_S):
            actor = await asyncio.to_thread(ray.get_actor, name, namespace)
            status: HostStatus = await actor.status.remote()
    except (RayError, TimeoutError, ValueError) as error:
        raise ConnectionError(f"the {name} is on no node now: {type(error).__name__}") from error
    return status.url


async def address_of(name: str, namespace: str) -> tuple[Forwarder, str]:
    """A forwarder to a host's server, wherever that runs, and its base URL in this process."""
    forwarder = Forwarder(lambda: find(name, namespace))
    return forwarder, await forwarder.open() + ("/v1" if name == AGENTS else "")


def log_folder() -> Path:
    """The folder of this host's files, named after the run, among Ray's own logs of this session."""
    context = ray.get_runtime_context()
    folder = Path(str(context.get_temp_dir()), str(context.get_session_name()), "logs", str(context.namespace))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class NodeHost(ABC):
    """A Ray actor that runs one process on its node."""

    _follow = "--{}={}"
    """How the process is told of the address of another host."""

    def __init__(self, hosted: Hosted) -> None:
        self._hosted = hosted
        self._node = str(ray.util.get_node_ip_address())
        self._url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._running = asyncio.create_task(self._run())

    async def node(self) -> str:
        """The address of the node; answers without waiting for the process."""
        return self._node

    async def status(self) -> HostStatus:
        """The server's status, once it listens. Raises ServerProcessError where it can't be started."""
        return HostStatus(self._node, await asyncio.shield(self._url), version("proctor"))

    async def stop(self) -> None:
        """Stop the process; a server ends its sessions and releases their resources."""
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    @abstractmethod
    async def _run(self) -> None:
        """Run the process to its end."""

    async def _arguments(self) -> list[str]:
        namespace = str(ray.get_runtime_context().namespace)
        followed = [(name, (await address_of(name, namespace))[1]) for name in self._hosted.follows]
        return [*self._hosted.arguments, *(self._follow.format(name, url) for name, url in followed)]


class ServerHost(NodeHost):
    """Keeps one server running: restarts it on its node. If that fails, the host exits and Ray restarts it."""

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
            if not self._hosted.follows:  # other hosts send requests to its address
                self._server.pin(url)
            self._url.set_result(url)
            await self._server.supervise(failure)
            log.error("%s", failure.result())
        except (ServerProcessError, OSError) as error:
            log.error("%s", error)
            if not self._url.done():
                self._url.set_exception(error)
            await asyncio.sleep(RETRY_S)
        os._exit(1)  # for Ray this is a crash: it restarts this host on a node with free resources

    async def _process(self) -> ServerProcess:
        name, folder = self._hosted.name, log_folder()
        arguments = [*await self._arguments(), f"--host={self._node}"]
        for place, content in self._hosted.files.items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_bytes(content)
        if self._hosted.tasks:
            task_file = folder / f"{name}.yaml"
            task_file.write_text(self._hosted.tasks)
            arguments.append(f"--tasks={task_file}")
        return ServerProcess(name, arguments, folder, self._hosted.variables)


class PartHost(NodeHost):
    """Plays one part of the plan to its end; a client that dies is restarted, and goes on with the part's run."""

    _follow = "--set={}={}"

    async def _run(self) -> None:
        folder = log_folder()
        plan = folder / f"{self._hosted.name}.yaml"
        plan.write_text(self._hosted.tasks)
        arguments = [*await self._arguments(), f"--output={folder}", str(plan)]
        code: int | None = None
        while code not in ORDERLY:
            if code is not None:
                log.error("%s ended with %s", self._hosted.name, code)
                await asyncio.sleep(RETRY_S)
            code = await self._client(arguments, folder / f"{self._hosted.name}.log")
        self._url.set_result("")

    async def _client(self, arguments: list[str], log_file: Path) -> int:
        """Run a client; its exit code. The client's standard input is a pipe from us; it exits when the pipe closes."""
        with log_file.open("ab") as written:
            process = await asyncio.create_subprocess_exec(
                *own_command(*arguments),
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
    """Stop a client at once, as a second Ctrl-C does, and wait at most CLIENT_STOP_S."""
    with contextlib.suppress(ProcessLookupError, TimeoutError):
        client.send_signal(signal.SIGINT)
        client.send_signal(signal.SIGTERM)
        async with asyncio.timeout(CLIENT_STOP_S):
            await client.wait()
