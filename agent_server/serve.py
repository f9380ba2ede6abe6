"""Runs an agent server until a signal stops it."""

import socket
from collections.abc import Callable

from agent_server.app import build_app
from agent_server.build import build_agents
from agent_server.config import AgentServerConfig
from proctor import event_loop
from proctor.http.client import AnyClient, http_client
from proctor.http.server import listen, url_of, uvicorn_config
from proctor.http.serving import HttpServer
from proctor.observability import tracing
from proctor.observability.process import ProcessMetrics

GRACE_S = 30
KEEP_ALIVE_S = 65
"""Longer than our clients keep an idle connection, so that the client closes it first."""


def serve(config: AgentServerConfig, on_ready: Callable[[str], None] = lambda base_url: None) -> None:
    """Serve until SIGTERM or SIGINT; requests in progress then have 30 s, after which the signal ends the process.

    `on_ready` gets the base URL (up to and including /v1) once requests are accepted. Raises ValueError where the
    configuration can't be served.
    """
    access, client, metrics = config.access(), http_client(tls=config.tls), ProcessMetrics("agent-server")
    app = build_app(build_agents(config, client), access, config.max_request_bytes, metrics)
    listener = listen(config.host, config.port)
    server = HttpServer(
        uvicorn_config(app, keep_alive_s=KEEP_ALIVE_S, last_replies_s=GRACE_S, tls=config.tls, knows=access.knows),
        lambda: on_ready(url_of(config.host, listener, config.tls.scheme) + "/v1"),
        at_end=tracing.close,
    )
    event_loop.run(_run(server, client, listener, metrics))


async def _run(server: HttpServer, client: AnyClient, listener: socket.socket, metrics: ProcessMetrics) -> None:
    with event_loop.beside(metrics.watch()):
        async with client:
            await server.serve(sockets=[listener])
