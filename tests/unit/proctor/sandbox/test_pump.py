"""What ends the capture of a process's output."""

import asyncio

import pytest

from proctor.environment import EnvironmentFault
from proctor.sandbox.capture import Capture
from proctor.sandbox.pump import StreamEnd, pump

MARK = b"cafe"
END = b"\ncafe:0;\n"


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


async def test_a_mark_that_the_ended_process_had_written_counts() -> None:
    assert await pump(Scripted(END, open_=True, status=0), Capture(MARK, 100), 5) is StreamEnd.MARK


async def test_the_limit_ends_it() -> None:
    assert await pump(Scripted(b"a", open_=True), Capture(MARK, 100), 0.01) is StreamEnd.TIME_LIMIT


async def test_a_lost_sandbox_is_a_fault() -> None:
    with pytest.raises(EnvironmentFault, match="gone"):
        await pump(Gone(open_=True), Capture(MARK, 100), 5)
