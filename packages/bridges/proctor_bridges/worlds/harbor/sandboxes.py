"""Containers of tasks, with each task's own limits; their images are made once, and kept for a month."""

import asyncio
import hashlib
import io
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

import docker
import docker.errors
import docker.utils
import requests

from proctor.environment import EnvironmentFault, ServiceAway
from proctor.sandbox.base import Sandbox
from proctor.sandbox.docker_engine import DockerEngine, DockerSandbox
from proctor_bridges.worlds.harbor.tasks import HarborTask

T = TypeVar("T")
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
    container: str
    """Its id."""


class Sandboxes:
    """The images and containers of a run's tasks. An image is made while other tasks are played."""

    def __init__(self, runtime: str | None, *needs: str) -> None:
        """`needs` are other images that must be there."""
        self._runtime, self._needs = runtime, needs
        self._engines: dict[object, DockerEngine] = {}
        """One for each set of limits that tasks have."""
        self._images: dict[str, asyncio.Future[Any]] = {}
        self._opened, self._opening = AsyncExitStack(), asyncio.Lock()
        self._threads = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="images")

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator["Sandboxes"]:
        """Holds the engines, and removes old images. At its end it waits for those that are being made."""
        with self._threads:
            await asyncio.get_running_loop().run_in_executor(self._threads, _prepare, self._needs)
            async with self._opened:
                try:
                    yield self
                finally:
                    await asyncio.gather(*self._images.values(), return_exceptions=True)

    @asynccontextmanager
    async def box(self, task: HarborTask, install: str = "") -> AsyncIterator[Box]:
        """A container of a task's image, which is made if it is not there, as is one in which this code has run.

        Raises EnvironmentFault.
        """
        settings, image = await self._once(task.image, partial(_made, task)), task.image
        if install:
            image = await self._once(f"{image}\0{install}", partial(_with_installed, task, install))
        engine = await self._engine(task)
        folder = task.file.environment.workdir or settings.get("WorkingDir") or "/"
        variables = dict(each.split("=", 1) for each in settings.get("Env") or () if "=" in each)
        async with engine.sandbox(image) as sandbox:
            assert isinstance(sandbox, DockerSandbox)
            yield Box(sandbox, folder, {**variables, **task.variables}, sandbox.container)

    async def _once(self, key: str, make: Callable[[], T]) -> T:
        """What a call in a thread has made, now or earlier; after a failure the next one tries again."""
        making = self._images.get(key)
        if making is None or (making.done() and making.exception() is not None):
            making = self._images[key] = asyncio.get_running_loop().run_in_executor(self._threads, make)
        return cast(T, await asyncio.shield(making))

    async def _engine(self, task: HarborTask) -> DockerEngine:
        key = (task.limits, task.network)
        async with self._opening:
            if key not in self._engines:
                engine = DockerEngine(task.image, task.limits, pool=0, runtime=self._runtime, network=task.network)
                await self._opened.enter_async_context(engine.lifespan())
                self._engines[key] = engine
        return self._engines[key]


def _prepare(needs: Iterable[str]) -> None:
    """Remove the images that were built here long ago; the engine refuses where a container has one.

    Raises EnvironmentFault where one is missing that is needed.
    """
    with _client(_CALL_S) as client:
        for image in needs:
            client.images.get(image)
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


def _with_installed(task: HarborTask, install: str) -> str:
    """Make an image from a task's, unless it is there; its name."""
    with _client(task.file.environment.build_timeout_sec) as client:
        base = client.images.get(task.image).id
        image = f"proctor-harbor-agent:{hashlib.blake2b(f'{base}{install}'.encode(), digest_size=16).hexdigest()}"
        file = f"FROM {task.image}\nRUN {json.dumps(['/bin/bash', '-c', install])}\n"
        try:
            client.images.get(image)
        except docker.errors.ImageNotFound:
            build = partial(client.api.build, fileobj=io.BytesIO(file.encode()), labels={LABEL: task.folder.name})
            _await_made(build(tag=image, rm=True, forcerm=True, decode=True), task, image)
    return image


def _make_image(client: docker.DockerClient, task: HarborTask) -> None:
    """Build or fetch an image."""
    if task.file.environment.docker_image:
        name, tag = docker.utils.parse_repository_tag(task.image)
        lines = client.api.pull(name, tag=tag or "latest", stream=True, decode=True)
    else:
        place, labels = str(task.folder / "environment"), {LABEL: task.folder.name}
        lines = client.api.build(path=place, tag=task.image, rm=True, forcerm=True, decode=True, labels=labels)
    _await_made(lines, task, task.image)


def _await_made(lines: Any, task: HarborTask, image: str) -> None:
    """Wait for an image by what the engine tells of it. Raises EnvironmentFault with its last lines."""
    limit_s, told = task.file.environment.build_timeout_sec, ""
    ends = time.monotonic() + limit_s
    with closing(lines):
        for line in lines:
            told = (told + str(line.get("stream") or ""))[-_SHOWN:]
            if "error" in line:
                raise EnvironmentFault(f"image {image} can't be made: {line['error']}; before it:\n{told}")
            if time.monotonic() > ends:
                raise EnvironmentFault(f"image {image} took longer than build_timeout_sec, {limit_s:g} s")
