"""HTTP calls with a total deadline and a byte cap.

aiohttp makes them, and is imported with the first call: a process that makes none, or none yet, does without.
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
"""What makes calls: `http_client`'s, or any client of httpx, such as one over an app in the same process."""


class HttpReply(NamedTuple):
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


class HttpClient:
    """What `http_client` makes; close it with `async with` or `aclose()`."""

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
        """Close its connections."""
        if self._session is not None:
            await self._session.close()

    async def exchange(self, sent: "_Sent", max_bytes: int) -> HttpReply:
        """The whole reply, however long it takes. Raises what `bounded_request` does."""
        import aiohttp

        session = self._session = self._session or self._open_session()
        tls = self._tls_for(sent.url)
        asked = session.request(
            sent.method, sent.url, data=sent.body, headers=sent.headers, ssl=tls, allow_redirects=False
        )
        try:
            async with asked as response:
                body = await _read(response.content.iter_any(), max_bytes)
                return _plain(response.status, response.headers, body, max_bytes)
        except aiohttp.ClientError as error:
            never = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
            raise _failure(sent, error, isinstance(error, never)) from error


def http_client(
    *,
    tls: Tls = NO_TLS,
    max_connections: int | None = None,
    trust_env: bool = False,
    proxy: str | None = None,
    resolver: "AbstractResolver | None" = None,
) -> HttpClient:
    """The client that a process shares for all its calls.

    Certificates are verified, redirects are not followed, cookies are not kept. `max_connections=None` is no limit;
    `resolver` looks up names instead of the system. Raises FileError for TLS files that can't be used; everybody's
    authorities are read with the first call over TLS.
    `trust_env` honours HTTP_PROXY, NO_PROXY and SSL_CERT_FILE.
    It stands on aiohttp, since httpx's own transport rescans its pool on each request (2-4 ms of CPU at 32 in flight).
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
            if isinstance(client, HttpClient):
                return await client.exchange(sent, max_bytes)
            return await _by_httpx(client, sent, max_bytes)
    except _TooLarge as error:
        raise ReplyTooLarge(f"{sent.where()}: the reply is larger than {max_bytes} bytes") from error
    except zlib.error as error:
        raise ConnectionFailed(f"{sent.where()}: {error}") from error
    except TimeoutError as error:
        raise DeadlineExceeded(f"{sent.where()}: no whole reply within {deadline_s:g} s") from error


class _Sent(NamedTuple):
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | AsyncIterator[bytes] | None

    def where(self) -> str:
        """The call for messages, without what may be secret in its URL."""
        url = urlsplit(self.url)
        return f"{self.method} {url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"


async def _chunks(content: bytes) -> AsyncIterator[bytes]:
    """A large body in pieces, since sending one at once would hold up the event loop."""
    for start in range(0, len(content), CHUNK_BYTES):
        yield content[start : start + CHUNK_BYTES]


class _TooLarge(Exception):
    pass


async def _by_httpx(client: "httpx.AsyncClient", sent: _Sent, max_bytes: int) -> HttpReply:
    import httpx

    timeout = httpx.Timeout(None, connect=CONNECT_S)
    asked = client.stream(
        sent.method, sent.url, content=sent.body, headers=sent.headers, timeout=timeout, follow_redirects=False
    )
    try:
        async with asked as response:
            stream = cast(AsyncIterable[bytes], response.stream)
            return _plain(response.status_code, response.headers, await _read(stream, max_bytes), max_bytes)
    except httpx.HTTPError as error:
        raise _failure(sent, error, isinstance(error, httpx.ConnectError)) from error


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
    """What a gzip or zlib body holds, for servers that compress although told not to."""
    decompressor = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    plain = decompressor.decompress(body, max_bytes + 1)
    if len(plain) > max_bytes:
        raise _TooLarge
    if not decompressor.eof:
        raise zlib.error("the compressed reply is cut short or not gzip")
    return plain


def _failure(sent: _Sent, error: Exception, never_connected: bool) -> ConnectionFailed:
    says = f"{sent.where()}: {str(error) or type(error).__name__}"
    if any(isinstance(each, ssl.SSLCertVerificationError) for each in _chain(error)):
        return Untrusted(says)
    return Unreachable(says) if never_connected else ConnectionFailed(says)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it came from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
