"""The interfaces of engines, sandboxes and their processes."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from enum import Enum

from pydantic import Field

from proctor.environment import EnvironmentFault, ServiceAway
from proctor.sandbox.capture import Capture, StreamEnd, pump
from proctor.types import Value

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT = {"HOME": "/root", "LANG": "C.UTF-8", "PATH": PATH}
"""The environment of every process; it has none of the worker's own variables."""

OUTPUT_CAP_BYTES = 1 << 20
_log = logging.getLogger(__name__)
_START_S = 30.0
_SPOILED_START_S = 10.0
"""For processes of a sandbox in which some could not start though they do in a fresh one."""


class SandboxLimits(Value):
    """The resources that one sandbox may use."""

    memory_mb: int = Field(default=512, ge=16)
    cpus: float = Field(default=1.0, gt=0)
    processes: int = Field(default=256, ge=16)
    file_mb: int = Field(default=1024, ge=1)
    """The largest file a process may write."""
    disk_mb: int = Field(default=2048, ge=16)
    """All that a sandbox may write; Docker enforces it with some storage drivers (docs/explanation/security.md)."""
    max_age_s: int = Field(default=7200, ge=60)
    """A sandbox ends by itself at this age, so that none outlives its owner for long."""


class Result(Value):
    """The outcome of a process that `Sandbox.run` started."""

    status: int
    """Exit status; 124 where the time limit was reached first."""
    output: bytes
    """stdout and stderr in order of arrival, up to the cap."""
    truncated: bool = False
    timed_out: bool = False


class Change(Enum):
    """How a path differs from the image."""

    CHANGED = 0
    ADDED = 1
    DELETED = 2
    FOLDER = 3
    """A folder with another mode or owner, or in the place of something else; told where an engine can see it."""


class Process(ABC):
    """A process in a sandbox; its stdout and stderr are one stream."""

    @abstractmethod
    async def read(self) -> bytes:
        """The next output, empty at its end. Cancellation loses no output."""

    @abstractmethod
    async def write(self, data: bytes) -> None:
        """Write to its standard input. Data for a process that has ended is dropped without an error."""

    @abstractmethod
    async def wait(self) -> int:
        """Its exit status. Raises EnvironmentFault when the sandbox has ended. May be cancelled."""

    @abstractmethod
    def close(self) -> None:
        """Close its streams; the process itself may continue."""


class Sandbox(ABC):
    """One isolated machine, for one session."""

    _start_s = _START_S

    @abstractmethod
    async def spawn(
        self, argv: Sequence[str], *, interactive: bool = False, variables: Mapping[str, str] | None = None
    ) -> Process:
        """Start a process in `/` as root, with input from /dev/null unless interactive. Raises EnvironmentFault.

        Its environment is ENVIRONMENT and `variables`. A program that can't be started is a process with exit
        status 126 or 127, not a fault.
        """

    @abstractmethod
    async def close(self) -> None:
        """End all processes and remove the sandbox. Idempotent, limited in time, completes even when cancelled."""

    @abstractmethod
    def fresh(self) -> AbstractAsyncContextManager["Sandbox"]:
        """Another sandbox from the same engine and image. Raises EnvironmentFault."""

    @abstractmethod
    async def ended_from_outside(self) -> bool:
        """Whether it has ended by something else than what runs in it. Raises EnvironmentFault."""

    async def check_engine(self) -> None:
        """Whether the engine works, so that what runs here is to blame for being late. Raises ServiceAway if not."""
        return

    async def is_spoiled(self, work: Callable[["Sandbox"], Awaitable[object]]) -> bool:
        """Whether work that raised EnvironmentFault here did so for what ran here, and no engine is to blame.

        The work is done in a fresh sandbox, which shows that the engine can do it, and then again here: so a short
        trouble of the engine is not taken for the sandbox's. Raises EnvironmentFault where the fresh one fails too.
        """
        async with self.fresh() as control:
            await work(control)
        self._start_s = _SPOILED_START_S
        try:
            await work(self)
        except EnvironmentFault:
            return not await self.ended_from_outside()
        return False

    async def changes(self) -> Mapping[str, Change] | None:
        """The paths that differ from the image, as seen from outside; None where the engine can't see them.

        Raises EnvironmentFault when the sandbox has ended.
        """
        return None

    async def fingerprint(self, path: str) -> str | None:
        """Kind, mode and content of a file as seen from outside, or `folder MODE`, or `link ...`; None for nothing.

        Raises EnvironmentFault when the sandbox has ended.
        """
        return None

    async def is_program(self, path: str) -> bool:
        """Whether a path is a file that may be run, as seen from outside; False where it is a link, or can't be seen.

        Raises EnvironmentFault when the sandbox has ended.
        """
        return False

    async def run(
        self,
        argv: Sequence[str],
        *,
        limit_s: float = 30.0,
        cap: int = OUTPUT_CAP_BYTES,
        variables: Mapping[str, str] | None = None,
    ) -> Result:
        """Run a process, without a shell around it, and return its outcome.

        After the time limit the process is no longer waited for, but runs until the sandbox is closed. A background job
        that holds its output open does not delay the result.
        """
        async with within(self._start_s, "starting a process"):
            process = await self.spawn(argv, variables=variables)
        capture = Capture(None, cap)
        with closing(process):
            timed_out = await pump(process, capture, limit_s) is StreamEnd.TIME_LIMIT
            if timed_out:
                await self.check_engine()
            async with within(self._start_s, "the end of a process"):
                status = 124 if timed_out else await process.wait()
        return Result(status=status, output=capture.output(), truncated=capture.truncated, timed_out=timed_out)

    async def put(self, path: str, content: bytes) -> None:
        """Write a file, with a shell in the sandbox. Raises EnvironmentFault."""
        async with within(self._start_s, f"writing {path}"):
            command = 'exec /usr/bin/head -c "$1" > "$2"'
            argv = ["/bin/sh", "-c", command, "put", str(len(content)), path]
            with closing(await self.spawn(argv, interactive=True)) as process:
                await process.write(content)
                status = await process.wait()
        if status != 0:
            raise EnvironmentFault(f"sandbox: writing {path} ended with status {status}")

    async def unpack(self, archive: bytes) -> None:
        """Unpack a tar archive in `/` from outside, where the engine can. Raises EnvironmentFault."""
        raise EnvironmentFault("sandbox: this engine copies no archives in; use docker")

    async def content(self, path: str) -> bytes | None:
        """The content of a plain file as seen from outside; None where there is none, or one over 64 MiB.

        Raises EnvironmentFault, also where the engine can't read files.
        """
        raise EnvironmentFault("sandbox: this engine reads no files; use docker")


class Engine(ABC):
    """Makes sandboxes. A worker enters `lifespan` once, before the first one."""

    @abstractmethod
    async def create(self, image: str | None = None) -> Sandbox:
        """A new sandbox. Raises EnvironmentFault with a one-line reason where that is impossible."""

    @abstractmethod
    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Holds what all sandboxes share. Raises EnvironmentFault, with a one-line reason, where this is impossible."""

    @asynccontextmanager
    async def sandbox(self, image: str | None = None) -> AsyncIterator[Sandbox]:
        """A sandbox that is always removed at the end."""
        box = await self.create(image)
        try:
            yield box
        finally:
            try:
                await box.close()
            except EnvironmentFault as fault:  # what was played in it stands
                _log.warning("a sandbox could not be removed, and ends by itself at max_age_s: %s", fault)


@asynccontextmanager
async def within(seconds: float, what: str) -> AsyncIterator[None]:
    """A deadline; when it passes, ServiceAway names what took too long."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise ServiceAway(f"sandbox: {what} took longer than {seconds:g} s") from error
