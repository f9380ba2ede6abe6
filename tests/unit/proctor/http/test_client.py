"""What the HTTP client does with its connections, over the wire."""

import asyncio
import contextlib
import ipaddress
import os
import re
import shutil
import socket
import ssl
import struct
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from proctor.config.wording import ENV_PROXY
from proctor.config.yaml import FileError
from proctor.http.client import (
    DIRECT,
    ConnectionFailed,
    DeadlineExceeded,
    HttpClient,
    HttpReply,
    ReplyTooLarge,
    Route,
    Unreachable,
    Untrusted,
    bounded_request,
    http_client,
)
from proctor.http.tls import Tls
from proctor.http.wreq_client import KEEP_ALIVE_S
from tests.pace import slowly

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CAP = 100_000
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(params=["wreq", "httpx"], autouse=True)
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Requests go by wreq, or by httpx where there is no wreq."""
    if request.param == "httpx":
        monkeypatch.setattr("proctor.http.client.find_spec", lambda name: None)
    return str(request.param)


@contextlib.asynccontextmanager
async def serving(handle: Handler, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """The port of a server; every connection is closed when its handler ends. Leaves once all have ended."""
    handlers: set[asyncio.Task[None] | None] = set()

    async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.add(asyncio.current_task())
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await handle(reader, writer)
        with contextlib.suppress(ConnectionError):
            writer.close()
            await writer.wait_closed()

    async with await asyncio.start_server(closing, "127.0.0.1", 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1]
        await asyncio.gather(*filter(None, handlers))


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """The head of a request, once its body of two bytes has come."""
    head = await reader.readuntil(b"\r\n\r\n")
    if b"content-length: 2" in head.lower():
        await reader.readexactly(2)
    return head


async def answer_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        await read_request(reader)
        writer.write(OK)


async def post(
    client: HttpClient, port: int, host: str = "127.0.0.1", scheme: str = "http", route: Route = DIRECT
) -> HttpReply:
    url = f"{scheme}://{host}:{port}/x"
    longest_s = slowly(10)
    return await bounded_request(client, "POST", url, content=b"{}", deadline_s=longest_s, max_bytes=CAP, route=route)


async def test_cookies_are_not_kept_and_redirects_not_followed() -> None:
    heads: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            heads.append(await read_request(reader))
            moved = b"HTTP/1.1 302 Found\r\nLocation: /y\r\nSet-Cookie: a=b; Path=/\r\nContent-Length: 0\r\n\r\n"
            writer.write(moved)

    async with serving(answer) as port, http_client() as client:
        for _ in range(2):
            got = await post(client, port, "localhost")  # of an address alone no client keeps a cookie
            assert (got.status, got.headers["Set-Cookie"]) == (302, "a=b; Path=/")
    assert len(heads) == 2
    assert b"cookie" not in heads[1].lower()


@pytest.mark.parametrize("begun", [b"", OK[:-1]], ids=["before the reply", "in its body"])
async def test_a_cancelled_task_closes_its_connection(begun: bytes) -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(begun)
        asked.set()
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        gone.set()

    async with serving(wait) as port, http_client() as client:
        task = asyncio.create_task(post(client, port))
        await asked.wait()
        await asyncio.sleep(0.05)  # what was begun arrives
        task.cancel()
        async with asyncio.timeout(slowly(10)):
            await gone.wait()


PARTS = [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", OK[:-1]]


@pytest.mark.parametrize("part", PARTS, ids=["before the reply", "in its head", "in its chunks", "in its body"])
async def test_a_deadline_covers_the_whole_reply_closes_its_connection_and_shows_no_query(part: bytes) -> None:
    gone, drip = asyncio.Event(), b"1\r\nx\r\n" if b"chunked" in part else b"A: b\r\n" if part in PARTS[:2] else b""

    async def dripping(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(part)
        while not reader.at_eof():
            with contextlib.suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(0.02):
                    await reader.read()
                writer.write(drip if part else b"")
        gone.set()

    deadline_s = slowly(0.2)
    async with serving(dripping) as port, http_client() as client:
        url = f"http://127.0.0.1:{port}/?key=canary"
        with pytest.raises(DeadlineExceeded, match=re.escape(f"no whole reply within {deadline_s:g} s")) as caught:
            await bounded_request(client, "GET", url, deadline_s=deadline_s, max_bytes=CAP)
        told = caught.value, caught.value.__cause__, caught.value.__cause__ and caught.value.__cause__.__cause__
        assert "canary" not in " ".join(map(str, told))
        async with asyncio.timeout(slowly(10)):
            await gone.wait()


async def test_a_reply_that_is_too_large_closes_its_connection() -> None:
    gone = asyncio.Event()

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while not reader.at_eof():
                writer.write(b"8000\r\n%s\r\n" % bytes(0x8000))
                await writer.drain()
        gone.set()

    async with serving(endless) as port, http_client() as client:
        with pytest.raises(ReplyTooLarge):
            await post(client, port)
        async with asyncio.timeout(slowly(10)):
            await gone.wait()


async def test_connections_are_kept_and_closed_with_the_client() -> None:
    opened, closed = 0, asyncio.Event()

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        with contextlib.suppress(asyncio.IncompleteReadError):
            await answer_all(reader, writer)
        closed.set()

    async with serving(count) as port:
        async with http_client() as client:
            for _ in range(5):
                await post(client, port)
            assert opened == 1
            assert not closed.is_set()
        async with asyncio.timeout(KEEP_ALIVE_S / 2):
            await closed.wait()


def reset(writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@pytest.mark.parametrize("answered", [0, 1], ids=["new connection", "kept connection"])
@pytest.mark.parametrize("end", [reset, asyncio.StreamWriter.close])
async def test_a_request_that_was_read_is_lost_not_unreachable_and_sent_once(
    end: Callable[[asyncio.StreamWriter], None], answered: int
) -> None:
    got = 0

    async def lose(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal got
        for _ in range(answered):
            await read_request(reader)
            writer.write(OK)
        await read_request(reader)
        got += 1
        end(writer)

    async with serving(lose) as port, http_client() as client:
        for _ in range(answered):
            await post(client, port)
        with pytest.raises(ConnectionFailed) as caught:
            await post(client, port)
    assert not isinstance(caught.value, Unreachable)
    assert got == 1


async def test_what_callers_tell_apart_is_the_cause_and_shows_no_query() -> None:
    async with serving(answer_all) as port:
        pass

    async def no_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(5)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with serving(no_tls) as plain, http_client() as client:
        for where, kind in (
            (f"http://127.0.0.1:{port}", ConnectionRefusedError),
            (f"https://127.0.0.1:{plain}", ssl.SSLError),
        ):
            with pytest.raises(Unreachable) as caught:
                await bounded_request(client, "GET", f"{where}/?key=canary", deadline_s=slowly(10), max_bytes=CAP)
            assert isinstance(caught.value.__cause__, kind)
            assert "canary" not in f"{caught.value} {caught.value.__cause__}"


async def test_a_proxy_is_used_only_where_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    heads: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await read_request(reader))
        writer.write(OK)

    async with serving(proxy) as at, serving(answer_all) as port:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{at}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        async with http_client() as client:
            await post(client, port)
        assert heads == []
        for via in (ENV_PROXY, f"http://127.0.0.1:{at}"):
            async with http_client() as client:
                await post(client, port, route=Route(via))
    assert [head.split()[1] for head in heads] == [b"http://127.0.0.1:%d/x" % port] * 2


@pytest.fixture(scope="module")
def pems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs for worker.test and 127.0.0.1, `rsa` and `ec` with keys in their own, older forms."""
    folder = tmp_path_factory.mktemp("pems")
    assert shutil.which("openssl"), "no openssl; install it, or run `make test` as root, which does"
    make = "openssl req -x509 -subj /CN=one -days 1 -noenc -addext subjectAltName=DNS:worker.test,IP:127.0.0.1"
    for name, kind in (("rsa", "rsa:2048"), ("ec", "ec -pkeyopt ec_paramgen_curve:P-384"), ("ed", "ed25519")):
        run(f"{make} -newkey {kind} -keyout {name}.key -out {name}.pem", folder)
    run("openssl rsa -in rsa.key -traditional -out rsa.key", folder)
    run("openssl ec -in ec.key -out ec.key", folder)
    return folder


def run(command: str, folder: Path) -> None:
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)


@pytest.mark.parametrize("ours", ["rsa", "ec", "ed"])
async def test_a_client_shows_its_certificate_whatever_the_form_of_its_key(pems: Path, ours: str) -> None:
    context = server_context(pems, "ec")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(pems / f"{ours}.pem")
    known = Tls(ca=pems / "ec.pem", cert=pems / f"{ours}.pem", key=pems / f"{ours}.key")
    async with serving(answer_all, context) as port, http_client(tls=known) as client:
        assert (await post(client, port, scheme="https")).body == b"ok"
    async with serving(answer_all, context) as port, http_client(tls=Tls(ca=pems / "ec.pem")) as client:
        with pytest.raises(ConnectionFailed):
            await post(client, port, scheme="https")


def test_a_key_that_a_client_can_t_use_is_refused(pems: Path, transport: str) -> None:
    run("openssl req -x509 -subj /CN=one -days 1 -noenc -newkey ed448 -keyout odd.key -out odd.pem", pems)
    refused = pytest.raises(FileError, match=r"tls\.key: .*odd\.key .* give an RSA, EC or Ed25519 key")
    with refused if transport == "wreq" else contextlib.nullcontext():
        http_client(tls=Tls(cert=pems / "odd.pem", key=pems / "odd.key"))


def server_context(pems: Path, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pems / f"{name}.pem", pems / f"{name}.key")
    return context


async def test_announced_names_go_to_the_addresses_that_they_resolve_to_for_us(pems: Path) -> None:
    known = {"worker.test": [ipaddress.ip_address("127.0.0.1")]}

    def resolve(host: str) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
        if host not in known:
            raise OSError(None, f"{host} is not announced")
        return known[host]

    client = http_client(tls=Tls(ca=pems / "ed.pem"), resolve=resolve)
    async with serving(answer_all, server_context(pems, "ed")) as port, client:
        for host in ("worker.test", "Worker.TEST", "127.0.0.1"):
            assert (await post(client, port, host, "https")).body == b"ok"
        for host in ("localhost", "w%6frker.test", "wörker.test"):
            with pytest.raises(Unreachable, match=r"is not announced|is no host name"):
                await post(client, port, host, "https")
        known["worker.test"] = [ipaddress.ip_address("127.0.0.2")]  # nothing listens there
        with pytest.raises(Unreachable):
            await post(client, port, "worker.test", "https")
        known["other.test"] = [ipaddress.ip_address("127.0.0.1")]
        with pytest.raises(Untrusted):
            await post(client, port, "other.test", "https")


async def test_authorities_that_were_replaced_are_trusted_at_once(pems: Path, tmp_path: Path) -> None:
    shutil.copy(pems / "ed.pem", tmp_path / "ca.pem")
    client = http_client(tls=Tls(ca=tmp_path / "ca.pem"))
    async with serving(answer_all, server_context(pems, "ec")) as port, client:
        with pytest.raises(Untrusted):
            await post(client, port, scheme="https")
        shutil.copy(pems / "ec.pem", tmp_path / "ca.pem")
        assert (await post(client, port, scheme="https")).body == b"ok"


def test_a_forked_process_has_connections_of_its_own() -> None:
    async def ask() -> None:
        async with serving(answer_all) as port, http_client() as client:
            assert (await post(client, port)).body == b"ok"

    asyncio.run(ask())
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            asyncio.run(ask())
            os._exit(0)
        os._exit(1)
    until = time.monotonic() + slowly(20)
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < until:
        time.sleep(0.01)
    if ended == (0, 0):
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert ended == (child, 0)
