"""Capturing the beginning of a process's output, up to the mark that ends it, and what else may end it."""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import closing
from itertools import combinations_with_replacement

import pytest
import uvloop

from proctor.environment import EnvironmentFault
from proctor.sandbox.capture import Capture, StreamEnd, pump

MARK = b"0123456789abcdef"
END = b"\n" + MARK + b":7;\n"


@pytest.mark.parametrize("output", [b"", b"out", b"\n" + MARK[:-1], b"x" * 40])
def test_the_mark_is_found_however_the_stream_is_cut(output: bytes) -> None:
    stream = output + END + b"rest"
    for first, second in combinations_with_replacement(range(len(stream) + 1), 2):
        capture, rest = Capture(MARK, 1000), b""
        for chunk in (stream[:first], stream[first:second], stream[second:]):
            if capture.status is None:
                capture.feed(chunk)
            else:
                rest += chunk
        assert (capture.output(), capture.status, capture.truncated) == (output, 7, False)
        assert capture.rest + rest == b"rest"


@pytest.mark.parametrize(
    ("mark", "fed", "output", "truncated", "status"),
    [
        (MARK, [b"x" * 1000] * 1000 + [END], b"x" * 10, True, 7),
        (MARK, [b"x" * 10 + END], b"x" * 10, False, 7),
        (MARK, [b"half a li"], b"half a li", False, None),
        (MARK, [b"\n" + MARK[::-1]], (b"\n" + MARK[::-1])[:10], False, None),
        (MARK, [b"\n" + MARK + b":none;\n"], (b"\n" + MARK)[:10], False, None),
        (None, [END], END[:10], True, None),
    ],
    ids=[
        "of a long stream the cap",
        "exactly the cap",
        "before a mark",
        "a foreign mark",
        "no status",
        "without a mark",
    ],
)
def test_what_is_kept(mark: bytes | None, fed: list[bytes], output: bytes, truncated: bool, status: int | None) -> None:
    capture = Capture(mark, 10)
    assert [capture.feed(chunk) for chunk in fed][-1] == (status is not None)
    assert (capture.output(), capture.truncated, capture.status) == (output, truncated, status)


def stand_still() -> None:
    """Of the loop, for longer than what has ended is drained."""
    time.sleep(0.15)


class Scripted:
    """A process that prints chunks, then either ends its stream or leaves it open, and exits or not."""

    def __init__(self, *chunks: bytes, open_: bool = False, status: int | None = None) -> None:
        self._chunks, self._open, self._status = list(chunks), open_, status

    async def read(self) -> bytes:
        if self._chunks:
            return self._chunks.pop(0)
        if self._open:
            await asyncio.Event().wait()
        return b""

    async def wait(self) -> int:
        if self._status is None:
            await asyncio.Event().wait()
        assert self._status is not None
        return self._status


class Gone(Scripted):
    """A process whose sandbox has ended."""

    async def wait(self) -> int:
        raise EnvironmentFault("gone")


class Endless(Scripted):
    """A background job that prints for ever."""

    async def read(self) -> bytes:
        return b"y" * 1_000


class Stalling(Scripted):
    """A process that prints to a loop that stands still."""

    async def read(self) -> bytes:
        stand_still()
        return await super().read()


@pytest.mark.parametrize(
    ("source", "limit_s", "end", "output"),
    [
        (Scripted(b"a", END, open_=True), 5, StreamEnd.MARK, b"a"),
        (Scripted(b"a"), 5, StreamEnd.PROCESS, b"a"),
        (Scripted(b"a", b"b", open_=True, status=0), 5, StreamEnd.PROCESS, b"ab"),
        (Stalling(b"a", b"b", b"c", b"d", open_=True, status=0), 5, StreamEnd.PROCESS, b"abcd"),
        (Endless(status=0), 5, StreamEnd.PROCESS, b"y" * 100),
        (Scripted(END, open_=True, status=0), 5, StreamEnd.MARK, b""),
        (Scripted(b"a", open_=True), 0.01, StreamEnd.TIME_LIMIT, b"a"),
    ],
    ids=["mark", "stream", "process, though a job holds the stream", "loop that stood still", "endless job",
         "mark that the ended process had written", "limit"],
)  # fmt: skip
async def test_what_ends_it(source: Scripted, limit_s: float, end: StreamEnd, output: bytes) -> None:
    capture = Capture(MARK, 100)
    assert await pump(source, capture, limit_s) is end
    assert capture.output() == output


class Piped(Scripted):
    """A process that has ended. What it printed is in a pipe when the loop, which stands still, should look there."""

    def __init__(self, reader: asyncio.StreamReader, printing: int) -> None:
        super().__init__(status=0)
        self._reader, self._printing, self._reads = reader, printing, 0

    async def read(self) -> bytes:
        self._reads += 1
        if self._reads == 2:
            os.write(self._printing, b"printed late")
            stand_still()
        return await self._reader.read(4)


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_what_is_in_a_pipe_when_the_drain_ends_is_read(factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def captured() -> bytes:
        reading, printing = os.pipe()
        reader = asyncio.StreamReader()
        made = asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb")
        )
        transport, _ = await made
        capture = Capture(MARK, 100)
        with closing(transport), os.fdopen(printing):
            assert await pump(Piped(reader, printing), capture, 5) is StreamEnd.PROCESS
        return capture.output()

    with asyncio.Runner(loop_factory=factory) as runner:
        assert runner.run(captured()) == b"printed late"


async def test_a_lost_sandbox_is_a_fault() -> None:
    with pytest.raises(EnvironmentFault, match="gone"):
        await pump(Gone(open_=True), Capture(MARK, 100), 5)
