"""Runs the viewer's server until it is interrupted."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable

import uvicorn
from pydantic import SecretStr

from eval_client.view.access import ViewAccess
from eval_client.view.app import build_app
from eval_client.view.events import EventStreams
from eval_client.view.runs import ViewedRuns
from proctor import event_loop
from proctor.config.secrets import secret
from proctor.http.embedded_server import EmbeddedServer
from proctor.http.server import ConfigError, is_loopback, listen, url_of, uvicorn_config
from proctor.http.tls import ServerTls

TOKENS = ("PROCTOR_VIEW_TOKEN", "PROCTOR_TOKEN")
KEEP_ALIVE_S, LAST_REPLIES_S = 65, 1
PORT, PORTS = 7400, 20
"""The usual port, and how many from it on are tried."""


def serve(runs: ViewedRuns, host: str, port: int | None, tls: ServerTls, on_ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM. `on_ready` gets the address.

    Without a port the first free one from PORT on is taken. Raises ConfigError, FileError and ValueError where the
    options can't be used.
    """
    access = ViewAccess(_tokens(host))
    streams = EventStreams()
    app = build_app(runs, access, streams)
    config = uvicorn_config(app, keep_alive_s=KEEP_ALIVE_S, last_replies_s=LAST_REPLIES_S, tls=tls, knows=access.knows)
    with _listen(host, port) as listener:
        event_loop.run(_run(config, streams, listener, lambda: on_ready(url_of(host, listener, tls.scheme))))


def _tokens(host: str) -> tuple[SecretStr, ...]:
    """The tokens that open the viewer; those of clients only where others can reach it. Raises ConfigError."""
    given = tuple(token for name in TOKENS if (token := secret(name)) is not None)
    if is_loopback(host):
        own = secret(TOKENS[0])
        return () if own is None else given
    if not given:
        raise ConfigError(
            f"--host {host}: others can reach it; set {TOKENS[0]} to a long random text, or bind 127.0.0.1"
        )
    return given


def _listen(host: str, port: int | None) -> socket.socket:
    """A listening socket. Raises ConfigError."""
    if port is not None:
        return listen(host, port)
    for each in range(PORT, PORT + PORTS):
        with contextlib.suppress(ConfigError):
            return listen(host, each)
    raise ConfigError(f"--port: {PORT} to {PORT + PORTS - 1} are taken at {host}, or it is no address of this machine")


class _Server(EmbeddedServer):
    """Tells when it accepts connections, and ends the streams before it waits for answers to be complete."""

    def __init__(self, config: uvicorn.Config, streams: EventStreams, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._streams, self._on_started = streams, on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._streams.close()
        await super().shutdown(sockets)


async def _run(
    config: uvicorn.Config, streams: EventStreams, listener: socket.socket, on_started: Callable[[], None]
) -> None:
    """Serve until SIGINT or SIGTERM, which end the process without an error."""
    server = _Server(config, streams, on_started)
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, server.handle_exit, each, None)
    await server.serve(sockets=[listener])
