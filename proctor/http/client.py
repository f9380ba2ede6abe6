"""HTTP requests with a total deadline and a limit on the reply's bytes.

wreq sends them, where it has no wheel httpx; it is imported with the first request.
"""

import asyncio
import functools
import ssl
import time
import zlib
from abc import abstractmethod
from collections import defaultdict
from collections.abc import AsyncIterable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import urlsplit

from pydantic_core import to_json

from proctor.config.secrets import Renewed
from proctor.config.wording import ENV_PROXY
from proctor.http.tls import NO_TLS, Tls, wreq_tls
from proctor.http.wreq_client import (
    CONNECT_S,
    KEEP_ALIVE_S,
    Address,
    Hosts,
    ReplyHeaders,
    Resolve,
    cause_of,
    host_of,
    reason_of,
    total_timeout,
    wreq_client,
    wreq_errors,
)
from proctor.observability.descriptors import SHORTAGE, lacks_descriptors

if TYPE_CHECKING:
    import httpx
    import wreq

VERIFY_FAILED = "certificate verify failed"


class Route(NamedTuple):
    """How a request leaves."""

    proxy: str | None = None
    """A proxy's URL, or ENV_PROXY for HTTPS_PROXY, HTTP_PROXY and NO_PROXY."""
    verify: bool = True
    """Whether the server's certificate is verified."""

    @property
    def leaves(self) -> tuple[bool, str | None]:
        """Whether variables name its proxy, and the URL where they don't."""
        return (True, None) if self.proxy == ENV_PROXY else (False, self.proxy)


DIRECT = Route()


class HttpReply(NamedTuple):
    """A complete reply; its body is decompressed and within the limit of its request."""

    status: int
    headers: Mapping[str, str]
    """By name; look-ups ignore case."""
    body: bytes


NO_ADDRESSES: frozenset[Address] = frozenset()


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


class HttpRequest(NamedTuple):
    """What a transport sends."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    route: Route

    def where(self) -> str:
        """Method and URL for messages, without user info and query, which may be secret."""
        url = urlsplit(self.url)
        return f"{self.method} {url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"


class HttpClient(AbstractAsyncContextManager["HttpClient"]):
    """Calls by one transport; close it with `async with`."""

    @abstractmethod
    async def exchange(self, request: HttpRequest, max_bytes: int, deadline_s: float) -> HttpReply:
        """The complete reply as it came. Raises HttpFailure, TimeoutError, and _TooLarge for a larger body."""

    async def __aexit__(self, *_: object) -> None:
        """Close all connections."""


class WreqClient(HttpClient):
    """By wreq, on one thread of its own: a third of aiohttp's CPU, and most of it beside the event loop.

    wreq keeps the deadline: `asyncio.timeout` would cost a sixth of what the request does.
    """

    def __init__(
        self,
        connect: Callable[[bool, Hosts, Route], "wreq.Client"],
        resolve: Resolve | None,
        tls: "Renewed[wreq.ClientConfig]",
    ) -> None:
        self._connect, self._resolve, self._tls = connect, resolve, tls
        self._pools: dict[tuple[bool, str, Route], tuple[frozenset[Address], wreq.Client]] = {}
        """Connections by (over TLS, host that `resolve` knows, how they leave), with the host's addresses."""

    async def __aexit__(self, *_: object) -> None:
        self._pools.clear()

    async def exchange(self, request: HttpRequest, max_bytes: int, deadline_s: float) -> HttpReply:
        import wreq

        pool, url = self._pool(request)
        method, total, begun = getattr(wreq.Method, request.method), total_timeout(deadline_s), time.monotonic()
        try:
            response = await pool.request(method, url, headers=request.headers, body=request.body, timeout=total)
            if response.content_length is not None and response.content_length <= max_bytes:
                body = bytes(await response.bytes())
            else:
                async with response.stream() as stream:  # what is left of a body that is too large is not read
                    body = await _read((chunk async for chunk in stream if isinstance(chunk, memoryview)), max_bytes)
            return HttpReply(response.status.as_int(), ReplyHeaders(response.headers), body)
        except wreq_errors() as error:
            if time.monotonic() - begun >= deadline_s:
                raise TimeoutError from None
            never = isinstance(error, wreq.ConnectionError | wreq.ProxyConnectionError)
            failure = _failure(request, reason_of(error), never_connected=never)
            if not (isinstance(failure, Untrusted) and self._tls.changed(at_once=True)):
                raise failure from cause_of(error)
        self._pools.clear()
        return await self.exchange(request, max_bytes, deadline_s)

    def _pool(self, request: HttpRequest) -> tuple["wreq.Client", str]:
        """The connections for a request, and the URL to request from them."""
        url, host, addresses = request.url, "", NO_ADDRESSES
        if self._tls.files and self._tls.changed():
            self._pools.clear()
        if self._resolve is not None:
            end = url.find("/", len("https://"))
            origin, path = (url, "") if end < 0 else (url[:end], url[end:])
            try:
                host, origin = host_of(origin)
                addresses = frozenset(self._resolve(host) if host else ())  # name servers give them in any order
            except OSError as error:
                raise _failure(request, str(error.strerror), never_connected=True) from error
            url = origin + path
        key = url[:6].lower() == "https:", host, request.route
        known = self._pools.get(key)
        if known is None or known[0] != addresses:
            hosts = {host: [*addresses]} if host else {}
            known = self._pools[key] = addresses, self._connect(key[0], hosts, request.route)
        return known[1], url


class HttpxClient(HttpClient):
    """By httpx, where wreq has no wheel; tests give one that reaches an app in their process."""

    def __init__(
        self,
        connect: "Callable[[Route], httpx.AsyncClient]",
        resolve: Resolve | None = None,
        tls: Renewed[ssl.SSLContext] | None = None,
    ) -> None:
        self._connect, self._resolve, self._tls = connect, resolve, tls
        self._idle: dict[tuple[Route, str], list[httpx.AsyncClient]] = defaultdict(list)
        """By how requests leave, and the name that `resolve` knows: TLS was for that one. Each has one connection:
        httpx's own pool looks at all of its connections for each request, forty times the CPU with 128 in flight."""
        self._made: list[httpx.AsyncClient] = []

    async def exchange(self, request: HttpRequest, max_bytes: int, deadline_s: float) -> HttpReply:
        if self._tls is not None and self._tls.changed():
            self._idle.clear()
        try:
            async with asyncio.timeout(deadline_s):
                if self._resolve is None:
                    return await self._sent(request, request.url, max_bytes)
                return await self._sent_to(self._resolve, request, max_bytes)
        except Untrusted:
            if self._tls is None or not self._tls.changed(at_once=True):
                raise
        self._idle.clear()
        return await self.exchange(request, max_bytes, deadline_s)

    async def _sent_to(self, resolve: Resolve, request: HttpRequest, max_bytes: int) -> HttpReply:
        """The reply of the first of a name's addresses where somebody listens; TLS is for the name."""
        url = urlsplit(request.url)
        try:
            name, _ = host_of(f"{url.scheme}://{url.netloc}")
            addresses = resolve(name) if name else ()
        except OSError as error:
            raise _failure(request, str(error.strerror), never_connected=True) from error
        for number, address in enumerate(addresses, 1):
            at = f"[{address}]" if address.version == 6 else str(address)
            there = url._replace(netloc=at if url.port is None else f"{at}:{url.port}").geturl()
            named = request._replace(headers={**request.headers, "Host": url.netloc})
            try:
                return await self._sent(named, there, max_bytes, name)
            except Unreachable as failure:
                if isinstance(failure, Untrusted) or number == len(addresses):
                    raise
        return await self._sent(request, request.url, max_bytes)

    async def _sent(self, request: HttpRequest, url: str, max_bytes: int, name: str = "") -> HttpReply:
        import httpx

        idle = self._idle[request.route, name]
        if idle:
            client = idle.pop()
        else:
            self._made.append(client := self._connect(request.route))
        asked = client.stream(
            request.method,
            url,
            content=request.body,
            headers=request.headers,
            timeout=httpx.Timeout(None, connect=CONNECT_S),
            extensions={"sni_hostname": name} if name else None,
        )
        try:
            async with asked as response:
                stream = cast(AsyncIterable[bytes], response.stream)
                return HttpReply(response.status_code, response.headers, await _read(stream, max_bytes))
        except httpx.HTTPError as error:
            never = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            failure = _failure(request, str(error) or type(error).__name__, never_connected=never)
            raise failure from _system_error(error) or error
        finally:
            client.cookies.clear()
            idle.append(client)

    async def __aexit__(self, *_: object) -> None:
        for client in self._made:
            await client.aclose()


def http_client(*, tls: Tls = NO_TLS, resolve: Resolve | None = None) -> HttpClient:
    """A client with a connection pool of its own; share it among all calls with these settings.

    Certificates are verified, redirects are not followed, cookies are not kept. `resolve` gives the addresses of names
    instead of the system, or raises OSError. Raises FileError for TLS files that can't be used; files that change are
    loaded again. Without TLS files, the public authorities are loaded with the first call over TLS.
    """
    if find_spec("wreq") is None:
        context = Renewed("TLS files", tls.files(), tls.context)

        def by_httpx(route: Route) -> "httpx.AsyncClient":
            import httpx

            by_env, via = route.leaves
            limits = httpx.Limits(keepalive_expiry=KEEP_ALIVE_S)
            verify = context.value if route.verify else False
            return httpx.AsyncClient(verify=verify, proxy=via, trust_env=by_env, limits=limits)

        return HttpxClient(by_httpx, resolve, context)
    loaded = Renewed("TLS files", tls.files(), functools.partial(wreq_tls, tls))

    def connect(secure: bool, hosts: Hosts, route: Route) -> "wreq.Client":
        chosen: wreq.ClientConfig = {}
        if secure or route.proxy:
            chosen |= loaded.value
        if not route.verify:
            chosen["tls_verify"] = False
        return wreq_client(chosen, hosts, *route.leaves)

    return WreqClient(connect, resolve, loaded)


async def bounded_request(
    client: HttpClient,
    method: str,
    url: str,
    *,
    json: object = None,
    content: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    deadline_s: float,
    max_bytes: int,
    route: Route = DIRECT,
) -> HttpReply:
    """Send a request and return the complete reply, whatever its status. Raises HttpFailure.

    `deadline_s` limits the whole exchange, `max_bytes` the reply's body, also once decompressed. `json` is anything
    that pydantic can serialise, models included; give it or `content`, not both. Where this process can open no
    connection, that is no failure: the request waits for one. Raises OutOfDescriptors after too long.
    """
    all_headers = {"Accept-Encoding": "identity", **(headers or {})}
    if json is not None:
        content = to_json(json)
        all_headers["Content-Type"] = "application/json"
    request = HttpRequest(method, url, all_headers, content, route)
    if not content and method != "GET":
        all_headers["Content-Length"] = "0"
    tries = 0
    while True:
        try:
            reply = await client.exchange(request, max_bytes, deadline_s)
            if tries:
                SHORTAGE.over()
            if reply.body[:1] == b"{" or reply.headers.get("content-encoding", "") in ("", "identity"):
                return reply  # nothing compressed begins like JSON
            return reply._replace(body=_decompress(reply.body, max_bytes))
        except ReplyTooLarge as error:
            raise ReplyTooLarge(f"{request.where()}: the reply is larger than {max_bytes} bytes") from error
        except zlib.error as error:
            raise ConnectionFailed(f"{request.where()}: {error}") from error
        except TimeoutError as error:
            raise DeadlineExceeded(f"{request.where()}: no whole reply within {deadline_s:g} s") from error
        except (HttpFailure, OSError) as error:
            if not lacks_descriptors(error):
                raise
            await SHORTAGE.wait(tries)
            tries += 1


def _system_error(error: BaseException | None) -> OSError | None:
    """The error of the system, or of TLS, that httpx's own stands for."""
    while error is not None:
        if isinstance(error, OSError) and error.errno is not None:
            return error
        inner = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else None
        error = inner or error.__cause__ or error.__context__
    return None


async def _read(stream: AsyncIterable[bytes | memoryview], max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in stream:
        body += chunk
        if len(body) > max_bytes:
            raise ReplyTooLarge
    return bytes(body)


def _decompress(body: bytes, max_bytes: int) -> bytes:
    """The contents of a gzip or zlib body, from a server that compresses although the request rules it out."""
    decompressor = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    plain = decompressor.decompress(body, max_bytes + 1)
    if len(plain) > max_bytes:
        raise ReplyTooLarge
    if not decompressor.eof:
        raise zlib.error("the compressed reply is cut short or not gzip")
    return plain


def _failure(request: HttpRequest, reason: str, *, never_connected: bool) -> ConnectionFailed:
    message = f"{request.where()}: {reason}"
    if never_connected and VERIFY_FAILED in reason:
        return Untrusted(message)
    return Unreachable(message) if never_connected else ConnectionFailed(message)
