"""Configures uvicorn and runs it: as a process, until a signal, or beside other work on its event loop."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from proctor.http.bounded_protocol import Knows, bounded_protocol
from proctor.http.server import BACKLOG, when_stdin_ends
from proctor.http.tls import NO_TLS, ServerTls
from proctor.observability.descriptors import allow_descriptors


def uvicorn_config(
    app: ASGIApp,
    *,
    keep_alive_s: int,
    last_replies_s: int,
    tls: ServerTls = NO_TLS,
    knows: Knows = lambda method, path, authorization: True,
    max_message_bytes: int | None = None,
) -> uvicorn.Config:
    """The configuration of our servers: httptools, no access log, no `server` and `date` headers.

    `knows` is true for a request with a valid token; connections without such a request are limited in number. With
    `max_message_bytes` the server takes WebSockets too, by the package websockets: a longer message ends its
    connection. Raises FileError for TLS files that can't be used.
    """
    return uvicorn.Config(
        app,
        http=bounded_protocol(knows, tls.server_context()),
        ws="none" if max_message_bytes is None else "websockets-sansio",
        ws_max_size=max_message_bytes or 0,
        ws_per_message_deflate=False,
        log_level="error",  # warnings quote nobody but strangers, as often as they like; info has paths with tokens
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=keep_alive_s,
        timeout_graceful_shutdown=last_replies_s,
        backlog=BACKLOG,
    )


class HttpServer(uvicorn.Server):
    """Calls `on_ready` once it accepts connections, and `on_signal` at signals. Its limit of descriptors is raised."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], object], on_signal: Callable[[], object]) -> None:
        super().__init__(config)
        allow_descriptors()
        self._on_ready, self._on_signal = on_ready, on_signal

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._on_signal()


class EmbeddedServer(uvicorn.Server):
    """A server on an event loop that it does not own; the owner of the loop handles signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def embedded(config: uvicorn.Config, listener: socket.socket) -> AsyncIterator[None]:
    """Serve on the running event loop while inside; replies under way are sent before this returns."""
    server = EmbeddedServer(config)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield
    finally:
        server.should_exit = True
        await asyncio.gather(running, return_exceptions=True)


async def serve_until_signal(
    config: uvicorn.Config,
    listener: socket.socket,
    on_ready: Callable[[], object],
    drain: Callable[[bool], Awaitable[None]] | None = None,
    *,
    running: AbstractAsyncContextManager[None] | None = None,
    stop_with_stdin: bool = False,
) -> None:
    """Serve inside `running`, until a signal or the end of standard input; then `drain`, and return.

    `drain` is called again, with True, at each further signal: what is under way ends at once, without `drain` too.
    """
    loop = asyncio.get_running_loop()
    leaving: list[asyncio.Task[None]] = []

    async def drained(at_once: bool) -> None:
        if drain is not None:
            await drain(at_once)
        server.should_exit, server.force_exit = True, at_once and drain is None

    def leave(at_once: bool) -> None:
        leaving.append(loop.create_task(drained(at_once or bool(leaving))))

    server = HttpServer(config, on_ready, on_signal=lambda: loop.call_soon_threadsafe(leave, False))
    if stop_with_stdin:
        when_stdin_ends(lambda heard: (loop.call_soon_threadsafe(heard), loop.call_soon_threadsafe(leave, True)))
    with server.capture_signals():
        async with running or contextlib.nullcontext():
            await server.serve(sockets=[listener])
