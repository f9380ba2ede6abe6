"""uvicorn's HTTP protocol, with limits on what a client may send before its request is authorized.

With httptools, the parser that we use, no option of uvicorn limits the size of a request's head or the time until it is
complete. An event loop's own TLS server reports a connection only after its handshake, so our servers accept
connections without TLS and do the handshake here.
"""

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from proctor.event_loop import allow_descriptors
from proctor.http.auth import authorization

MAX_HEAD_BYTES = 64 << 10
"""Bytes up to the end of a request's headers; also the limit of bytes between the parts of a chunked body."""
HEAD_S = 10.0
"""Seconds from the connection, or a later request's first byte, to the end of the headers; also for a TLS handshake."""
MAX_UNAUTHORIZED = 256
"""Connections without a valid token, at most a quarter of all file descriptors; one more closes the oldest idle one."""
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"

Knows = Callable[[str, str, bytes], bool]
"""(method, path, Authorization header) -> whether the token is valid for the route; always true without a token."""


def bounded_protocol(knows: Knows, tls: ssl.SSLContext | None = None) -> type[asyncio.Protocol]:
    """The protocol class of one server; also raises the process's limit of file descriptors."""
    unauthorized = _Unauthorized(min(MAX_UNAUTHORIZED, allow_descriptors() // 4))
    settings = {"knows": staticmethod(knows), "unauthorized": unauthorized}
    bounded = type("BoundedProtocol", (_BoundedProtocol,), settings)
    if tls is None:
        return bounded
    return type("Handshake", (_Handshake,), {"unauthorized": unauthorized, "tls": tls, "http": bounded})


class _Connection(asyncio.Protocol):
    def is_idle(self) -> bool:
        """Whether no response is in progress."""
        raise NotImplementedError

    def end(self) -> None:
        """Close the connection."""
        raise NotImplementedError


class _Unauthorized:
    """A server's connections without a valid token, the oldest first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._all: dict[_Connection, None] = {}

    def __contains__(self, one: _Connection) -> bool:
        return one in self._all

    def add(self, one: _Connection) -> None:
        """Add a new connection; beyond the limit, end the oldest idle one, else the new one."""
        self._all[one] = None
        if len(self._all) > self._limit:
            next((each for each in self._all if each.is_idle()), one).end()

    def discard(self, one: _Connection) -> None:
        """Remove a connection that is authorized or closed."""
        self._all.pop(one, None)


class _Handshake(_Connection):
    """A new connection of a TLS server, until its handshake ends."""

    unauthorized: _Unauthorized
    tls: ssl.SSLContext
    http: "type[_BoundedProtocol]"

    def __init__(self, **settings: Any) -> None:
        self._begin_http = partial(self.http, **settings)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        accepted = cast(asyncio.Transport, transport)
        with contextlib.suppress(OSError):  # no file descriptor is left
            self._connection = socket.socket(fileno=os.dup(accepted.get_extra_info("socket").fileno()))
            self._connection.setblocking(False)
            self._handshaking = asyncio.get_running_loop().create_task(self._shake_hands())
            self.unauthorized.add(self)
        accepted.abort()  # closes this descriptor; our duplicate keeps the connection

    async def _shake_hands(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            with contextlib.suppress(OSError):  # the handshake failed or took too long
                await loop.connect_accepted_socket(
                    self._begin_http, self._connection, ssl=self.tls, ssl_handshake_timeout=HEAD_S
                )
        finally:
            self.unauthorized.discard(self)

    def is_idle(self) -> bool:
        return True

    def end(self) -> None:
        self.unauthorized.discard(self)
        with contextlib.suppress(OSError):  # already closed
            self._connection.shutdown(socket.SHUT_RDWR)


class _BoundedProtocol(HttpToolsProtocol, _Connection):
    knows: Knows
    unauthorized: _Unauthorized

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._unproductive = 0
        """Bytes read since the end of the last head or the last piece of a body."""
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self._expect_head()
        self.unauthorized.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self.unauthorized.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        while data and not self.transport.is_closing():
            room = MAX_HEAD_BYTES - self._unproductive
            if room <= 0:
                if self.is_idle():
                    self.transport.write(_TOO_LARGE)
                self.end()
                return
            part, data = data[:room], data[room:]
            self._unproductive += len(part)
            super().data_received(part)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._head_timer is None:
            self._expect_head()

    def on_headers_complete(self) -> None:
        self._unproductive = 0
        self._stop_timer()
        super().on_headers_complete()
        if "path" not in self.scope:  # a WebSocket's request, which has no cycle
            return
        if self in self.unauthorized and self.knows(
            self.scope["method"], self.scope["path"], authorization(self.headers)
        ):
            self.unauthorized.discard(self)

    def handle_websocket_upgrade(self) -> None:
        """Leave the connection to the WebSocket protocol: its app rejects what has no token at once."""
        self.unauthorized.discard(self)
        super().handle_websocket_upgrade()

    def on_body(self, body: bytes) -> None:
        self._unproductive = 0
        super().on_body(body)

    def is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def end(self) -> None:
        self.unauthorized.discard(self)
        self.transport.close()

    def _expect_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_S, self.end)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
