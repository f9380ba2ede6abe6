"""Runs the viewer's server until it is interrupted."""

import contextlib
import socket
from collections.abc import Callable

from eval_client.view.access import ViewAccess
from eval_client.view.app import build_app
from eval_client.view.runs import ViewedRuns
from proctor import event_loop
from proctor.config.tokens import AccessTokens
from proctor.http import is_loopback
from proctor.http.server import ConfigError, listen, url_of
from proctor.http.serving import serve_until_signal, uvicorn_config
from proctor.http.tls import ServerTls

TOKENS = ("PROCTOR_VIEW_TOKEN", "PROCTOR_TOKEN")
KEEP_ALIVE_S, LAST_REPLIES_S = 65, 1
PORT, PORTS = 7400, 20
"""The usual port, and how many from it on are tried."""


def serve(
    runs: ViewedRuns,
    host: str,
    port: int | None,
    tls: ServerTls,
    on_ready: Callable[[str], None],
    *,
    controller: str | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM. `on_ready` gets the address; a controller is asked with PROCTOR_TOKEN.

    Without a port the first free one from PORT on is taken. Raises ConfigError, FileError and ValueError where the
    options can't be used.
    """
    access = ViewAccess(*_tokens(host))
    app = build_app(runs, access, None if controller is None else (controller, AccessTokens.of(TOKENS[1])))
    config = uvicorn_config(app, keep_alive_s=KEEP_ALIVE_S, last_replies_s=LAST_REPLIES_S, tls=tls, knows=access.knows)
    with _listen(host, port) as listener:
        address = url_of(host, listener, tls.scheme)
        event_loop.run(serve_until_signal(config, listener, lambda: on_ready(address)))


def _tokens(host: str) -> tuple[AccessTokens, ...]:
    """The tokens that open the viewer; those of clients only where others can reach it. Raises ConfigError."""
    given = tuple(map(AccessTokens.of, TOKENS))
    if is_loopback(host):
        return given if given[0] else ()
    if not any(given):
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
