"""What our servers read before they know who asks is bounded: heads, time, connections."""

import asyncio
import contextlib
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI, Response
from starlette.types import Receive, Scope, Send

from proctor import event_loop
from proctor.http import bounded_protocol
from proctor.http.auth import Access, AccessGuard
from proctor.http.bounded_protocol import MAX_HEAD_BYTES
from proctor.http.server import listen, url_of
from proctor.http.serving import embedded, uvicorn_config
from proctor.http.tls import NO_TLS, ServerTls, Tls
from tests.pace import slowly

TOKEN = b"Authorization: Bearer t\r\n"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def count(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers how long the body was; at /wait nothing until the client goes."""
    while scope["path"] == "/wait" and (await receive())["type"] != "http.disconnect":
        pass
    length, more = 0, True
    while more:
        message = await receive()
        length += len(message.get("body", b""))
        more = message.get("more_body", False)
    body = b"%d bytes" % length
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> ServerTls:
    """A certificate for 127.0.0.1."""
    folder = tmp_path_factory.mktemp("pems")
    make = "openssl req -x509 -newkey ed25519 -subj /CN=one -keyout one.key -out one.pem -days 1 -noenc -addext"
    subprocess.run([*make.split(), "subjectAltName=IP:127.0.0.1"], cwd=folder, check=True, capture_output=True)
    return ServerTls(cert=folder / "one.pem", key=folder / "one.key")


Connect = Callable[..., Awaitable[Streams]]
"""A new connection on which these bytes were sent, over TLS with `ssl`."""


@contextlib.asynccontextmanager
async def serving(tls: ServerTls = NO_TLS) -> AsyncIterator[Connect]:
    """Connections to a server that knows the token `t`; closed afterwards."""
    opened: list[asyncio.StreamWriter] = []
    config = uvicorn_config(
        count, keep_alive_s=60, last_replies_s=1, tls=tls, knows=lambda method, path, shown: shown == b"Bearer t"
    )
    server = uvicorn.Server(config)
    with listen("127.0.0.1", 0) as listener:
        running = asyncio.create_task(server.serve(sockets=[listener]))

        async def sent(data: bytes, ssl: ssl.SSLContext | None = None) -> Streams:
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.getsockname()[1], ssl=ssl)
            opened.append(writer)
            writer.write(data)
            return reader, writer

        try:
            yield sent
        finally:
            for writer in opened:
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()
            server.should_exit = True
            await running


async def answer(streams: Streams, within_s: float = 20.0) -> bytes:
    """All that comes until the connection is closed."""
    reader, _ = streams
    async with asyncio.timeout(slowly(within_s)):
        with contextlib.suppress(ConnectionError):
            found = b""
            while chunk := await reader.read(65536):
                found += chunk
    return found


async def reply(streams: Streams) -> bytes:
    """One reply of a connection that stays."""
    async with asyncio.timeout(slowly(20)):
        head = await streams[0].readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split()[0])
        return await streams[0].readexactly(length)


@pytest.mark.parametrize(
    "begin",
    [
        b"GET / HTTP/1.1\r\n" + TOKEN + b"x: ",
        b"GET /",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nx: ",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;x=",
    ],
    ids=["header", "url", "trailer", "chunk extension"],
)
async def test_a_head_without_end_is_cut_off(begin: bytes) -> None:
    async with serving() as sent:
        reader, writer = await sent(begin)
        written = 0
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(slowly(20)):
                while not reader.at_eof() and written < 100 << 20:
                    writer.write(b"y" * 4096)
                    await writer.drain()
                    written += 4096
                    await asyncio.sleep(0)
    assert written < 32 << 20  # what the kernel's buffers hold, too


async def test_a_head_that_is_too_large_is_answered_with_431() -> None:
    async with serving() as sent:
        head = b"GET / HTTP/1.1\r\nx: " + b"y" * MAX_HEAD_BYTES
        assert (await answer(await sent(head + b"z"))).startswith(b"HTTP/1.1 431 ")
        fits = b"GET / HTTP/1.1\r\nx: ".ljust(MAX_HEAD_BYTES - 4, b"y") + b"\r\n\r\n"
        assert await reply(await sent(fits)) == b"0 bytes"


async def test_a_head_that_does_not_come_in_time_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_protocol, "HEAD_S", slowly(0.2))
    async with serving() as sent:
        assert await answer(await sent(b"")) == b""
        assert await answer(await sent(b"GET / HTTP/1.1\r\nx: y\r\n")) == b""
        later = await sent(b"GET / HTTP/1.1\r\n\r\n")
        assert await reply(later) == b"0 bytes"
        later[1].write(b"GET / HTT")
        assert await answer(later) == b""


async def test_a_body_may_take_longer_than_a_head_with_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_protocol, "HEAD_S", slowly(0.2))
    async with serving() as sent:
        assert await answer(await sent(b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nab")) == b""
        streams = await sent(b"POST / HTTP/1.1\r\n" + TOKEN + b"Content-Length: 4\r\n\r\nab")
        await asyncio.sleep(slowly(0.2) * 2)
        streams[1].write(b"cd")
        assert await reply(streams) == b"4 bytes"


async def test_large_bodies_and_many_requests_on_one_connection_pass() -> None:
    async with serving() as sent:
        size = 5 << 20
        streams = await sent(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % size + bytes(size))
        assert await reply(streams) == b"%d bytes" % size
        chunk = b"%x\r\n%s\r\n" % (MAX_HEAD_BYTES * 2, bytes(MAX_HEAD_BYTES * 2))
        streams[1].write(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 3 + b"0\r\n\r\n")
        assert await reply(streams) == b"%d bytes" % (MAX_HEAD_BYTES * 6)
        for _ in range(300):
            streams[1].write(b"GET / HTTP/1.1\r\nx: " + b"y" * 400 + b"\r\n\r\n")
            assert await reply(streams) == b"0 bytes"


async def test_connections_without_a_token_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_protocol, "MAX_UNAUTHORIZED", 8)
    monkeypatch.setattr(bounded_protocol, "HEAD_S", slowly(600))  # not what closes them
    async with serving() as sent:
        known = await sent(b"GET / HTTP/1.1\r\n" + TOKEN + b"\r\n")
        assert await reply(known) == b"0 bytes"
        silent = [await sent(b"") for _ in range(30)]
        newcomer = await sent(b"GET / HTTP/1.1\r\n\r\n")
        assert await reply(newcomer) == b"0 bytes"
        known[1].write(b"GET / HTTP/1.1\r\n" + TOKEN + b"\r\n")
        assert await reply(known) == b"0 bytes"
        assert all([await answer(streams, 5) == b"" for streams in silent[:22]])


async def test_nor_do_those_that_wait_for_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_protocol, "MAX_UNAUTHORIZED", 8)
    async with serving() as sent:
        known = await sent(b"GET / HTTP/1.1\r\n" + TOKEN + b"\r\n")
        assert await reply(known) == b"0 bytes"
        busy = [await sent(b"GET /wait HTTP/1.1\r\n\r\n") for _ in range(30)]
        assert await reply(await sent(b"GET / HTTP/1.1\r\n\r\n")) == b"0 bytes"
        known[1].write(b"GET / HTTP/1.1\r\n" + TOKEN + b"\r\n")
        assert await reply(known) == b"0 bytes"
        assert all([await answer(streams, 5) == b"" for streams in busy[:22]])


def posts(count: int, size: int, token: bytes) -> bytes:
    """Requests whose bodies are each a byte longer than the one before."""
    head = b"POST / HTTP/1.1\r\n" + token + b"Content-Length: %d\r\n\r\n"
    return b"".join(head % (size + number) + bytes(size + number) for number in range(count))


@pytest.mark.parametrize("run", [asyncio.run, event_loop.run])
@pytest.mark.parametrize(("count", "size", "token"), [(17, 100, b""), (17, 100, TOKEN), (60, 8000, TOKEN)])
def test_requests_that_are_sent_ahead_are_answered_in_turn(
    run: Callable[[Coroutine[Any, Any, None]], None], count: int, size: int, token: bytes
) -> None:
    async def all_answered() -> None:
        async with serving() as sent:
            streams = await sent(posts(count, size, token))
            assert [await reply(streams) for _ in range(count)] == [b"%d bytes" % (size + n) for n in range(count)]
            streams[1].write(posts(1, 1, token))
            assert await reply(streams) == b"1 bytes"

    run(all_answered())


@pytest.mark.parametrize("token", [b"", TOKEN])
async def test_more_than_16_queued_requests_end_the_connection(token: bytes) -> None:
    wait = b"GET /wait HTTP/1.1\r\n" + token + b"\r\n"
    async with serving() as sent:
        assert await answer(await sent(wait + posts(17, 1, token))) == b""


@pytest.mark.parametrize("run", [asyncio.run, event_loop.run])
def test_connections_that_never_shake_hands_keep_nobody_out(
    tls: ServerTls, monkeypatch: pytest.MonkeyPatch, run: Callable[[Coroutine[Any, Any, None]], None]
) -> None:
    monkeypatch.setattr(bounded_protocol, "MAX_UNAUTHORIZED", 8)
    monkeypatch.setattr(bounded_protocol, "HEAD_S", slowly(600))  # not what closes them
    run(_keep_nobody_out(tls, Tls(ca=tls.cert).context()))


async def _keep_nobody_out(tls: ServerTls, trusting: ssl.SSLContext) -> None:
    async with serving(tls) as sent:
        known = await sent(b"GET / HTTP/1.1\r\n" + TOKEN + b"\r\n", trusting)
        assert await reply(known) == b"0 bytes"
        silent = [await sent(begun) for begun in [b"", b"\x16\x03\x01\x02\x00\x01"] * 15]
        newcomer = await sent(b"GET / HTTP/1.1\r\n\r\n", trusting)
        assert await reply(newcomer) == b"0 bytes"
        known[1].write(b"POST / HTTP/1.1\r\nContent-Length: 300000\r\n\r\n" + bytes(300_000))
        assert await reply(known) == b"300000 bytes"
        assert all([await answer(streams, 5) == b"" for streams in silent[:22]])


@pytest.mark.parametrize("run", [asyncio.run, event_loop.run])
def test_a_handshake_that_does_not_come_in_time_ends_the_connection(
    tls: ServerTls, monkeypatch: pytest.MonkeyPatch, run: Callable[[Coroutine[Any, Any, None]], None]
) -> None:
    monkeypatch.setattr(bounded_protocol, "HEAD_S", slowly(0.2))

    async def say_nothing() -> None:
        async with serving(tls) as sent:
            assert await answer(await sent(b"")) == b""
            assert b"GET" not in await answer(await sent(b"GET / HTTP/1.1\r\n\r\n"))

    run(say_nothing())


async def test_head_is_answered_by_the_headers_of_get() -> None:
    app = FastAPI()
    app.add_api_route("/healthz", lambda: {"status": "ok"})
    guarded = AccessGuard(app, Access(), lambda *refused: Response())
    listener = listen("127.0.0.1", 0)
    url = f"{url_of('127.0.0.1', listener)}/healthz"
    config = uvicorn_config(guarded, keep_alive_s=60, last_replies_s=1)
    async with embedded(config, listener), httpx.AsyncClient(trust_env=False) as client:
        asked, whole = await client.head(url), await client.get(url)
    assert (asked.status_code, asked.headers, asked.content) == (200, whole.headers, b"")
