"""Serves a run's metrics over HTTP during the run: `GET /metrics`, and `GET /healthz` without a token."""

import contextlib
import socket
from collections.abc import Callable, Iterator

from fastapi import FastAPI, Response
from fastapi.responses import PlainTextResponse
from starlette.types import ASGIApp, Scope

from eval_client.monitor import metrics
from eval_client.run.context import RunContext
from eval_client.servers.metrics_address import metrics_access
from proctor.event_loop import beside
from proctor.http.auth import METRICS, Access, AccessGuard
from proctor.http.server import http_app, uvicorn_config
from proctor.http.serving import EmbeddedServer
from proctor.observability.metrics import EXPOSITION, ProcessMetrics, expose


@contextlib.contextmanager
def exposed(context: RunContext, socket_: socket.socket) -> Iterator[None]:
    """Serve the metrics of a run while inside. Needs a running loop."""
    process = ProcessMetrics("client")
    access = metrics_access()
    app = exposition(lambda: expose([*metrics.collect(context), *process.collect()]), access)
    server = EmbeddedServer(uvicorn_config(app, keep_alive_s=65, last_replies_s=1, knows=access.knows))
    with socket_, beside(server.serve(sockets=[socket_])), beside(process.watch()):
        yield


def exposition(text: Callable[[], str], access: Access) -> ASGIApp:
    """The app that serves the result of `text` at /metrics."""
    app = FastAPI(**http_app("Proctor client"))

    @app.get("/healthz", summary="The client runs", response_class=PlainTextResponse)
    async def health() -> Response:
        return _answer(200, "ok\n")

    @app.get(METRICS, summary="Metrics in the Prometheus text format", response_class=PlainTextResponse)
    async def metrics() -> Response:
        return _answer(200, text())

    return AccessGuard(app, access, _without_access)


def _without_access(_scope: Scope, status: int, cause: str) -> Response:
    if status == 401:
        return _answer(401, "send `Authorization: Bearer <token>`\n")
    return PlainTextResponse(f"{cause}, and these metrics ask for no token; set PROCTOR_TOKEN\n", 403)


def _answer(status: int, text: str) -> Response:
    return Response(text, status, media_type=EXPOSITION)
