"""uvicorn's HTTP protocol with bounds on what is read before a request is known to be allowed.

uvicorn's options bound neither the head of a request nor the time it takes to come, with the parser that we use.
"""

import asyncio
import resource
from collections.abc import Callable
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES = 64 << 10
"""Up to the end of a request's headers; as much again between the parts of a body."""
HEAD_S = 10.0
"""From the connection, or from a later request's first byte, to the end of its headers."""
MAX_STRANGERS = 256
"""Connections that have shown no token; of more, or of more than a quarter of the file descriptors, the oldest goes."""
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"

Knows = Callable[[str, str, bytes], bool]
"""(method, path, Authorization header) -> whether it shows a token for its route; always where the server has none."""


def bounded_protocol(knows: Knows) -> type[asyncio.Protocol]:
    """The protocol class of one server; also has the process use all file descriptors that it may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    settings = {
        "knows": staticmethod(knows),
        "strangers": {},
        "max_strangers": MAX_STRANGERS if hard == resource.RLIM_INFINITY else min(MAX_STRANGERS, hard // 4),
    }
    return type("BoundedProtocol", (_BoundedProtocol,), settings)


class _BoundedProtocol(HttpToolsProtocol):
    knows: Knows
    strangers: dict["_BoundedProtocol", None]
    """Of the whole server, the oldest first."""
    max_strangers: int

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._unproductive = 0
        """Bytes read since the end of the last head or the last piece of a body."""
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self._expect_head()
        self.strangers[self] = None
        if len(self.strangers) > self.max_strangers:
            next((each for each in self.strangers if each._is_idle()), self)._end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self.strangers.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        while data and not self.transport.is_closing():
            room = MAX_HEAD_BYTES - self._unproductive
            if room <= 0:
                if self._is_idle():
                    self.transport.write(_TOO_LARGE)
                self._end()
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
                del self.strangers[self]

    def on_body(self, body: bytes) -> None:
        self._unproductive = 0
        super().on_body(body)

    def _is_idle(self) -> bool:
        """Whether no answer is under way."""
        return self.cycle is None or self.cycle.response_complete

    def _end(self) -> None:
        self.strangers.pop(self, None)
        self.transport.close()

    def _expect_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_S, self._end)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
