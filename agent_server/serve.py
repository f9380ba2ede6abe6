"""Runs an agent server until it is told to stop."""

import asyncio
import socket
from collections.abc import Callable

import httpx
import uvicorn

from agent_server.app import build_app
from agent_server.build import build_agents
from agent_server.config import AgentServerConfig
from environments.http import http_client
from environments.yaml_file import FileError

GRACE_S = 30
KEEP_ALIVE_S = 65
"""Longer than our clients keep an idle connection, so that it is they who close it."""


def serve(config: AgentServerConfig, on_ready: Callable[[str], None] = lambda base_url: None) -> None:
    """Serve until SIGTERM or SIGINT; requests under way are then given 30 s, and the signal does the rest.

    `on_ready` gets the base URL (up to and with /v1) once requests are accepted. Raises FileError or ValueError where
    the configuration can't be served.
    """
    token, client = config.token(), http_client()
    app = build_app(build_agents(config, client), token, config.max_request_bytes)
    listener = _listen(config.host, config.port)
    server = _Server(
        uvicorn.Config(
            app,
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=GRACE_S,
        ),
        lambda: on_ready(_base_url(config.host, listener)),
    )
    with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
        runner.run(_run(server, client, listener))


async def _run(server: uvicorn.Server, client: httpx.AsyncClient, listener: socket.socket) -> None:
    async with client:
        await server.serve(sockets=[listener])


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise FileError(f"host, port: can't listen on {host}:{port}: {error}; choose others, or port 0") from error


def _base_url(host: str, listener: socket.socket) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}/v1"
