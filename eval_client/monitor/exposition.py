"""Serves a run's metrics over HTTP while it is played: `GET /metrics`, and `GET /healthz` without a token."""

import asyncio
import contextlib
import os
import re
import socket
from collections.abc import Callable, Iterator

import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from environments.chat import secret
from environments.listening import ConfigError, is_loopback, listen, uvicorn_config
from environments.telemetry.process import ProcessFigures
from environments.web_pages import PageGuard
from eval_client.monitor import metrics
from eval_client.scene import Scene
from task_server.access import Access

VARIABLE = "PROCTOR_METRICS"
_WHERE = re.compile(r"(?:(?P<host>[^\s:\[\]]+|\[[0-9A-Fa-f:.]+\]):)?(?P<port>[0-9]{1,5})")
TEXT = b"text/plain; version=0.0.4; charset=utf-8"


def listener(where: str) -> socket.socket:
    """A socket at `[HOST:]PORT`, loopback without a host. Raises ConfigError, ValueError for a token of no use."""
    host, port = _parsed(where)
    if not (is_loopback(host) or _access().closed):
        raise ConfigError(f"--metrics: {host} is open to other machines; set PROCTOR_TOKEN, or listen at 127.0.0.1")
    return listen(host, port)


def of_shard(number: int) -> dict[str, str]:
    """The setting for the nth client of `--shards`, the first being 1: each listens one port further."""
    where = os.environ.get(VARIABLE)
    if not where:
        return {}
    host, port = _parsed(where)
    return {VARIABLE: f"{f'[{host}]' if ':' in host else host}:{port + number - 1 if port else 0}"}


@contextlib.contextmanager
def exposed(scene: Scene, socket_: socket.socket | None) -> Iterator[None]:
    """Serve the metrics of a run while inside. Needs a running loop; without a socket nothing is served."""
    if socket_ is None:
        yield
        return
    figures = ProcessFigures("client")
    app = exposition(lambda: metrics.text(scene) + figures.text(), _access())
    server = _Server(uvicorn_config(app, keep_alive_s=65, last_replies_s=1))
    serving = asyncio.create_task(server.serve(sockets=[socket_]))
    watching = asyncio.create_task(figures.watch())
    try:
        yield
    finally:
        watching.cancel()
        serving.cancel()
        socket_.close()


class _Server(uvicorn.Server):
    """uvicorn without hands on signals: they are the run's."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def exposition(text: Callable[[], str], access: Access) -> ASGIApp:
    """The app that serves this text at /metrics."""

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

    return app if access.closed else PageGuard(app, _page_refused)


def _page_refused(cause: str) -> ASGIApp:
    return PlainTextResponse(f"{cause}, and these metrics ask for no token; set PROCTOR_TOKEN\n", 403)


async def _answer(send: Send, status: int, text: str) -> None:
    body = text.encode()
    headers = [(b"content-type", TEXT), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _access() -> Access:
    """As of the servers: PROCTOR_TOKEN opens it, and PROCTOR_METRICS_TOKEN beside it."""
    token, metrics_token = secret("PROCTOR_TOKEN"), secret("PROCTOR_METRICS_TOKEN")
    shown = [each.get_secret_value() for each in (token, metrics_token) if each is not None]
    return Access(shown)


def _parsed(where: str) -> tuple[str, int]:
    found = _WHERE.fullmatch(where)
    if found is None or int(found["port"]) > 65535:
        raise ConfigError(f"--metrics: {where!r} is not [HOST:]PORT, such as 9464 or 0.0.0.0:9464")
    return (found["host"] or "127.0.0.1").strip("[]"), int(found["port"])
