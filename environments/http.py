"""HTTP calls with a total deadline and a byte cap, over one fast client per process."""

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping
from typing import NamedTuple, cast

import aiohttp
import httpx
from aiohttp.abc import AbstractResolver
from httpx_aiohttp import AiohttpTransport
from pydantic_core import to_json

from environments.tls import NO_TLS, Tls

CONNECT_S = 10.0
KEEP_ALIVE_S = 30.0
CHUNK_BYTES = 1 << 20


class Reply(NamedTuple):
    """A whole reply: its body is decompressed and within the cap that was asked for."""

    status: int
    headers: Mapping[str, str]
    """By name, in whatever case."""
    body: bytes


class HttpFailure(Exception):
    """No whole reply came; whether the server acted on the request is unknown unless a subclass says so."""


class ConnectionFailed(HttpFailure):
    """The connection broke, the reply was cut short, or it was not HTTP."""


class Unreachable(ConnectionFailed):
    """No connection could be made: the server never saw the request."""


class Untrusted(Unreachable):
    """The server's certificate is not to be believed; trying again doesn't help."""


class DeadlineExceeded(HttpFailure):
    """The whole reply was not there in time."""


class ReplyTooLarge(HttpFailure):
    """The reply, before or after decompression, is larger than the cap."""


def http_client(
    *,
    tls: Tls = NO_TLS,
    max_connections: int | None = None,
    trust_env: bool = False,
    proxy: str | None = None,
    resolver: AbstractResolver | None = None,
) -> httpx.AsyncClient:
    """The client that a process shares for all its calls; building one costs 20 ms, so build one.

    Certificates are verified, redirects are not followed, cookies are not kept. `max_connections=None` is no limit;
    `resolver` looks up names instead of the system. Raises FileError for TLS files that can't be used.
    `trust_env` honours HTTP_PROXY, NO_PROXY and SSL_CERT_FILE. Close it with `async with` or `aclose()`.
    It stands on aiohttp, since httpx's own transport rescans its pool on each request (2-4 ms of CPU at 32 in flight);
    `bounded_request` goes straight to aiohttp, since httpx's requests and replies cost more than the call itself.
    """
    context = tls.context(trust_env=trust_env)

    def session() -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=max_connections or 0, keepalive_timeout=KEEP_ALIVE_S, ssl=context, resolver=resolver
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=trust_env,
            proxy=proxy,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
            auto_decompress=False,
        )

    transport = AiohttpTransport(verify=context, client=session)
    return _FastClient(transport=transport, trust_env=False, follow_redirects=False, timeout=None)


async def bounded_request(
    client: httpx.AsyncClient,
    method: str,
    url: str | httpx.URL,
    *,
    json: object = None,
    content: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    deadline_s: float,
    max_bytes: int,
) -> Reply:
    """The whole reply, whatever its status, within `deadline_s` seconds in total and `max_bytes` of body.

    `json` is anything pydantic can serialise, models included; give it or `content`, not both. Raises HttpFailure.
    """
    all_headers = {"Accept-Encoding": "identity", **(headers or {})}
    if json is not None:
        content = to_json(json)
        all_headers["Content-Type"] = "application/json"
    sent = _Sent(method, url, all_headers, content)
    if content is not None and len(content) > CHUNK_BYTES:
        all_headers["Content-Length"] = str(len(content))
        sent = sent._replace(body=_chunks(content))
    try:
        async with asyncio.timeout(deadline_s):
            if isinstance(client, _FastClient):
                return await _by_aiohttp(client.session(), sent, max_bytes)
            return await _by_httpx(client, sent, max_bytes)
    except _TooLarge as error:
        raise ReplyTooLarge(f"{_where(method, url)}: the reply is larger than {max_bytes} bytes") from error
    except (httpx.HTTPError, aiohttp.ClientError, zlib.error) as error:
        failure = _failure(error)
        raise failure(f"{_where(method, url)}: {str(error) or type(error).__name__}") from error
    except TimeoutError as error:
        raise DeadlineExceeded(f"{_where(method, url)}: no whole reply within {deadline_s:g} s") from error


class _Sent(NamedTuple):
    method: str
    url: str | httpx.URL
    headers: Mapping[str, str]
    body: bytes | AsyncIterator[bytes] | None


class _NoCookies(httpx.Cookies):
    def extract_cookies(self, response: httpx.Response) -> None:
        """Keeps none: no call may leave a trace for the next, and looking for them is a tenth of a call's CPU."""


class _FastClient(httpx.AsyncClient):
    """What `http_client` makes."""

    _transport: AiohttpTransport

    def session(self) -> aiohttp.ClientSession:
        """The session under its transport."""
        if not isinstance(self._transport.client, aiohttp.ClientSession):
            self._transport.client = self._transport.get_client()
        return self._transport.client

    @property
    def cookies(self) -> httpx.Cookies:
        return _NoCookies()

    @cookies.setter
    def cookies(self, cookies: object) -> None:
        raise NotImplementedError("this client keeps no cookies")


async def _chunks(content: bytes) -> AsyncIterator[bytes]:
    """A large body in pieces, since sending one at once would hold up the event loop."""
    for start in range(0, len(content), CHUNK_BYTES):
        yield content[start : start + CHUNK_BYTES]


class _TooLarge(Exception):
    pass


async def _by_aiohttp(session: aiohttp.ClientSession, sent: _Sent, max_bytes: int) -> Reply:
    asked = session.request(sent.method, str(sent.url), data=sent.body, headers=sent.headers, allow_redirects=False)
    async with asked as response:
        return _plain(response.status, response.headers, await _read(response.content.iter_any(), max_bytes), max_bytes)


async def _by_httpx(client: httpx.AsyncClient, sent: _Sent, max_bytes: int) -> Reply:
    timeout = httpx.Timeout(None, connect=CONNECT_S)
    asked = client.stream(
        sent.method, sent.url, content=sent.body, headers=sent.headers, timeout=timeout, follow_redirects=False
    )
    async with asked as response:
        stream = cast(AsyncIterable[bytes], response.stream)
        return _plain(response.status_code, response.headers, await _read(stream, max_bytes), max_bytes)


def _plain(status: int, headers: Mapping[str, str], body: bytes, max_bytes: int) -> Reply:
    encoded = headers.get("content-encoding", "identity") != "identity"
    return Reply(status, headers, _decompress(body, max_bytes) if encoded else body)


async def _read(stream: AsyncIterable[bytes], max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in stream:
        body += chunk
        if len(body) > max_bytes:
            raise _TooLarge
    return bytes(body)


def _decompress(body: bytes, max_bytes: int) -> bytes:
    """What a gzip or zlib body holds, for servers that compress although told not to."""
    decompressor = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    plain = decompressor.decompress(body, max_bytes + 1)
    if len(plain) > max_bytes:
        raise _TooLarge
    if not decompressor.eof:
        raise zlib.error("the compressed reply is cut short or not gzip")
    return plain


def _where(method: str, url: str | httpx.URL) -> str:
    return f"{method} {httpx.URL(url).copy_with(userinfo=b'', query=None)}"


def _failure(error: Exception) -> type[ConnectionFailed]:
    if any(isinstance(each, ssl.SSLCertVerificationError) for each in _chain(error)):
        return Untrusted
    return Unreachable if _never_connected(error) else ConnectionFailed


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it came from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _never_connected(error: Exception) -> bool:
    """True where nothing was sent. The transport's own classes don't say so; their causes do."""
    never = (httpx.ConnectError, aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
    return isinstance(error, never) or isinstance(error.__cause__, never)
