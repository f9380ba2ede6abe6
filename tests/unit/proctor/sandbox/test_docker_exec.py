"""Docker's multiplexed stream."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from proctor.environment import EnvironmentFault
from proctor.sandbox import docker_exec
from proctor.sandbox.docker_exec import Stream


def frame(stream: int, payload: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(payload).to_bytes(4, "big") + payload


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[Stream, asyncio.StreamReader]]:
    """A stream over a real connection, and the reader to feed."""
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    stream = Stream(reader, writer)
    yield stream, reader
    stream.close()
    theirs.close()


@pytest.mark.parametrize(
    ("data", "output"),
    [
        (frame(1, b"out") + frame(2, b"err") + frame(1, b""), b"outerr"),
        (frame(1, b"x" * 200_000) + frame(1, b"y"), b"x" * 200_000 + b"y"),
        (frame(1, b"whole") + frame(1, b"broken")[:-2], b"wholebrok"),
    ],
    ids=["stdout and stderr in order", "a frame larger than a chunk", "one that breaks off"],
)
async def test_a_stream_gives_all_that_came(data: bytes, output: bytes) -> None:
    async with connected() as (stream, reader):
        reader.feed_data(data)
        reader.feed_eof()
        got = b""
        while chunk := await stream.read():
            got += chunk
        assert (got, stream.ended.is_set()) == (output, True)


async def test_a_cancelled_read_loses_nothing() -> None:
    async with connected() as (stream, reader):
        got = b""
        for byte in frame(1, b"slow") + frame(2, b"er"):
            read = asyncio.ensure_future(stream.read())
            await asyncio.sleep(0)
            read.cancel()
            await asyncio.wait({read})
            got += b"" if read.cancelled() else read.result()
            reader.feed_data(bytes([byte]))
        reader.feed_eof()
        while chunk := await stream.read():
            got += chunk
    assert got == b"slower"


async def test_an_address_that_can_not_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "ssh://somewhere")
    with pytest.raises(EnvironmentFault, match="DOCKER_HOST=ssh://somewhere"):
        await docker_exec._connect()
