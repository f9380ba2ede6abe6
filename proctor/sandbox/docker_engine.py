"""Sandboxes as Docker containers: hardened, made in advance, and always removed, by their owner or the next one."""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, suppress
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

import docker
import docker.errors
import requests

from proctor.environment import EnvironmentFault, ServiceAway
from proctor.sandbox import docker_files
from proctor.sandbox.base import ENVIRONMENT, Change, Engine, Process, Sandbox, SandboxLimits, within
from proctor.sandbox.docker_containers import CLOSE_S, Containers, Network, connect
from proctor.sandbox.docker_disk import Disk
from proctor.sandbox.docker_exec import DockerProcess, Stream, attach, reach

T = TypeVar("T")
_CREATE_S = 60.0
_NOTICE_S = 1
_STILL_S = 2.0
"""An engine that is silent for so long stood still, and what ran in its containers is not to blame for being late."""
_UNPACK = ("/bin/tar", "--extract", "--preserve-permissions", "--numeric-owner", "--file=-")
# Statuses of a process that could not start, or was killed; also those of a process whose container has ended.
_DEAD_CONTAINER_STATUSES = (126, 137)


class DockerEngine(Engine):
    """Containers on the engine that DOCKER_HOST names, with a pool made in advance for the default image.

    The pool grows with use, to one container less than were taken: a lifespan with a single session makes only its own.
    """

    def __init__(
        self,
        image: str,
        limits: SandboxLimits,
        *,
        pool: int = 2,
        runtime: str | None = None,
        disk: Disk = "auto",
        network: Network = "none",
        call_limit_s: float = 20.0,
    ) -> None:
        self._call_limit_s = call_limit_s
        self._image, self._limits, self._pool_size, self._disk = image, limits, pool, disk
        self._containers_of = partial(
            Containers, image=image, limits=limits, runtime=runtime, disk=disk, network=network
        )
        self._creating = asyncio.Semaphore(os.cpu_count() or 1)
        self._ready: deque[tuple[float, str]] = deque()
        self._tasks: set[asyncio.Task[object]] = set()
        self._filling = False
        self._taken = 0
        """Sandboxes of the default image that were asked for."""

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        self._threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="docker")
        try:
            async with within(self._call_limit_s, "connecting to Docker"):
                await reach()
                self.client = await self.call(connect, self._call_limit_s)
            self._containers = self._containers_of(self.client)
            try:
                await self.call(self._containers.prepare)
                yield
            finally:
                await self._shut_down()
                # A call whose caller was cancelled may still be using the client.
                await asyncio.to_thread(self._threads.shutdown)
                self._containers.close()
                self.client.close()
        finally:
            self._threads.shutdown(wait=False)

    async def create(self, image: str | None = None) -> Sandbox:
        async with within(_CREATE_S, "creating a container"):
            name = image or self._image
            container = await self._owned(self._from_pool()) if name == self._image else None
            if container is None:
                container = await self._owned(self._start(name))
            try:
                layers = await self.call(lambda: docker_files.layers(self.client.api.inspect_container(container)))
            except BaseException:
                self._spawn_task(self._remove(container))
                raise
            return DockerSandbox(self, name, container, layers)

    async def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Make a blocking call of the SDK in a thread. Raises EnvironmentFault with Docker's reason."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)
        except (docker.errors.DockerException, requests.RequestException, OSError) as error:
            kind = EnvironmentFault if _is_lasting(error) else ServiceAway
            raise kind(f"Docker: {_reason(error)}") from error

    async def spawn(
        self, container: str, argv: Sequence[str], interactive: bool, variables: Mapping[str, str] | None = None
    ) -> Process:
        """Start a process in a container, attached to its streams."""
        environment = {**ENVIRONMENT, **(variables or {})}
        api = self.client.api
        created = await self.call(
            lambda: api.exec_create(container, list(argv), stdin=interactive, environment=environment, workdir="/")
        )
        exec_id = str(created["Id"])
        connection = await attach(api, f"exec/{exec_id}/start")
        return DockerProcess(*connection, lambda: self.call(_exit_status, api, exec_id))

    async def changes(self, container: str, layers: docker_files.Layers | None) -> Mapping[str, Change] | None:
        """The paths that differ from the image; None with `tmpfs`, which the engine can't see."""
        if self._disk == "tmpfs":
            return None
        return await self.call(docker_files.changes, self.client, container, layers)

    async def ended_from_outside(self, container: str) -> bool:
        """Whether a container has ended, and not for want of the memory that its limits give it."""
        if await self.call(self._containers.is_running, container):
            return False
        return not await self.call(self._containers.ran_out_of_memory, container)

    async def remove(self, container: str) -> None:
        """Remove a container; continues in the background when the caller is cancelled."""
        await self._owned(self._remove(container))

    async def _start(self, image: str) -> str:
        async with self._creating:
            container = await self.call(self._containers.create, image)
            try:
                await self._begin(container)
                files = await self.call(self._containers.hidden_files, image)
                if files is not None:
                    await self._unpack(container, files)
            except BaseException:
                self._spawn_task(self._remove(container))
                raise
            return container

    async def _begin(self, container: str) -> None:
        """Start a container, and wait until its first process is ready. Raises EnvironmentFault."""
        api = self.client.api
        async with within(_CREATE_S, "starting a container"):
            with closing(Stream(*await attach(api, f"containers/{container}/attach?stream=1&stdout=1"))) as stream:
                await self.call(api.start, container)
                if not await stream.read():
                    raise ServiceAway("Docker: the container's first process, /bin/bash, ended at once")

    async def _unpack(self, container: str, files: bytes) -> None:
        """Fill the tmpfs mounts with the image's files. Raises EnvironmentFault."""
        with closing(await self.spawn(container, _UNPACK, interactive=True)) as process:
            await process.write(files)
            output = await process.read()
            status = await process.wait()
        if status != 0:
            reason = output.decode(errors="replace")[:300]
            raise EnvironmentFault(f"Docker: filling the tmpfs mounts ended with status {status}: {reason}")

    async def _remove(self, container: str) -> None:
        async with within(CLOSE_S, "removing a container"):
            await self.call(self._containers.remove, container)

    async def _from_pool(self) -> str | None:
        """A running container of the pool, not past half its maximum age, or None; refills the pool."""
        now = asyncio.get_running_loop().time()
        self._taken += 1
        try:
            while self._ready:
                made, container = self._ready.popleft()
                if now - made < self._limits.max_age_s / 2 and await self.call(self._containers.is_running, container):
                    return container
                self._spawn_task(self._remove(container))
            return None
        finally:
            self._refill()

    def _refill(self) -> None:
        if not self._filling and self._is_short():
            self._filling = True
            self._spawn_task(self._fill())

    async def _fill(self) -> None:
        """Make containers until the pool is full. A failure leaves it short: the next session reports the cause."""
        try:
            while self._is_short():
                container = await self._start(self._image)
                self._ready.append((asyncio.get_running_loop().time(), container))
        finally:
            self._filling = False

    def _is_short(self) -> bool:
        return len(self._ready) < min(self._pool_size, self._taken - 1)

    async def _owned(self, work: Coroutine[Any, Any, T]) -> T:
        """Finish work even when the caller is cancelled; the container that it made is then removed."""
        task = self._spawn_task(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(self._discard)
            raise

    def _discard(self, task: asyncio.Task[T]) -> None:
        if not task.cancelled() and task.exception() is None and isinstance(made := task.result(), str):
            self._spawn_task(self._remove(made))

    def _spawn_task(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task

    async def _shut_down(self) -> None:
        """Wait for all work in progress, then remove the pool."""
        self._pool_size = 0
        while self._tasks:
            await asyncio.wait(self._tasks)
        while self._ready:
            with suppress(EnvironmentFault):
                await self._remove(self._ready.popleft()[1])


class DockerSandbox(Sandbox):
    """One container."""

    def __init__(self, engine: DockerEngine, image: str, container: str, layers: docker_files.Layers | None) -> None:
        self._engine, self._image, self._layers = engine, image, layers
        self.container = container
        self._processes: list[Process] = []
        self._closed = False

    async def spawn(
        self, argv: Sequence[str], *, interactive: bool = False, variables: Mapping[str, str] | None = None
    ) -> Process:
        process = await self._engine.spawn(self.container, argv, interactive, variables)
        self._processes.append(process)
        return process

    def fresh(self) -> AbstractAsyncContextManager[Sandbox]:
        return self._engine.sandbox(self._image)

    async def check_engine(self) -> None:
        async with within(_STILL_S, "an answer of Docker's engine"):
            await reach()

    async def ended_from_outside(self) -> bool:
        return await self._engine.ended_from_outside(self.container)

    async def changes(self) -> Mapping[str, Change] | None:
        return await self._engine.changes(self.container, self._layers)

    async def fingerprint(self, path: str) -> str | None:
        return await self._engine.call(docker_files.fingerprint, self._engine.client, self.container, path)

    async def is_program(self, path: str) -> bool:
        return await self._engine.call(docker_files.is_program, self._engine.client, self.container, path)

    async def unpack(self, archive: bytes) -> None:
        await self._engine.call(self._engine.client.api.put_archive, self.container, "/", archive)

    async def content(self, path: str) -> bytes | None:
        return await self._engine.call(docker_files.content, self._engine.client, self.container, path)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            for process in self._processes:
                process.close()
            await self._engine.remove(self.container)


def _exit_status(api: docker.APIClient, exec_id: str) -> int | None:
    """The exit status, None while it runs. Raises DockerException where it ended because its container did."""
    state = api.exec_inspect(exec_id)
    if state["Running"]:
        return None
    status = int(state["ExitCode"])
    if status in _DEAD_CONTAINER_STATUSES:
        _require_running(api, state["ContainerID"])
    return status


def _require_running(api: docker.APIClient, container: str) -> None:
    """Raise DockerException where a container has ended, after the time in which the engine notices it."""
    try:
        api.wait(container, timeout=_NOTICE_S, condition="not-running")
    except (requests.ReadTimeout, requests.ConnectionError):
        return  # it still runs
    raise docker.errors.DockerException("the container has ended")


def _is_lasting(error: BaseException) -> bool:
    """Whether an engine that works refuses for good: not where it is away, or a container has gone with it."""
    if isinstance(error, docker.errors.ImageNotFound):
        return True
    gone = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
    return isinstance(error, docker.errors.APIError) and error.is_client_error() and error.status_code not in gone


def _reason(error: BaseException) -> str:
    if isinstance(error, docker.errors.APIError):
        return str(error.explanation or error)
    return f"no answer from the engine: {error}"
