"""Sandboxes as Docker containers: hardened, made ahead, removed in every outcome and by whoever comes next."""

import asyncio
import os
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import docker
import docker.errors
import docker.types
import requests

from environments.base import EnvironmentFault
from environments.sandbox.base import ENVIRONMENT, Engine, Limits, Process, Sandbox, within
from environments.sandbox.docker_exec import DockerProcess, attach, reach
from environments.sandbox.owner import Owner

T = TypeVar("T")
OWNER_LABEL = "proctor.sandbox.owner"
HOME_LABEL = "proctor.sandbox.home"
"""Id and start of the container that the owner runs in, if any: its engine knows whether that still runs."""
_CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETUID", "SETGID", "KILL"]
"""What root needs inside to manage users and files; everything else is dropped."""
_CREATE_S = 60.0
_CLOSE_S = 30.0
_MEGABYTE = 1 << 20
_NOTICE_S = 1
_LIKE_A_DEAD_CONTAINER = (126, 137)  # a process that could not be started, or was killed
# PID 1 reaps orphans, as bash does, and ends at a container's greatest age. It outlives `kill -9 -1`, which ends all
# else: so an agent can't make its own sample unscored.
_INIT = "while ((SECONDS < $0)); do sleep $(($0 - SECONDS)) & wait; done"


class DockerEngine(Engine):
    """Containers on the engine that DOCKER_HOST names, with a pool made ahead for the default image."""

    def __init__(
        self, image: str, limits: Limits, *, pool: int = 2, runtime: str | None = None, call_limit_s: float = 20.0
    ) -> None:
        self._call_limit_s = call_limit_s
        self._image, self._limits, self._pool_size, self._runtime = image, limits, pool, runtime
        self._owner = Owner.current().label()
        self._creating = asyncio.Semaphore(os.cpu_count() or 1)
        self._ready: deque[tuple[float, str]] = deque()
        self._tasks: set[asyncio.Task[object]] = set()
        self._filling = False
        self._quota = False
        self._home = ""

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        self._threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="docker")
        try:
            async with within(self._call_limit_s, "connecting to Docker"):
                await reach()
                self._client = await self.call(_connect, self._call_limit_s)
            try:
                await self.call(self._require_image)
                self._home = await self.call(self._find_home)
                await self.call(self._reap)
                self._quota = await self.call(self._has_quota)
                self._refill()
                yield
            finally:
                await self._shut_down()
                # A call whose caller was cancelled may still be using the client.
                await asyncio.to_thread(self._threads.shutdown)
                self._client.close()
        finally:
            self._threads.shutdown(wait=False)

    async def create(self, image: str | None = None) -> Sandbox:
        async with within(_CREATE_S, "creating a container"):
            name = image or self._image
            container = await self._owned(self._from_pool()) if name == self._image else None
            if container is None:
                container = await self._owned(self._start(name))
            return DockerSandbox(self, container)

    async def call(self, function: Callable[..., T], *arguments: object) -> T:
        """A blocking call of the SDK in a thread. Raises EnvironmentFault naming Docker's reason."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)
        except (docker.errors.DockerException, requests.RequestException, OSError) as error:
            raise EnvironmentFault(f"Docker: {_reason(error)}") from error

    async def spawn(self, container: str, argv: Sequence[str], interactive: bool) -> Process:
        """A process in a container, attached."""
        api = self._client.api
        created = await self.call(
            lambda: api.exec_create(
                container, list(argv), stdin=interactive, environment=ENVIRONMENT, workdir="/", user="root"
            )
        )
        exec_id = str(created["Id"])
        stream = await attach(api, exec_id)
        return DockerProcess(stream, lambda: self.call(_exit_status, api, exec_id))

    async def remove(self, container: str) -> None:
        """Remove a container; goes on in the background when the caller is cancelled."""
        await self._owned(self._remove(container))

    async def _start(self, image: str) -> str:
        async with self._creating:
            return await self.call(self._start_blocking, image)

    def _start_blocking(self, image: str) -> str:
        container = self._client.containers.create(image, **self._options())
        try:
            container.start()
        except Exception:
            # An engine may remove it by itself, as it shall whenever one ends; the cause is why it didn't start.
            with suppress(docker.errors.DockerException):
                container.remove(force=True)
            raise
        return str(container.id)

    def _options(self) -> dict[str, Any]:
        memory = self._limits.memory_mb * _MEGABYTE
        file = self._limits.file_mb * _MEGABYTE
        return {
            "command": ["/bin/bash", "-c", _INIT, str(self._limits.max_age_s)],
            "entrypoint": [],
            "user": "root",
            "hostname": "sandbox",  # one for all, so that a replayed session sees the same
            "network_mode": "none",
            "cap_drop": ["ALL"],
            "cap_add": _CAPABILITIES,
            "security_opt": ["no-new-privileges"],
            "pids_limit": self._limits.processes,
            "mem_limit": memory,
            "memswap_limit": memory,
            "nano_cpus": int(min(self._limits.cpus, os.cpu_count() or 1) * 1e9),
            "ulimits": [
                docker.types.Ulimit(name="fsize", soft=file, hard=file),
                docker.types.Ulimit(name="nofile", soft=4096, hard=4096),
                docker.types.Ulimit(name="core", soft=0, hard=0),
            ],
            "log_config": docker.types.LogConfig(type="none"),
            "labels": {OWNER_LABEL: self._owner, **({HOME_LABEL: self._home} if self._home else {})},
            "auto_remove": True,
            "runtime": self._runtime,
            **({"storage_opt": {"size": f"{self._limits.disk_mb}M"}} if self._quota else {}),
        }

    async def _remove(self, container: str) -> None:
        async with within(_CLOSE_S, "removing a container"):
            await self.call(self._remove_blocking, container)

    def _remove_blocking(self, container: str) -> None:
        with suppress(docker.errors.NotFound):
            try:
                self._client.api.remove_container(container, force=True)
            except docker.errors.APIError as error:
                if error.status_code != 409:
                    raise
                # The engine is removing it already, since it ended.
                self._client.api.wait(container, timeout=int(_CLOSE_S), condition="removed")

    async def _from_pool(self) -> str | None:
        """A container made ahead, young and running; starts making the next."""
        now = asyncio.get_running_loop().time()
        try:
            while self._ready:
                made, container = self._ready.popleft()
                if now - made < self._limits.max_age_s / 2 and await self.call(self._is_running, container):
                    return container
                self._spawn_task(self._remove(container))
            return None
        finally:
            self._refill()

    def _is_running(self, container: str) -> bool:
        try:
            return bool(self._client.api.inspect_container(container)["State"]["Running"])
        except docker.errors.NotFound:
            return False

    def _refill(self) -> None:
        if not self._filling and len(self._ready) < self._pool_size:
            self._filling = True
            self._spawn_task(self._fill())

    async def _fill(self) -> None:
        """Make containers until the pool is full. A failure leaves it short: the next session meets the cause."""
        try:
            while len(self._ready) < self._pool_size:
                container = await self._start(self._image)
                self._ready.append((asyncio.get_running_loop().time(), container))
        finally:
            self._filling = False

    async def _owned(self, work: Coroutine[Any, Any, T]) -> T:
        """Do work that must not be torn: when the caller is cancelled it goes on, and what it made is removed."""
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
        """Wait for what is under way, then remove the pool."""
        self._pool_size = 0
        while self._tasks:
            await asyncio.wait(self._tasks)
        while self._ready:
            with suppress(EnvironmentFault):
                await self._remove(self._ready.popleft()[1])

    def _require_image(self) -> None:
        try:
            self._client.images.get(self._image)
        except docker.errors.ImageNotFound as error:
            raise EnvironmentFault(
                f"Docker has no image {self._image!r}; build it with `docker build -t {self._image} docker/os`"
            ) from error

    def _reap(self) -> None:
        """Remove the containers that a dead process left behind."""
        for found in self._client.api.containers(all=True, filters={"label": OWNER_LABEL}):
            owner = Owner.from_label(found["Labels"][OWNER_LABEL])
            home = found["Labels"].get(HOME_LABEL)
            if (owner is not None and owner.is_dead()) or (home is not None and self._start_of(home) != home):
                self._remove_blocking(found["Id"])

    def _find_home(self) -> str:
        """The container of this engine that this process runs in, as its label says it; empty where it runs in none."""
        name = socket.gethostname()  # a container's own is the beginning of its id, unless it was given another
        home = self._start_of(name)
        return home if home.startswith(name) else ""

    def _start_of(self, container: str) -> str:
        """Id and start of a running container, by its id and whatever follows a blank; empty where it doesn't run."""
        try:
            found = self._client.api.inspect_container(container.partition(" ")[0])
        except docker.errors.NotFound:
            return ""
        return f"{found['Id']} {found['State']['StartedAt']}" if found["State"]["Running"] else ""

    def _has_quota(self) -> bool:
        """Whether the storage driver can bound what a container writes: tried out, as nothing says it."""
        try:
            container = self._client.api.create_container(
                self._image,
                ["true"],
                host_config=self._client.api.create_host_config(storage_opt={"size": f"{self._limits.disk_mb}M"}),
                labels={OWNER_LABEL: self._owner},
            )
        except docker.errors.APIError:
            return False
        self._client.api.remove_container(container["Id"])
        return True


class DockerSandbox(Sandbox):
    """One container."""

    def __init__(self, engine: DockerEngine, container: str) -> None:
        self._engine = engine
        self.container = container
        self._processes: list[Process] = []
        self._closed = False

    async def spawn(self, argv: Sequence[str], *, interactive: bool = False) -> Process:
        process = await self._engine.spawn(self.container, argv, interactive)
        self._processes.append(process)
        return process

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            for process in self._processes:
                process.close()
            await self._engine.remove(self.container)


def _connect(timeout_s: float) -> docker.DockerClient:
    client = docker.from_env(timeout=max(1, int(timeout_s)))
    try:
        client.ping()
    except Exception:
        client.close()
        raise
    return client


def _exit_status(api: docker.APIClient, exec_id: str) -> int | None:
    """The exit status, None while it runs. Raises where it ended because its container did."""
    state = api.exec_inspect(exec_id)
    if state["Running"]:
        return None
    status = int(state["ExitCode"])
    if status in _LIKE_A_DEAD_CONTAINER:
        _require_running(api, state["ContainerID"])
    return status


def _require_running(api: docker.APIClient, container: str) -> None:
    """Raise where a container has ended, waiting as long as the engine may need to notice."""
    try:
        api.wait(container, timeout=_NOTICE_S, condition="not-running")
    except (requests.ReadTimeout, requests.ConnectionError):
        return  # it still runs
    raise docker.errors.DockerException("the container has ended")


def _reason(error: BaseException) -> str:
    if isinstance(error, docker.errors.APIError):
        return str(error.explanation or error)
    return f"no answer from the engine: {error}"
