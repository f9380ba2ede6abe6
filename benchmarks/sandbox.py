"""Sandboxes: hand-out from the pool, a command, teardown; against a fresh container per sample and `docker exec`.

Without a Docker engine and its image there is nothing to measure, which standard error says.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from benchmarks.measure import Figure, figure, main, median
from proctor.sandbox.base import SandboxLimits
from proctor.sandbox.docker_engine import DockerEngine, DockerSandbox
from proctor.sandbox.shell import Shell
from tests.support import missing

IMAGE = os.environ.get("PROCTOR_OS_IMAGE", "proctor-os:latest")
COMMAND = "pwd"
T = TypeVar("T")
Steps = dict[str, list[float]]


def measure(quick: bool) -> Iterator[Figure]:
    """The pool and the persistent shell first, then what they replace."""
    if reason := missing("docker"):
        print(reason, file=sys.stderr)
        return
    samples, commands = (3, 10) if quick else (15, 50)
    steps = asyncio.run(_measure(samples, commands))
    for name, seconds in steps.items():
        yield figure(name, 1000 * median(seconds), "ms")
    pairs = (
        ("hand-out from the pool", "fresh container"),
        ("command in the persistent shell", "docker exec (program)"),
    )
    for ours, theirs in pairs:
        yield figure(f"{ours}: times faster than {theirs}", median(steps[theirs]) / median(steps[ours]), "x")


async def _measure(samples: int, commands: int) -> Steps:
    steps: Steps = {}
    await _sessions(DockerEngine(IMAGE, SandboxLimits(), pool=2), samples, commands, steps, "hand-out from the pool")
    fresh: Steps = {}
    await _sessions(DockerEngine(IMAGE, SandboxLimits(), pool=0), samples, 1, fresh, "fresh container")
    return steps | {name: seconds for name, seconds in fresh.items() if name == "fresh container"}


async def _sessions(engine: DockerEngine, samples: int, commands: int, steps: Steps, handed_out: str) -> None:
    """Samples one after the other, with time between them for the pool to fill, as sessions have."""
    async with engine.lifespan():
        for _ in range(2):  # from then on there is a pool
            await (await engine.create()).close()
        for _ in range(samples):
            await asyncio.sleep(1.0)
            box = await _timed(steps, handed_out, engine.create)
            assert isinstance(box, DockerSandbox)
            await _use(steps, box, commands)
            await _timed(steps, "teardown", box.close)


async def _use(steps: Steps, box: DockerSandbox, commands: int) -> None:
    shell = Shell(box)
    await _timed(steps, "first command, the shell started", lambda: shell.execute(COMMAND))
    for _ in range(commands):
        await _timed(steps, "command in the persistent shell", lambda: shell.execute(COMMAND))
    for _ in range(min(5, commands)):
        await _timed(steps, "fresh process by the engine's API", lambda: box.run(["sh", "-c", COMMAND]))
        await _timed(steps, "docker exec (program)", lambda: _docker_exec(box.container))


async def _docker_exec(container: str) -> None:
    command = ["docker", "exec", container, "sh", "-c", COMMAND]
    await asyncio.to_thread(subprocess.run, command, check=True, stdout=subprocess.DEVNULL)


async def _timed(steps: Steps, name: str, step: Callable[[], Awaitable[T]]) -> T:
    began = time.monotonic()
    done = await step()
    steps.setdefault(name, []).append(time.monotonic() - began)
    return done


if __name__ == "__main__":
    main(measure, __doc__)
