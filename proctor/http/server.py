"""What our HTTP servers share: the listening socket, uvicorn's configuration, the end of the parent process."""

import ipaddress
import os
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from proctor.http.tls import NO_TLS, ServerTls

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

    from proctor.http.bounded_protocol import Knows

BACKLOG = 2048


class ConfigError(ValueError):
    """The process can't start with its configuration; the message names the option and the fix."""


def is_loopback(host: str | None) -> bool:
    """True where a host names this machine only."""
    if host == "localhost":
        return True
    try:
        return host is not None and ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 selects a free port. Raises ConfigError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise ConfigError(f"host, port: can't listen at {host}:{port}: {error}; choose others, or port 0") from error


def url_of(host: str, listener: socket.socket, scheme: str = "http") -> str:
    """The base URL of a listening socket, with this host name."""
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


def anyone(method: str, path: str, authorization: bytes) -> bool:
    """The `knows` of a server without a token: every request counts as one with a valid token."""
    return True


def uvicorn_config(
    app: "ASGIApp",
    *,
    keep_alive_s: int,
    last_replies_s: int,
    tls: ServerTls = NO_TLS,
    knows: "Knows" = anyone,
    max_message_bytes: int | None = None,
) -> "uvicorn.Config":
    """The configuration of our servers: httptools, no access log, no `server` and `date` headers.

    `knows` is true for a request with a valid token; connections without such a request are limited in number. With
    `max_message_bytes` the server takes WebSockets too, by the package websockets: a longer message ends its
    connection. Raises FileError for TLS files that can't be used.
    """
    import uvicorn

    from proctor.http.bounded_protocol import bounded_protocol

    return uvicorn.Config(
        app,
        http=bounded_protocol(knows, tls.server_context()),
        ws="none" if max_message_bytes is None else "websockets-sansio",
        ws_max_size=max_message_bytes or 0,
        ws_per_message_deflate=False,
        log_level=None if max_message_bytes is None else "warning",  # info has each WebSocket's path, with its token
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


def when_stdin_ends(end: Callable[[], object]) -> None:
    """Call `end` in a new thread when standard input closes, which means that the parent process has ended."""

    def wait() -> None:
        while os.read(0, 65536):
            pass
        end()

    threading.Thread(target=wait, daemon=True, name="stdin").start()
