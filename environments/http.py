"""HTTP calls with a total deadline and a byte cap, over one fast client per process."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple, cast

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport
from pydantic_core import to_json

CONNECT_S = 10.0
KEEP_ALIVE_S = 30.0
CHUNK_BYTES = 1 << 20


class Reply(NamedTuple):
    """A whole reply: its body is decompressed and within the cap that was asked for."""

    status: int
    headers: httpx.Headers
    body: bytes


class HttpFailure(Exception):
    """No whole reply came; whether the server acted on the request is unknown unless a subclass says so."""


class ConnectionFailed(HttpFailure):
    """The connection broke, the reply was cut short, or it was not HTTP."""


class Unreachable(ConnectionFailed):
    """No connection could be made: the server never saw the request."""


class DeadlineExceeded(HttpFailure):
    """The whole reply was not there in time."""


class ReplyTooLarge(HttpFailure):
    """The reply, before or after decompression, is larger than the cap."""


def http_client(
    *, max_connections: int | None = None, trust_env: bool = False, proxy: str | None = None
) -> httpx.AsyncClient:
    """The client that a process shares for all its calls; building one costs 20 ms, so build one.

    Certificates are verified, redirects are not followed, cookies are not kept. `max_connections=None` is no limit.
    `trust_env` honours HTTP_PROXY, NO_PROXY and SSL_CERT_FILE. Close it with `async with` or `aclose()`.
    The aiohttp transport is there because httpx's own rescans its pool on each request (2-4 ms of CPU at 32 in flight).
    """
    context = httpx.create_ssl_context(trust_env=trust_env)

    def session() -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=max_connections or 0, keepalive_timeout=KEEP_ALIVE_S, ssl=context)
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=trust_env)

    transport = AiohttpTransport(verify=context, client=session, proxy=httpx.Proxy(proxy) if proxy else None)
    return _Cookieless(transport=transport, trust_env=False, follow_redirects=False, timeout=None)


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
    sent = {"Accept-Encoding": "identity", **(headers or {})}
    if json is not None:
        content = to_json(json)
        sent["Content-Type"] = "application/json"
    body: bytes | AsyncIterator[bytes] | None = content
    if content is not None and len(content) > CHUNK_BYTES:
        sent["Content-Length"] = str(len(content))
        body = _chunks(content)
    request = client.build_request(
        method, url, content=body, headers=sent, timeout=httpx.Timeout(None, connect=CONNECT_S)
    )
    try:
        async with asyncio.timeout(deadline_s):
            return await _whole_reply(client, request, max_bytes)
    except TimeoutError as error:
        raise DeadlineExceeded(f"{_where(request)}: no whole reply within {deadline_s:g} s") from error
    except _TooLarge as error:
        raise ReplyTooLarge(f"{_where(request)}: the reply is larger than {max_bytes} bytes") from error
    except (httpx.HTTPError, aiohttp.ClientError, zlib.error) as error:
        failure = Unreachable if _never_connected(error) else ConnectionFailed
        raise failure(f"{_where(request)}: {str(error) or type(error).__name__}") from error


class _NoCookies(httpx.Cookies):
    def extract_cookies(self, response: httpx.Response) -> None:
        """Keeps none: no call may leave a trace for the next, and looking for them is a tenth of a call's CPU."""


class _Cookieless(httpx.AsyncClient):
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


async def _whole_reply(client: httpx.AsyncClient, request: httpx.Request, max_bytes: int) -> Reply:
    response = await client.send(request, stream=True, follow_redirects=False)
    try:
        body = await _read(cast(AsyncIterator[bytes], response.stream), max_bytes)
    finally:
        await response.aclose()
    if response.headers.get("content-encoding", "identity") != "identity":
        body = _decompress(body, max_bytes)
    return Reply(response.status_code, response.headers, body)


async def _read(stream: AsyncIterator[bytes], max_bytes: int) -> bytes:
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


def _where(request: httpx.Request) -> str:
    return f"{request.method} {request.url.copy_with(userinfo=b'', query=None)}"


def _never_connected(error: Exception) -> bool:
    """True where nothing was sent. The transport's own classes don't say so; their causes do."""
    never = (httpx.ConnectError, aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
    return isinstance(error, never) or isinstance(error.__cause__, never)
