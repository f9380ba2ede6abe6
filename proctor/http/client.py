"""HTTP requests with a total deadline and a limit on the reply's bytes.

aiohttp sends them, and is imported with the first request: a process that sends none never loads it.
"""

import asyncio
import functools
import ssl
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias, cast
from urllib.parse import urlsplit

from pydantic_core import to_json

from proctor.http.tls import NO_TLS, Tls

if TYPE_CHECKING:
    import aiohttp
    import httpx
    from aiohttp.abc import AbstractResolver

CONNECT_S = 10.0
KEEP_ALIVE_S = 30.0
CHUNK_BYTES = 1 << 20
AnyClient: TypeAlias = "HttpClient | httpx.AsyncClient"
"""A client that `http_client` made, or any httpx client, such as one for an app in the same process."""


class HttpReply(NamedTuple):
    """A complete reply; its body is decompressed and within the limit of its request."""

    status: int
    headers: Mapping[str, str]
    """By name; look-ups ignore case."""
    body: bytes


class HttpFailure(Exception):
    """No complete reply came. Except for Unreachable, the server may have acted on the request."""


class ConnectionFailed(HttpFailure):
    """The connection broke, the reply was cut short, or it was not HTTP."""


class Unreachable(ConnectionFailed):
    """No connection could be made: the server never received the request."""


class Untrusted(Unreachable):
    """The server's certificate failed verification: a retry can't succeed."""


class DeadlineExceeded(HttpFailure):
    """The complete reply did not arrive within the deadline."""


class ReplyTooLarge(HttpFailure):
    """The reply, before or after decompression, is larger than its limit."""


class HttpClient:
    """The client that `http_client` makes; close it with `async with` or `aclose()`."""

    def __init__(
        self, open_session: Callable[[], "aiohttp.ClientSession"], tls_for: Callable[[str], ssl.SSLContext | bool]
    ) -> None:
        self._open_session, self._tls_for = open_session, tls_for
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the client's connections."""
        if self._session is not None:
            await self._session.close()

    async def exchange(self, request: "_Request", max_bytes: int) -> HttpReply:
        """The complete reply, without a deadline: `bounded_request` sets one, and raises HttpFailure alone."""
        import aiohttp

        session = self._session = self._session or self._open_session()
        tls = self._tls_for(request.url)
        exchange = session.request(
            request.method, request.url, data=request.body, headers=request.headers, ssl=tls, allow_redirects=False
        )
        try:
            async with exchange as response:
                body = await _read(response.content.iter_any(), max_bytes)
                return _plain(response.status, response.headers, body, max_bytes)
        except aiohttp.ClientError as error:
            never = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
            raise _failure(request, error, isinstance(error, never)) from error


def http_client(
    *,
    tls: Tls = NO_TLS,
    max_connections: int | None = None,
    trust_env: bool = False,
    proxy: str | None = None,
    resolver: "AbstractResolver | None" = None,
) -> HttpClient:
    """A client with a connection pool of its own; share it among all calls with these settings.

    Certificates are verified, redirects are not followed, cookies are not kept. `max_connections=None` is no limit;
    `resolver` resolves names instead of the system; `trust_env` honours HTTP_PROXY, NO_PROXY and SSL_CERT_FILE. Raises
    FileError for TLS files that can't be used. Without TLS files and proxy, the public authorities are loaded with the
    first call over TLS.

    It uses aiohttp, since httpx's own transport rescans its pool on each request (2-4 ms of CPU at 32 in flight).
    """
    context = functools.cache(functools.partial(tls.context, trust_env=trust_env))
    proxied = trust_env or proxy is not None
    if tls.ca is not None or tls.cert is not None or proxied:
        context()

    def tls_for(url: str) -> ssl.SSLContext | bool:
        return context() if proxied or url[:6].lower() == "https:" else True

    def session() -> "aiohttp.ClientSession":
        import aiohttp

        connector = aiohttp.TCPConnector(limit=max_connections or 0, keepalive_timeout=KEEP_ALIVE_S, resolver=resolver)
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=trust_env,
            proxy=proxy,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
            auto_decompress=False,
        )

    return HttpClient(session, tls_for)


def json_headers(token: str | None) -> dict[str, str]:
    """The headers of a request with a JSON body; a token or key goes as a bearer token."""
    bearer = {} if token is None else {"Authorization": f"Bearer {token}"}
    return {"Content-Type": "application/json", **bearer}


async def bounded_request(
    client: AnyClient,
    method: str,
    url: str,
    *,
    json: object = None,
    content: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    deadline_s: float,
    max_bytes: int,
) -> HttpReply:
    """Send a request and return the complete reply, whatever its status. Raises HttpFailure.

    `deadline_s` limits the whole exchange, `max_bytes` the reply's body, also once decompressed. `json` is anything
    that pydantic can serialise, models included; give it or `content`, not both.
    """
    all_headers = {"Accept-Encoding": "identity", **(headers or {})}
    if json is not None:
        content = to_json(json)
        all_headers["Content-Type"] = "application/json"
    request = _Request(method, url, all_headers, content)
    if content is not None and len(content) > CHUNK_BYTES:
        all_headers["Content-Length"] = str(len(content))
        request = request._replace(body=_chunks(content))
    try:
        async with asyncio.timeout(deadline_s):
            if isinstance(client, HttpClient):
                return await client.exchange(request, max_bytes)
            return await _by_httpx(client, request, max_bytes)
    except _TooLarge as error:
        raise ReplyTooLarge(f"{request.where()}: the reply is larger than {max_bytes} bytes") from error
    except zlib.error as error:
        raise ConnectionFailed(f"{request.where()}: {error}") from error
    except TimeoutError as error:
        raise DeadlineExceeded(f"{request.where()}: no whole reply within {deadline_s:g} s") from error


class _Request(NamedTuple):
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | AsyncIterator[bytes] | None

    def where(self) -> str:
        """Method and URL for messages, without user info and query, which may be secret."""
        url = urlsplit(self.url)
        return f"{self.method} {url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"


async def _chunks(content: bytes) -> AsyncIterator[bytes]:
    """A large body in pieces: sending it at once would block the event loop."""
    for start in range(0, len(content), CHUNK_BYTES):
        yield content[start : start + CHUNK_BYTES]


class _TooLarge(Exception):
    pass


async def _by_httpx(client: "httpx.AsyncClient", request: _Request, max_bytes: int) -> HttpReply:
    import httpx

    timeout = httpx.Timeout(None, connect=CONNECT_S)
    exchange = client.stream(
        request.method,
        request.url,
        content=request.body,
        headers=request.headers,
        timeout=timeout,
        follow_redirects=False,
    )
    try:
        async with exchange as response:
            stream = cast(AsyncIterable[bytes], response.stream)
            return _plain(response.status_code, response.headers, await _read(stream, max_bytes), max_bytes)
    except httpx.HTTPError as error:
        raise _failure(request, error, isinstance(error, httpx.ConnectError)) from error


def _plain(status: int, headers: Mapping[str, str], body: bytes, max_bytes: int) -> HttpReply:
    encoded = headers.get("content-encoding", "identity") != "identity"
    return HttpReply(status, headers, _decompress(body, max_bytes) if encoded else body)


async def _read(stream: AsyncIterable[bytes], max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in stream:
        body += chunk
        if len(body) > max_bytes:
            raise _TooLarge
    return bytes(body)


def _decompress(body: bytes, max_bytes: int) -> bytes:
    """The contents of a gzip or zlib body, from a server that compresses although the request rules it out."""
    decompressor = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    plain = decompressor.decompress(body, max_bytes + 1)
    if len(plain) > max_bytes:
        raise _TooLarge
    if not decompressor.eof:
        raise zlib.error("the compressed reply is cut short or not gzip")
    return plain


def _failure(request: _Request, error: Exception, never_connected: bool) -> ConnectionFailed:
    message = f"{request.where()}: {str(error) or type(error).__name__}"
    if any(isinstance(each, ssl.SSLCertVerificationError) for each in _chain(error)):
        return Untrusted(message)
    return Unreachable(message) if never_connected else ConnectionFailed(message)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, its cause, the cause of that, and so on."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
