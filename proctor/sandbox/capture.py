"""Captures the beginning of a command's output, up to the mark that ends it in the stream."""

import asyncio
import re
from enum import Enum
from typing import Any, Protocol

_DRAIN_S = 0.1
"""How long the output of a process that has ended is waited for where something holds its stream open."""
_READY_BYTES = 1 << 20
"""More than pipes and buffers hold: what is read at most without waiting, since a background job may print for ever."""
_PASSES = 8
"""So many passes of the loop bring a source what is ready to be read."""


class Capture:
    """The first `cap` bytes before a mark `<mark>:<status>;`, in memory that does not grow with the stream."""

    def __init__(self, mark: bytes | None, cap: int) -> None:
        self._pattern = None if mark is None else re.compile(rb"\n?" + re.escape(mark) + rb":(\d{1,10});\n")
        self._margin = 0 if mark is None else len(mark) + 14
        self._cap = cap
        self._kept = bytearray()
        self._tail = b""
        self.truncated = False
        self.status: int | None = None
        """The status in the mark; None before the mark."""
        self.rest = b""
        """The bytes after the mark."""

    def feed(self, chunk: bytes) -> bool:
        """Add the next bytes; True once the mark was found."""
        data = self._tail + chunk
        found = self._pattern.search(data) if self._pattern else None
        if found:
            self._keep(data[: found.start()])
            self._tail, self.rest, self.status = b"", data[found.end() :], int(found[1])
            return True
        split = max(0, len(data) - self._margin)
        self._keep(data[:split])
        self._tail = data[split:]
        return False

    def output(self) -> bytes:
        """The captured bytes, also before the mark."""
        return bytes(self._kept + self._tail)[: self._cap]

    def _keep(self, data: bytes) -> None:
        room = self._cap - len(self._kept)
        self.truncated = self.truncated or len(data) > room
        self._kept += data[:room]


class StreamEnd(Enum):
    """What ended a command."""

    MARK = "mark"
    PROCESS = "process"
    TIME_LIMIT = "time limit"


class OutputSource(Protocol):
    """The part of a process that `pump` uses."""

    async def read(self) -> bytes: ...
    async def wait(self) -> int: ...


async def pump(source: OutputSource, capture: Capture, limit_s: float) -> StreamEnd:
    """Feed the capture, and return what ended it: the mark, the end of the process or its stream, or the time limit.

    It also waits for the process itself, since a background job may hold the stream open for ever.
    """
    exit_ = asyncio.ensure_future(source.wait())
    exit_.add_done_callback(_retrieve)
    try:
        ended = await _read(source, capture, limit_s, exit_)
        if ended is not StreamEnd.TIME_LIMIT or not exit_.done():
            return ended
        exit_.result()
    finally:
        exit_.cancel()
    drained = await _read(source, capture, _DRAIN_S, None)
    if drained is StreamEnd.TIME_LIMIT:  # the loop may have stood still meanwhile
        drained = await _read_ready(source, capture)
    return drained


async def _read(
    source: OutputSource, capture: Capture, limit_s: float, stop: "asyncio.Future[int] | None"
) -> StreamEnd:
    """Feed the capture until the mark, the end of the stream, the limit, or `stop`, reported as TIME_LIMIT."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limit_s
    while (left := deadline - loop.time()) > 0 and not (stop and stop.done()):
        chunk = await _next(source, left, stop)
        if chunk == b"":
            return StreamEnd.PROCESS
        if chunk and capture.feed(chunk):
            return StreamEnd.MARK
    return StreamEnd.TIME_LIMIT


async def _read_ready(source: OutputSource, capture: Capture) -> StreamEnd:
    """Feed the capture what can be read without waiting."""
    fed = 0
    while fed < _READY_BYTES and (chunk := await _ready(source)):
        fed += len(chunk)
        if capture.feed(chunk):
            return StreamEnd.MARK
    return StreamEnd.PROCESS


async def _next(source: OutputSource, limit_s: float | None, stop: "asyncio.Future[Any] | None") -> bytes | None:
    """The next chunk, or None when the limit or `stop` came first. No chunk is lost, and no read left pending."""
    reading = asyncio.ensure_future(source.read())
    try:
        waited: list[asyncio.Future[Any]] = [reading] if stop is None else [reading, stop]
        await asyncio.wait(waited, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        reading.cancel()
        await asyncio.wait({reading})
    return None if reading.cancelled() else reading.result()


async def _ready(source: OutputSource) -> bytes | None:
    """The next chunk if it is there. No chunk is lost, and no read left pending."""
    return await _next(source, None, asyncio.ensure_future(_pass()))


async def _pass() -> None:
    for _ in range(_PASSES):
        await asyncio.sleep(0)


def _retrieve(exit_: "asyncio.Future[int]") -> None:
    """Suppress asyncio's warning about an unread failure: the next use of the sandbox raises it again."""
    if not exit_.cancelled():
        exit_.exception()
