"""The address that stays, in front of a server that moves."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from proctor_ray import forward
from proctor_ray.forward import Forwarder
from tests.pace import slowly


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forward, "CONNECT_S", slowly(60))


@asynccontextmanager
async def echo(name: bytes) -> AsyncIterator[str]:
    """A server that says its name before each line it gets back; all its connections end with it."""
    writers: list[asyncio.StreamWriter] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        while line := await reader.readline():
            writer.write(name + line)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.close()
        for writer in writers:
            writer.close()
            await writer.wait_closed()


class Whereabouts:
    """Where the server is now, and how often that was asked."""

    def __init__(self) -> None:
        self.url: str | None = None
        self.asked = 0

    async def __call__(self) -> str:
        self.asked += 1
        if self.url is None:
            raise ConnectionError("nowhere")
        return self.url


@asynccontextmanager
async def forwarded(find: Whereabouts) -> AsyncIterator[int]:
    forwarder = Forwarder(find)
    url = await forwarder.open()
    assert url.startswith("http://127.0.0.1:")
    yield int(url.rpartition(":")[2])
    await forwarder.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))


async def said(port: int, lines: int = 1) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        answers = []
        for _ in range(lines):
            writer.write(b" heard\n")
            answers.append(await asyncio.wait_for(reader.readline(), slowly(10)))
        return b"".join(answers)
    finally:
        writer.close()
        await writer.wait_closed()


async def test_where_the_server_is_is_asked_once_while_it_stays() -> None:
    find = Whereabouts()
    async with echo(b"one") as find.url, forwarded(find) as port:
        assert await said(port, lines=3) == b"one heard\n" * 3
        await asyncio.gather(*(said(port) for _ in range(20)))
    assert find.asked == 1


async def test_a_server_that_moved_is_found_again_by_the_next_connection() -> None:
    find = Whereabouts()
    async with forwarded(find) as port:
        async with echo(b"one") as find.url:
            assert await said(port) == b"one heard\n"
        async with echo(b"two") as find.url:
            assert await asyncio.gather(*(said(port) for _ in range(10))) == [b"two heard\n"] * 10
    assert find.asked == 2


async def test_while_the_server_is_nowhere_connections_are_closed_and_later_ones_try_again() -> None:
    find = Whereabouts()
    async with forwarded(find) as port:
        with contextlib.suppress(ConnectionError):  # as it is where something is on its way while it is closed
            assert await said(port) == b""
        async with echo(b"one") as find.url:
            assert await said(port) == b"one heard\n"


async def test_a_server_that_ends_closes_what_it_had_open() -> None:
    find = Whereabouts()
    async with forwarded(find) as port:
        async with echo(b"one") as find.url:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"\n")
            assert await reader.readline() == b"one\n"
        assert await asyncio.wait_for(reader.read(), slowly(10)) == b""
        writer.close()
        await writer.wait_closed()
