"""uvicorn's HTTP protocol with bounds on what is read before a request is known to be allowed.

uvicorn's options bound neither the head of a request nor the time it takes to come, with the parser that we use.
An event loop's own TLS server tells nobody of a connection before its handshake is over, so ours are taken without TLS.
"""

import asyncio
import contextlib
import os
import resource
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES = 64 << 10
"""Up to the end of a request's headers; as much again between the parts of a body."""
HEAD_S = 10.0
"""From the connection, or from a later request's first byte, to the end of its headers. A TLS handshake has as long."""
MAX_STRANGERS = 256
"""Connections that have shown no token; of more, or of more than a quarter of the file descriptors, the oldest goes."""
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"

Knows = Callable[[str, str, bytes], bool]
"""(method, path, Authorization header) -> whether it shows a token for its route; always where the server has none."""


def bounded_protocol(knows: Knows, tls: ssl.SSLContext | None = None) -> type[asyncio.Protocol]:
    """The protocol class of one server; also has the process use all file descriptors that it may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    strangers = _Strangers(MAX_STRANGERS if hard == resource.RLIM_INFINITY else min(MAX_STRANGERS, hard // 4))
    settings = {"knows": staticmethod(knows), "strangers": strangers}
    bounded = type("BoundedProtocol", (_BoundedProtocol,), settings)
    if tls is None:
        return bounded
    return type("Handshake", (_Handshake,), {"strangers": strangers, "tls": tls, "http": bounded})


class _Stranger(asyncio.Protocol):
    def is_idle(self) -> bool:
        """Whether no answer is under way."""
        raise NotImplementedError

    def end(self) -> None:
        """Close the connection."""
        raise NotImplementedError


class _Strangers:
    """A server's connections that have shown no token, the oldest first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._all: dict[_Stranger, None] = {}

    def __contains__(self, one: _Stranger) -> bool:
        return one in self._all

    def add(self, one: _Stranger) -> None:
        """A new connection; of too many the one that has been idle longest is ended."""
        self._all[one] = None
        if len(self._all) > self._most:
            next((each for each in self._all if each.is_idle()), one).end()

    def discard(self, one: _Stranger) -> None:
        """It is known now, or gone."""
        self._all.pop(one, None)


class _Handshake(_Stranger):
    """A new connection of a TLS server, until its handshake is over."""

    strangers: _Strangers
    tls: ssl.SSLContext
    http: "type[_BoundedProtocol]"

    def __init__(self, **settings: Any) -> None:
        self._begin_http = partial(self.http, **settings)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        taken = cast(asyncio.Transport, transport)
        with contextlib.suppress(OSError):  # there are no more file descriptors
            self._connection = socket.socket(fileno=os.dup(taken.get_extra_info("socket").fileno()))
            self._connection.setblocking(False)
            self._shaking = asyncio.get_running_loop().create_task(self._shake_hands())
            self.strangers.add(self)
        taken.abort()  # its descriptor is closed, ours keeps the connection

    async def _shake_hands(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            with contextlib.suppress(OSError):  # it failed, or took too long
                await loop.connect_accepted_socket(
                    self._begin_http, self._connection, ssl=self.tls, ssl_handshake_timeout=HEAD_S
                )
        finally:
            self.strangers.discard(self)

    def is_idle(self) -> bool:
        return True

    def end(self) -> None:
        self.strangers.discard(self)
        with contextlib.suppress(OSError):  # it is closed already
            self._connection.shutdown(socket.SHUT_RDWR)


class _BoundedProtocol(HttpToolsProtocol, _Stranger):
    knows: Knows
    strangers: _Strangers

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._unproductive = 0
        """Bytes read since the end of the last head or the last piece of a body."""
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self._expect_head()
        self.strangers.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self.strangers.discard(self)
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
        if self in self.strangers:
            shown = next((value for name, value in self.headers if name == b"authorization"), b"")
            if self.knows(self.scope["method"], self.scope["path"], shown):
                self.strangers.discard(self)

    def on_body(self, body: bytes) -> None:
        self._unproductive = 0
        super().on_body(body)

    def is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def end(self) -> None:
        self.strangers.discard(self)
        self.transport.close()

    def _expect_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_S, self.end)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
