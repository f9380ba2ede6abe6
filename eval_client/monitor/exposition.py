"""Serves a run's metrics over HTTP during the run: `GET /metrics`, and `GET /healthz` without a token."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from eval_client.monitor import metrics
from eval_client.run.context import RunContext
from eval_client.servers.metrics_address import metrics_access
from proctor.http.embedded_server import EmbeddedServer
from proctor.http.origin_guard import OriginGuard
from proctor.http.server import uvicorn_config
from proctor.observability.process import ProcessMetrics
from task_server.http.access import Access

TEXT = b"text/plain; version=0.0.4; charset=utf-8"


@contextlib.contextmanager
def exposed(context: RunContext, socket_: socket.socket) -> Iterator[None]:
    """Serve the metrics of a run while inside. Needs a running loop."""
    process = ProcessMetrics("client")
    access = metrics_access()
    app = exposition(lambda: metrics.expose(context) + process.expose(), access)
    server = EmbeddedServer(uvicorn_config(app, keep_alive_s=65, last_replies_s=1, knows=access.knows))
    serving = asyncio.create_task(server.serve(sockets=[socket_]))
    watching = asyncio.create_task(process.watch())
    try:
        yield
    finally:
        watching.cancel()
        serving.cancel()
        socket_.close()


def exposition(text: Callable[[], str], access: Access) -> ASGIApp:
    """The app that serves the result of `text` at /metrics."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        shown = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        if not access.admits(scope["method"], scope["path"], shown):
            await _answer(send, 401, "send `Authorization: Bearer <token>`\n")
        elif scope["path"] == "/healthz":
            await _answer(send, 200, "ok\n")
        elif scope["path"] == "/metrics":
            await _answer(send, 200, text())
        else:
            await _answer(send, 404, "there is only /metrics\n")

    return app if access.closed else OriginGuard(app, _page_refused)


def _page_refused(cause: str) -> ASGIApp:
    return PlainTextResponse(f"{cause}, and these metrics ask for no token; set PROCTOR_TOKEN\n", 403)


async def _answer(send: Send, status: int, text: str) -> None:
    body = text.encode()
    headers = [(b"content-type", TEXT), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
