"""Containers of tasks, with each task's own limits; their images are made once, and kept for a month."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager, suppress
from typing import Any, NamedTuple

import docker
import docker.errors
import docker.utils
import requests

from proctor.environment import EnvironmentFault, ServiceAway
from proctor.sandbox.base import Sandbox
from proctor.sandbox.docker_engine import DockerEngine
from proctor_bridges.worlds.harbor.tasks import HarborTask

LABEL = "proctor.harbor.task"
"""The label of images that were built here."""
_KEPT_S = 30 * 86_400
_CALL_S = 60.0
_SHOWN = 1500
_ROOT = ("", "0", "root", "0:0", "root:root")


class Box(NamedTuple):
    """A container of a task."""

    sandbox: Sandbox
    folder: str
    """The working directory."""
    variables: dict[str, str]
    """Those of the image, and the task's."""


class Sandboxes:
    """The images and containers of a run's tasks. An image is made while other tasks are played."""

    def __init__(self, runtime: str | None) -> None:
        self._runtime = runtime
        self._engines: dict[object, DockerEngine] = {}
        """One for each set of limits that tasks have."""
        self._images: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._opened, self._opening = AsyncExitStack(), asyncio.Lock()
        self._threads = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="images")

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator["Sandboxes"]:
        """Holds the engines, and removes old images. At its end it waits for those that are being made."""
        with self._threads:
            await asyncio.get_running_loop().run_in_executor(self._threads, _prune)
            async with self._opened:
                try:
                    yield self
                finally:
                    await asyncio.gather(*self._images.values(), return_exceptions=True)

    @asynccontextmanager
    async def box(self, task: HarborTask) -> AsyncIterator[Box]:
        """A container of a task's image, which is made if it is not there. Raises EnvironmentFault."""
        settings, engine = await self._image(task), await self._engine(task)
        folder = task.file.environment.workdir or settings.get("WorkingDir") or "/"
        variables = dict(each.split("=", 1) for each in settings.get("Env") or () if "=" in each)
        async with engine.sandbox(task.image) as sandbox:
            yield Box(sandbox, folder, {**variables, **task.variables})

    async def _image(self, task: HarborTask) -> dict[str, Any]:
        """The settings of a task's image; after a failure the next call tries again."""
        making = self._images.get(task.image)
        if making is None or (making.done() and making.exception() is not None):
            making = asyncio.get_running_loop().run_in_executor(self._threads, _made, task)
            self._images[task.image] = making
        return await asyncio.shield(making)

    async def _engine(self, task: HarborTask) -> DockerEngine:
        key = (task.limits, task.network)
        async with self._opening:
            if key not in self._engines:
                engine = DockerEngine(task.image, task.limits, pool=0, runtime=self._runtime, network=task.network)
                await self._opened.enter_async_context(engine.lifespan())
                self._engines[key] = engine
        return self._engines[key]


def _prune() -> None:
    """Remove the images that were built here long ago; the engine refuses where a container has one."""
    with _client(_CALL_S) as client:
        for image in client.api.images(filters={"label": LABEL}):
            if image["Created"] < time.time() - _KEPT_S:
                with suppress(docker.errors.APIError):
                    client.api.remove_image(image["Id"])


@contextmanager
def _client(limit_s: float) -> Iterator[docker.DockerClient]:
    """A client of the engine, whose failures are faults."""
    try:
        with closing(docker.from_env(timeout=int(limit_s) + 1)) as client:
            yield client
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        refused = isinstance(error, docker.errors.APIError) and error.is_client_error()
        raise (EnvironmentFault if refused else ServiceAway)(f"Docker: {error}") from error


def _made(task: HarborTask) -> dict[str, Any]:
    """Make an image, unless it is there. Its settings."""
    with _client(task.file.environment.build_timeout_sec) as client:
        try:
            image = client.images.get(task.image)
        except docker.errors.ImageNotFound:
            _make_image(client, task)
            image = client.images.get(task.image)
    settings: dict[str, Any] = image.attrs["Config"] or {}
    if (user := settings.get("User") or "") not in _ROOT:
        raise EnvironmentFault(f"image {task.image} wants the user {user!r}, but tasks are played as root")
    return settings


def _make_image(client: docker.DockerClient, task: HarborTask) -> None:
    """Build or fetch an image. Raises EnvironmentFault with the engine's last lines."""
    limit_s, told = task.file.environment.build_timeout_sec, ""
    ends = time.monotonic() + limit_s
    if task.file.environment.docker_image:
        name, tag = docker.utils.parse_repository_tag(task.image)
        lines = client.api.pull(name, tag=tag or "latest", stream=True, decode=True)
    else:
        place, labels = str(task.folder / "environment"), {LABEL: task.folder.name}
        lines = client.api.build(path=place, tag=task.image, rm=True, forcerm=True, decode=True, labels=labels)
    with closing(lines):
        for line in lines:
            told = (told + str(line.get("stream") or ""))[-_SHOWN:]
            if "error" in line:
                raise EnvironmentFault(f"image {task.image} can't be made: {line['error']}; before it:\n{told}")
            if time.monotonic() > ends:
                raise EnvironmentFault(f"image {task.image} took longer than build_timeout_sec, {limit_s:g} s")
