"""uvicorn's HTTP protocol, with limits on what a client may send before its request is authorized, or answered.

With httptools, the parser that we use, no option of uvicorn limits the size of a request's head, the time until it is
complete, or the requests that are parsed while another is answered. An event loop's own TLS server reports a connection
only after its handshake, so our servers accept connections without TLS and do the handshake here.
"""

import asyncio
import contextlib
import os
import socket
import ssl
import struct
from collections.abc import Callable
from functools import partial
from typing import Any, cast
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from proctor.config.secrets import Renewed
from proctor.http.server import authorization
from proctor.observability.descriptors import allow_descriptors

MAX_HEAD_BYTES = 64 << 10
"""Bytes up to the end of a request's headers; also the limit of bytes between the parts of a chunked body."""
HEAD_S = 10.0
"""Seconds from the connection, or a later request's first byte, to the end of the headers, and without a valid token to
that of the body; also for a TLS handshake."""
MAX_QUEUED = 16
"""Requests that may wait behind the one that is being answered; one more ends the connection."""
MAX_UNAUTHORIZED = 256
"""Connections without a valid token, at most a quarter of all file descriptors; one more ends the oldest of them."""
PIECE_BYTES = 4 << 10
"""What is parsed at once without a valid token: the parser can't be stopped at the end of a request."""
MAX_AHEAD_BYTES = 16 << 10
"""What a client without a valid token may send beyond the request that is being answered."""
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_NO_LINGER = struct.pack("ii", 1, 0)

Knows = Callable[[str, str, bytes], bool]
"""(method, path, Authorization header or else cookies) -> whether they open the route; always true without a token."""


def bounded_protocol(knows: Knows, tls: Renewed[ssl.SSLContext] | None = None) -> type[asyncio.Protocol]:
    """The protocol class of one server; `tls` is the context of its next connections."""
    unauthorized = _Unauthorized(min(MAX_UNAUTHORIZED, allow_descriptors(0) // 4))
    settings = {"knows": staticmethod(knows), "unauthorized": unauthorized}
    bounded = type("BoundedProtocol", (_BoundedProtocol,), settings)
    if tls is None:
        return bounded
    return type("Handshake", (_Handshake,), {"unauthorized": unauthorized, "tls": tls, "http": bounded})


class _Unauthorized(dict["_Handshake | _BoundedProtocol", None]):
    """A server's connections without a valid token, the oldest first."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def add(self, one: "_Handshake | _BoundedProtocol") -> None:
        """Add a new connection; beyond the limit, end the oldest, whatever it does."""
        self[one] = None
        if len(self) > self._limit:
            next(iter(self)).end()

    def discard(self, one: "_Handshake | _BoundedProtocol") -> None:
        """Remove a connection that is authorized or closed."""
        self.pop(one, None)


class _Handshake(asyncio.Protocol):
    """A new connection of a TLS server, until its handshake ends."""

    unauthorized: _Unauthorized
    tls: Renewed[ssl.SSLContext]
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
        self.tls.changed()
        try:
            with contextlib.suppress(OSError):  # the handshake failed or took too long
                await loop.connect_accepted_socket(
                    self._begin_http, self._connection, ssl=self.tls.value, ssl_handshake_timeout=HEAD_S
                )
        finally:
            self.unauthorized.discard(self)

    def end(self) -> None:
        """Close the connection at once."""
        self.unauthorized.discard(self)
        with contextlib.suppress(OSError):  # already closed
            self._connection.shutdown(socket.SHUT_RDWR)


class _BoundedProtocol(HttpToolsProtocol):
    knows: Knows
    unauthorized: _Unauthorized

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._unproductive = 0
        """Bytes parsed since the end of the last head or the last piece of a body."""
        self._ahead = b""
        """What came while an answer was owed; it is parsed after the answer, and nothing is read until then."""
        self._incomplete = True
        """Whether a request is awaited whose end, or that of its head, must come in time."""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self.transport.set_write_buffer_limits(1, 0)  # so that an answer that is not read is noticed
        self._set_timer()
        self.unauthorized.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._incomplete = False
        self._set_timer()
        self.unauthorized.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        room = MAX_HEAD_BYTES - self._unproductive
        if self._ahead or self in self.unauthorized or len(data) > room or self._owes_answer():
            self._ahead += data
            self._parse()
        else:  # as `_parse` would, with fewer steps
            self._unproductive += len(data)
            super().data_received(data)
            self._set_timer()

    def _parse(self) -> None:
        """Feed the parser piece by piece, until an answer is owed."""
        data, at = self._ahead, 0
        while at < len(data) and self._is_open() and not self._owes_answer():
            room = MAX_HEAD_BYTES - self._unproductive
            if room <= 0:
                self._refuse_size()
                return
            piece = data[at : at + (min(room, PIECE_BYTES) if self in self.unauthorized else room)]
            at += len(piece)
            self._unproductive += len(piece)
            super().data_received(piece)
        self._ahead = data[at:] if self._is_open() else b""
        if self._ahead:
            self._wait_for_answer()
        self._set_timer()

    def _refuse_size(self) -> None:
        if not self._is_idle():
            self.end()
        else:
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def _is_open(self) -> bool:
        """Whether HTTP goes on: the connection is neither closed nor a WebSocket's."""
        return self in self.connections and not self.transport.is_closing()

    def _owes_answer(self) -> bool:
        """Whether a request is whole, or queued behind another, and not answered."""
        cycle = self.cycle
        return bool(self.pipeline) or (cycle is not None and not cycle.more_body and not cycle.response_complete)

    def _wait_for_answer(self) -> None:
        if self in self.unauthorized and (len(self._ahead) > MAX_AHEAD_BYTES or self.flow.write_paused):
            self.end()
        self.flow.resume_reading()  # else an app that awaits the client's end resumes the transport
        self.transport.pause_reading()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._ahead:
            self.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self.transport.resume_reading()
        self._parse()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self in self.unauthorized and (self.pipeline or self._ahead):
            self.end()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._incomplete = True

    def on_headers_complete(self) -> None:
        self._unproductive = 0
        if len(self.pipeline) >= MAX_QUEUED:
            self.end()
        if self.transport.is_closing():
            return
        super().on_headers_complete()
        if "path" in self.scope:  # not in a WebSocket's request, which has no cycle
            self._authorize(self.scope["path"])
        self._incomplete = self in self.unauthorized

    def _authorize(self, path: str) -> None:
        if self in self.unauthorized:
            shown = authorization(self.headers) or dict(self.headers).get(b"cookie", b"")
            if self.knows(self.scope["method"], path, shown):
                self.unauthorized.discard(self)
                self.transport.set_write_buffer_limits()

    def handle_websocket_upgrade(self) -> None:
        """Leave the connection to the WebSocket protocol: its app rejects what has no token at once.

        One without a token is counted until others have pushed it out, since its end is not told here.
        """
        if not self._is_idle():
            self.end()
            return
        self._authorize(unquote(httptools.parse_url(self.url).path.decode("ascii")))
        super().handle_websocket_upgrade()

    def on_body(self, body: bytes) -> None:
        self._unproductive = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._incomplete = False

    def end(self) -> None:
        """Close the connection at once; what was not sent yet is lost."""
        self.unauthorized.discard(self)
        if self.cycle is not None:
            with contextlib.suppress(OSError):  # the kernel too keeps nothing for a client that does not read
                self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.transport.abort()

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _set_timer(self) -> None:
        """Time what the client has begun, unless it is we who read no further."""
        timed = self._incomplete and not self._ahead
        if timed and self._timer is None:
            self._timer = self.loop.call_later(HEAD_S, self.end)
        elif not timed and self._timer is not None:
            self._timer.cancel()
            self._timer = None
