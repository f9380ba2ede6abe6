"""One task of a worker: its environment, the resources its sessions share, and whether sessions can start."""

import asyncio
import contextlib
import itertools
import logging
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from proctor.config.task import TaskDefinition, listed_samples
from proctor.environment import Environment, protocol_of
from proctor.observability.descriptors import allow_descriptors, trials_for
from proctor.observability.redaction import redacted
from proctor.registry import is_own
from proctor.retry import RetryPolicy
from task_server.wire.errors import DigestDiffers, NotReady, UnknownSample
from task_server.wire.messages import STARTING, SampleList

if TYPE_CHECKING:
    from proctor.own_files.source import OwnSource

log = logging.getLogger(__name__)

STARTS = RetryPolicy(base_s=1.0, cap_s=60.0)
"""When a task that failed to start is tried again."""
STOP_S = 30.0
"""Closing what sessions share may take this long."""


class HostedTask:
    """A task that a worker holds. `waiting` is why no session can start; None if sessions can start."""

    def __init__(
        self, definition: TaskDefinition, changed: Callable[[], None], environment: Environment | None = None
    ) -> None:
        """`environment` is the one to play, where it was given in Python; else it is built as the definition says."""
        self.name = definition.name
        self.environment_name = definition.environment_label
        self.environment = environment or definition.build()
        self.capacity = min(definition.sessions(), trials_for(allowed := allow_descriptors()))
        if self.capacity < definition.sessions():
            log.warning("task %s: %d sessions at once: %d files may be open here", self.name, self.capacity, allowed)
        self.waiting: str | None = STARTING
        self.catalogue: SampleList | None = None
        self._samples: frozenset[str] = frozenset()
        self._changed = changed
        self._stopping = asyncio.Event()
        self._up = False

    async def run(self) -> None:
        """Read the data and keep the environment's lifespan open until `stop`. After a failure, try again."""
        for tries in itertools.count(1):
            try:
                await self._serve()
            except Exception as error:
                log.warning("task %s: %s: %s", self.name, type(error).__name__, error)
                self._set_waiting(f"{type(error).__name__}: {error}")
            if self._stopping.is_set():
                return
            await self._pause(STARTS.wait_s(tries, random.random()))

    async def stop(self, running: "asyncio.Task[None]") -> None:
        """Close the environment's lifespan, or cancel its start. `running` is the asyncio task of `run`."""
        self._stopping.set()
        if not self._up:
            running.cancel()
        await asyncio.wait([running], timeout=STOP_S)
        running.cancel()

    def samples(self) -> SampleList:
        """The task's samples. Raises NotReady until they have been read."""
        if self.catalogue is None:
            raise NotReady(f"task {self.name!r}: {self.waiting}", retry_after_s=1.0)
        return self.catalogue

    def check_digest(self, expected: str | None) -> None:
        """Raises DigestDiffers if the task's data, prompts or settings are not those that a run expects."""
        if expected is not None and self.catalogue is not None and self.catalogue.digest != expected:
            raise DigestDiffers(
                f"task {self.name!r} has digest {self.catalogue.digest[:12]} here, the run began with {expected[:12]}"
            )

    def admit(self, sample: str) -> None:
        """Check that a session of a sample can start. Raises NotReady, UnknownSample."""
        if self.waiting is not None:
            raise NotReady(f"task {self.name!r}: {self.waiting}", retry_after_s=1.0)
        if sample not in self._samples:
            raise UnknownSample(f"task {self.name!r} has no sample {sample[:100]!r}")

    async def _serve(self) -> None:
        if self.catalogue is None:
            self.catalogue = await asyncio.to_thread(read_samples, self.name, self.environment_name, self.environment)
            self._samples = frozenset(self.catalogue.samples)
        async with self.environment.lifespan():
            self._up = True
            self._set_waiting(None)
            try:
                await self._stopping.wait()
            finally:
                self._up = False
                self._set_waiting("stopping")

    def _set_waiting(self, waiting: str | None) -> None:
        self.waiting = redacted(waiting) if waiting is not None else None
        self._changed()

    async def _pause(self, pause_s: float | None) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._stopping.wait()


def read_samples(task: str, name: str, environment: Environment) -> SampleList:
    """The samples of a task, and what a run must know of its environment, which records call `name`."""
    samples = listed_samples(environment)
    clusters = tuple(map(environment.cluster, samples))
    categories = tuple(map(environment.category, samples))
    comparable, own = environment.not_comparable_because(), is_own(name)
    source = _own_source(environment) if own else None
    return SampleList(
        task=task,
        environment=name,
        samples=samples,
        digest=environment.digest() if source is None else source.digest,
        comparable=comparable,
        published_sampling=dict(environment.published_sampling()),
        published_rounds=environment.max_turns if comparable is None else None,
        trusted_agents_only=environment.trusted_agents_only(),
        protocol=protocol_of(environment),
        clusters=clusters if len(set(clusters)) < len(samples) else (),
        categories=categories if len(set(categories)) > 1 else (),
        source={} if source is None else dict(source.files),
        scales=dict(environment.scales) if own else {},
    )


def _own_source(environment: Environment) -> "OwnSource":
    from proctor.own_files.source import world_source  # 35 ms that installed environments do without

    return world_source(environment)
