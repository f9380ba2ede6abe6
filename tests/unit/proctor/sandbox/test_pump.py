"""What ends the capture of a process's output."""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import closing

import pytest
import uvloop

from proctor.environment import EnvironmentFault
from proctor.sandbox.capture import Capture
from proctor.sandbox.pump import StreamEnd, pump

MARK = b"cafe"
END = b"\ncafe:0;\n"


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


async def test_the_mark_ends_it() -> None:
    capture = Capture(MARK, 100)
    assert await pump(Scripted(b"a", END, open_=True), capture, 5) is StreamEnd.MARK
    assert capture.output() == b"a"


async def test_the_end_of_the_stream_ends_it() -> None:
    assert await pump(Scripted(b"a"), Capture(MARK, 100), 5) is StreamEnd.PROCESS


async def test_the_end_of_the_process_ends_it_though_a_job_holds_the_stream() -> None:
    capture = Capture(MARK, 100)
    assert await pump(Scripted(b"a", b"b", open_=True, status=0), capture, 5) is StreamEnd.PROCESS
    assert capture.output() == b"ab"


async def test_a_loop_that_stands_still_loses_nothing_that_an_ended_process_had_written() -> None:
    class Stalling(Scripted):
        async def read(self) -> bytes:
            stand_still()
            return await super().read()

    capture = Capture(MARK, 100)
    assert await pump(Stalling(*(b"a", b"b", b"c", b"d"), open_=True, status=0), capture, 5) is StreamEnd.PROCESS
    assert capture.output() == b"abcd"


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


async def test_a_background_job_that_prints_for_ever_is_not_waited_for() -> None:
    class Endless(Scripted):
        async def read(self) -> bytes:
            return b"y" * 1_000

    assert await pump(Endless(status=0), Capture(MARK, 100), 5) is StreamEnd.PROCESS


async def test_a_mark_that_the_ended_process_had_written_counts() -> None:
    assert await pump(Scripted(END, open_=True, status=0), Capture(MARK, 100), 5) is StreamEnd.MARK


async def test_the_limit_ends_it() -> None:
    assert await pump(Scripted(b"a", open_=True), Capture(MARK, 100), 0.01) is StreamEnd.TIME_LIMIT


async def test_a_lost_sandbox_is_a_fault() -> None:
    with pytest.raises(EnvironmentFault, match="gone"):
        await pump(Gone(open_=True), Capture(MARK, 100), 5)
