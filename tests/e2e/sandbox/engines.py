"""The two engines of sandboxes, as the tests of both enter them."""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from proctor.environment import EnvironmentFault
from proctor.sandbox.base import Engine, Sandbox, SandboxLimits
from proctor.sandbox.docker_engine import DockerEngine
from proctor.sandbox.namespaces.engine import NamespaceEngine
from tests.pace import slowly

IMAGE = os.environ.get("PROCTOR_OS_IMAGE", "proctor-os:latest")
INTERRUPT_S = slowly(0.5)
"""For a shell to be heard after an interrupt: on a busy machine it takes longer than the worker waits by itself."""
LIMITS = SandboxLimits(memory_mb=256, processes=64, file_mb=8, max_age_s=7200)


def make(name: str, limits: SandboxLimits = LIMITS) -> Engine:
    return DockerEngine(IMAGE, limits, pool=0) if name == "docker" else NamespaceEngine(limits)


@asynccontextmanager
async def entered(engine: Engine) -> AsyncIterator[Engine]:
    """The engine in its lifespan; a kernel that allows no namespaces skips the test."""
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(engine.lifespan())
        except EnvironmentFault as fault:
            if isinstance(engine, DockerEngine):
                raise
            pytest.skip(str(fault))
        yield engine


async def output(box: Sandbox, command: str) -> str:
    return (await box.run(["/bin/bash", "-c", command])).output.decode()
