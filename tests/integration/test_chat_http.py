"""A bounded request gives a whole reply or a typed failure, whatever the server does."""

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable
from typing import cast

import httpx
import pytest
import pytest_asyncio

from proctor.http.client import (
    ConnectionFailed,
    DeadlineExceeded,
    HttpClient,
    HttpReply,
    ReplyTooLarge,
    bounded_request,
    http_client,
)
from proctor.types import ToolCall
from tests.pace import slowly
from tests.scripted_server import Script, listening, raw, reply, scripted_server
from tests.support import via

CAP = 100_000


@pytest_asyncio.fixture(params=["wreq", "httpx"])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[HttpClient]:
    """Requests go by wreq, or by httpx where there is no wreq; nobody may notice."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "httpx":
            patch.setattr("proctor.http.client.find_spec", lambda name: None)
        client = http_client()
    async with client:
        yield client


async def ask(client: HttpClient, *scripts: Script, deadline_s: float = slowly(10)) -> HttpReply:
    async with scripted_server(*scripts) as url:
        return await bounded_request(client, "POST", url, content=b"{}", deadline_s=deadline_s, max_bytes=CAP)


async def test_an_error_status_is_a_reply_too(client: HttpClient) -> None:
    got = await ask(client, reply(b"busy", "429 Too Many Requests", ["Retry-After: 3"]))
    assert (got.status, got.headers["retry-after"], got.body) == (429, "3", b"busy")


async def test_a_model_is_sent_as_json_and_no_compression_is_asked_for(client: HttpClient) -> None:
    requests: list[bytes] = []
    call = ToolCall(id="1", name="f", arguments="{}")
    async with scripted_server(reply(b""), requests=requests) as url:
        await bounded_request(client, "POST", url, json=call, deadline_s=slowly(10), max_bytes=CAP)
    assert ToolCall.model_validate_json(requests[0]) == call


async def test_a_reply_may_have_hundreds_of_headers(client: HttpClient) -> None:
    got = await ask(client, reply(b"ok", headers=[f"X-{number}: {number}" for number in range(200)]))
    assert (got.body, got.headers["x-199"]) == (b"ok", "199")


async def test_a_large_request_arrives_whole(client: HttpClient) -> None:
    requests: list[bytes] = []
    content = bytes(range(256)) * 20_000
    async with scripted_server(reply(b"ok"), requests=requests) as url:
        got = await bounded_request(client, "POST", url, content=content, deadline_s=slowly(10), max_bytes=CAP)
    assert got.body == b"ok"
    assert requests == [content]


async def test_a_server_that_does_not_read_the_request_runs_into_the_deadline(client: HttpClient) -> None:
    stop = asyncio.Event()

    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        cast(asyncio.ReadTransport, writer.transport).pause_reading()
        await stop.wait()

    async with listening(deaf) as url:
        with pytest.raises(DeadlineExceeded):
            await bounded_request(client, "POST", url, content=bytes(20 << 20), deadline_s=slowly(1), max_bytes=CAP)
        stop.set()


async def test_a_reply_at_the_cap_passes_and_one_byte_more_does_not(client: HttpClient) -> None:
    assert len((await ask(client, reply(b"x" * CAP))).body) == CAP
    with pytest.raises(ReplyTooLarge, match="larger than 100000 bytes"):
        await ask(client, reply(b"x" * (CAP + 1)))


async def test_a_huge_reply_is_given_up_early(client: HttpClient) -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n")
        while True:
            writer.write(bytes(1 << 20))
            await writer.drain()

    tracemalloc.start()
    try:
        with pytest.raises(ReplyTooLarge):
            await ask(client, endless)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


async def test_a_gzip_bomb_is_never_inflated(client: HttpClient) -> None:
    bomb = gzip.compress(gzip.compress(bytes(50 << 20)) + bytes(20 << 20))
    assert len(bomb) < CAP
    tracemalloc.start()
    try:
        with pytest.raises(ReplyTooLarge):
            await ask(client, reply(bomb, headers=["Content-Encoding: gzip"]))
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("compress", [gzip.compress, zlib.compress])
async def test_a_server_that_compresses_all_the_same_is_understood(
    client: HttpClient, compress: Callable[[bytes], bytes]
) -> None:
    got = await ask(client, reply(compress(b"hello"), headers=["Content-Encoding: gzip"]))
    assert got.body == b"hello"


@pytest.mark.parametrize("body", [gzip.compress(b"hello" * 100, mtime=0)[:-9], b"not gzip"])
async def test_broken_compression_is_a_broken_reply(client: HttpClient, body: bytes) -> None:
    with pytest.raises(ConnectionFailed):
        await ask(client, reply(body, headers=["Content-Encoding: gzip"]))


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 300_000 + b"\r\n\r\n",
    ],
)
async def test_a_reply_cut_short_or_not_http_is_a_broken_connection(client: HttpClient, sent: bytes) -> None:
    with pytest.raises(ConnectionFailed):
        await ask(client, raw(sent))


async def test_any_httpx_client_will_do() -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(200, content=request.content))
    async with httpx.AsyncClient(transport=transport) as client:
        got = await bounded_request(via(client), "POST", "http://x/", json=[1], deadline_s=slowly(5), max_bytes=CAP)
    assert got.body == b"[1]"
