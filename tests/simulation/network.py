"""A network in virtual time: what is asked may be delayed, lost, doubled or overtaken, and so may every answer."""

import asyncio
import functools
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from starlette.types import ASGIApp, Message

from proctor.http.client import ConnectionFailed, HttpClient, HttpFailure, HttpReply, HttpRequest, Unreachable
from proctor.http.wreq_client import CONNECT_S
from tests.simulation.loop import NOBODY, Process, State, VirtualLoop, current


class Address(NamedTuple):
    """Whom a request asks, and for what."""

    host: str
    path: str
    query: bytes


class Request(NamedTuple):
    """What a process asks."""

    method: str
    url: Address
    headers: list[tuple[bytes, bytes]]
    content: bytes


class Reply(NamedTuple):
    """What a server answers."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


Server = Callable[[Request], Awaitable[Reply]]


class Weather(NamedTuple):
    """How the network treats one exchange, as chances and seconds."""

    latency_s: float = 0.02
    slow: float = 0.0
    """A message is held up, for up to `slow_s`."""
    slow_s: float = 0.0
    lost: float = 0.0
    """Of a request, and of an answer as well."""
    doubled: float = 0.0
    """A request arrives a second time, up to `slow_s` later."""


CALM = Weather()


class Exchange:
    """One request and its answer. Once it is settled, nothing else reaches who asked."""

    def __init__(self, asker: Process, answer: "asyncio.Future[Reply]") -> None:
        self.asker, self.answer = asker, answer

    def fail(self, error: Exception) -> None:
        """The connection breaks."""
        if not self.answer.done():
            self.answer.set_exception(error)

    def settle(self, reply: Reply) -> None:
        """The answer arrives."""
        if not self.answer.done():
            self.answer.set_result(reply)


class Network:
    """Who listens where, which directions are cut, and the weather."""

    def __init__(self, loop: VirtualLoop, rng: random.Random, trace: Callable[[str], None]) -> None:
        self._loop, self._rng, self._trace = loop, rng, trace
        self._servers: dict[str, tuple[Process, Server]] = {}
        self._open: dict[Exchange, Process] = {}
        self.weather = CALM
        self.cut: set[tuple[str, str]] = set()
        """(from, to), by the names of processes."""
        self.closed = False

    def listen(self, host: str, process: Process, server: Server) -> None:
        """From now on requests to a host go to this process."""
        self._servers[host] = (process, server)

    def reset(self, process: Process) -> None:
        """The process is gone: its connections break, its port is closed."""
        self._servers = {host: held for host, held in self._servers.items() if held[0] is not process}
        for exchange, server in list(self._open.items()):
            if server is process:
                self._later(exchange.fail, ConnectionFailed("the connection was reset"))

    async def ask(self, request: Request) -> Reply:
        """One request from the process that runs now. Raises HttpFailure; the caller holds the deadline."""
        if self.closed:
            raise Unreachable("the history is over")
        exchange = Exchange(current(), self._loop.create_future())
        host = request.url.host
        process, _ = self._servers.get(host, (None, None))
        self._trace(f"{exchange.asker.name} -> {host} {request.method} {request.url.path}")
        if process is None:
            refused = Unreachable("connection refused")
            refused.__cause__ = ConnectionRefusedError()
            self._later(exchange.fail, refused)
        elif self._cut(exchange.asker.name, process.name):
            if self._rng.random() < 0.5:  # a new connection; else one kept alive, which says nothing
                self._at(CONNECT_S, exchange.fail, ConnectionFailed("no answer to the connection"))
        else:
            self._send(exchange, process, request)
        try:
            return await exchange.answer
        finally:
            self._open.pop(exchange, None)

    def _send(self, exchange: Exchange, process: Process, request: Request) -> None:
        weather, draw = self.weather, self._rng.random
        self._open[exchange] = process
        if draw() < weather.lost:
            self._break(exchange)
        else:
            self._later(self._arrive, exchange, process, request, True)
        if draw() < weather.doubled:
            self._at(draw() * weather.slow_s, self._arrive, exchange, process, request, False)

    def _break(self, exchange: Exchange) -> None:
        """A message is lost: mostly the connection breaks at that, sometimes nothing is ever heard."""
        if self._rng.random() < 0.8:
            self._later(exchange.fail, ConnectionFailed("the connection broke"))

    def _arrive(self, exchange: Exchange, process: Process, request: Request, first: bool) -> None:
        host = request.url.host
        holder, server = self._servers.get(host, (None, None))
        if holder is not process or server is None or process.state is State.DEAD:
            return
        handling = self._serve(exchange, process, server, request, first)
        self._loop.create_task(handling, name=f"{request.method} {request.url.path}", context=process.context)

    async def _serve(self, exchange: Exchange, process: Process, server: Server, request: Request, first: bool) -> None:
        reply = await server(request)
        if not first or self.closed:
            return
        self._trace(f"{process.name} -> {exchange.asker.name} {reply.status} {request.url.path}")
        if self._cut(process.name, exchange.asker.name):
            return
        if self._rng.random() < self.weather.lost:
            self._break(exchange)
        else:
            self._later(exchange.settle, reply)

    def _cut(self, source: str, target: str) -> bool:
        return (source, target) in self.cut

    def _later(self, act: Callable[..., Any], *args: Any) -> None:
        """After the way there."""
        weather, draw = self.weather, self._rng.random
        delay_s = draw() * (weather.slow_s if draw() < weather.slow else weather.latency_s)
        self._at(delay_s, act, *args)

    def _at(self, delay_s: float, act: Callable[..., Any], *args: Any) -> None:
        """In nobody's process: what is under way arrives even when its sender is dead."""
        self._loop.call_later(delay_s, act, *args, context=NOBODY)


@functools.lru_cache(1024)
def _address(url: str) -> Address:
    parts = urlsplit(url)
    return Address(parts.hostname or "", unquote(parts.path), parts.query.encode())


@functools.lru_cache(1024)
def _header(name: str, value: str) -> tuple[bytes, bytes]:
    return name.lower().encode(), value.encode()


class Onlooker(Protocol):
    """Whoever is told what a process asks, and what it hears."""

    def asking(self, process: Process, request: Request) -> AbstractContextManager[None]:
        """A process asks, and while inside waits for the answer."""

    def received(self, process: Process, request: Request, reply: Reply) -> None:
        """A process holds a whole answer."""


class Client(HttpClient):
    """What our code sends its requests with."""

    def __init__(self, network: Network, onlooker: Onlooker) -> None:
        self._network, self._onlooker = network, onlooker

    async def exchange(self, request: HttpRequest, max_bytes: int, deadline_s: float) -> HttpReply:
        asked, process = _asked(request), current()
        try:
            with self._onlooker.asking(process, asked):
                async with asyncio.timeout(deadline_s):
                    reply = await self._network.ask(asked)
        except HttpFailure as error:
            raise type(error)(f"{request.where()}: {error}") from error
        self._onlooker.received(process, asked, reply)
        return HttpReply(reply.status, dict(reply.headers), reply.body)


def _asked(request: HttpRequest) -> Request:
    url, content = _address(request.url), request.body or b""
    headers = [_header("host", url.host), *(_header(*pair) for pair in request.headers.items())]
    if content:
        headers.append(_header("content-length", str(len(content))))
    return Request(request.method, url, headers, content)


def serving(app: ASGIApp) -> Server:
    """An ASGI app as a server."""

    async def serve(request: Request) -> Reply:
        said: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": request.content, "more_body": False}

        async def send(message: Message) -> None:
            said.append(message)

        await app(_scope(request), receive, send)
        headers = tuple((name.decode(), value.decode()) for name, value in said[0]["headers"])
        return Reply(said[0]["status"], said[1]["body"], headers)

    return serve


def _scope(request: Request) -> dict[str, Any]:
    return {
        "type": "http",
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.url.path,
        "root_path": "",
        "query_string": request.url.query,
        "headers": request.headers,
        "server": (request.url.host, 80),
        "client": ("simulated", 1),
    }
