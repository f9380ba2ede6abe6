"""Runs a gateway as a process: foreign wires on one side, the task wire on the other."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Self
from urllib.parse import urlsplit

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import Field, model_validator
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from proctor import event_loop
from proctor.config.task import TaskDefinition
from proctor.config.tokens import AccessTokens
from proctor.http.auth import NO_TOKENS, Access, AccessGuard, bearer
from proctor.http.client import HttpClient, http_client
from proctor.http.server import add_route, http_app, listen, url_of
from proctor.http.serving import embedded, uvicorn_config
from proctor.observability.metrics import EXPOSITION, ProcessMetrics, expose, gauge
from proctor_bridges.gateway.gateway import Gateway
from proctor_bridges.gateway.wires import ForeignWire, wires
from task_server.client.client import TaskClient
from task_server.http.access import worker_access
from task_server.http.routes import Service
from task_server.serve import (
    KEEP_ALIVE_S,
    Given,
    OnReady,
    ServeConfig,
    base_url,
    open_listener,
    run_service,
)
from task_server.wire.errors import TaskServerError
from task_server.wire.messages import LONG_POLL_S, STARTING

START_S = 60.0
"""Tasks of its own may take this long to start before the server says its address."""


class GatewayConfig(ServeConfig):
    """The settings of a gateway process."""

    wires: tuple[str, ...] = Field(min_length=1)
    """Names of foreign wires."""
    controller: str = ""
    """Base URL of the controller, or of a lone worker, that has the tasks."""
    controller_token: Given = NO_TOKENS
    """The tokens that are sent to it; `token` if there are none."""
    tasks: tuple[TaskDefinition, ...] = ()
    """The tasks of a worker in this process, instead of a controller."""
    grace_s: float = Field(default=30.0, ge=0)
    """Live sessions may go on for this long after SIGTERM."""

    @model_validator(mode="after")
    def _has_wires_and_tasks(self) -> Self:
        if unknown := [name for name in self.wires if name not in wires()]:
            raise ValueError(f"wires: {unknown[0]!r} is none of {', '.join(wires())}")
        if bool(self.controller) == bool(self.tasks):
            raise ValueError("give a controller that has the tasks, or a task file, and not both")
        return self


class GatewayAccess(Access):
    """The tokens of a gateway; without one it is open to every process that reaches it.

    A path `/t/TOKEN/rest` is `/rest` with the token.
    """

    def __init__(self, tokens: AccessTokens) -> None:
        super().__init__(tokens)

    def knows(self, method: str, path: str, authorization: bytes) -> bool:
        """Whether a request has a token; True if none is needed."""
        return super().knows(method, path, authorization) or self._rest(path) is not None

    def _rest(self, path: str) -> str | None:
        """What follows a valid token at the beginning of a path."""
        token, slash, rest = path.removeprefix("/t/").partition("/")
        valid = path.startswith("/t/") and slash and self._clients.find(bearer(token)) is not None
        return f"/{rest}" if valid else None

    def guard(self, app: ASGIApp, announced: str | None) -> ASGIApp:
        """The app behind this access, without the token in its paths. `announced` is the host name that clients use."""

        async def without_token(scope: Scope, receive: Receive, send: Send) -> None:
            if self.closed and (rest := self._rest(scope["path"])) is not None:
                scope = {**scope, "path": rest, "raw_path": rest.encode()}
            await app(scope, receive, send)

        return AccessGuard(without_token, self, _refused, announced)


class WireServer(Service):
    """The wires of a process, each with the gateway of its sessions."""

    def __init__(self, wires: Sequence[ForeignWire], client: TaskClient) -> None:
        self._gateways = {wire.prefix: Gateway(client, wire.idle_s) for wire in wires}
        self._wires = wires
        self._process = ProcessMetrics("gateway")

    def app(self, access: GatewayAccess, url: str) -> ASGIApp:
        """The app with the routes of all wires."""
        app = FastAPI(**http_app("Proctor gateway"), exception_handlers={HTTPException: _no_route})
        for path in ("/healthz", "/readyz"):
            add_route(app.router, "GET", path, _health)
        add_route(app.router, "GET", "/metrics", self._metrics)
        for wire in self._wires:
            routes = APIRouter(prefix=wire.prefix)
            wire.add_routes(routes, self._gateways[wire.prefix])
            app.include_router(routes)
        return access.guard(app, urlsplit(url).hostname)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for gateway in self._gateways.values():
                await stack.enter_async_context(gateway.running())
            stack.enter_context(event_loop.beside(self._process.watch()))
            yield

    async def drain(self, grace_s: float) -> None:
        await asyncio.gather(*(gateway.drain(grace_s) for gateway in self._gateways.values()))

    async def _metrics(self, _: Request) -> Response:
        """Metrics for Prometheus."""
        live = {(prefix,): float(len(list(gateway.sessions()))) for prefix, gateway in self._gateways.items()}
        sessions = gauge("proctor_foreign_sessions_live", "Sessions of foreign clients under way.", ("wire",), live)
        return PlainTextResponse(expose([sessions, *self._process.collect()]), media_type=EXPOSITION)


def serve_gateway(config: GatewayConfig, on_ready: OnReady = lambda url: None) -> None:
    """Serve until SIGTERM, SIGINT or the end of standard input.

    `on_ready` gets the base URL once it listens and the tasks that it serves itself have started, or failed to.

    Raises ConfigError, or FileError for a task that can't be built.
    """
    known = wires()
    served = [known[name] for name in config.wires]
    max_message_bytes = max((wire.max_message_bytes or 0 for wire in served), default=0) or None
    listener = open_listener(config)
    url = base_url(config, listener)
    access = GatewayAccess(config.token)

    async def run() -> None:
        async with http_client(tls=config.tls) as http, _task_client(config, http) as client:
            service, listens = WireServer(served, client), asyncio.Event()

            async def say_address() -> None:
                await listens.wait()
                if not config.controller:
                    await tasks_tried(client)
                on_ready(url)

            with event_loop.beside(say_address()):
                await run_service(
                    service,
                    service.app(access, url),
                    listener,
                    config,
                    listens.set,
                    access=access,
                    grace_s=config.grace_s,
                    max_message_bytes=max_message_bytes,
                )

    with listener:
        event_loop.run(run())


async def tasks_tried(client: TaskClient) -> None:
    """Come back once each task has started, or has failed to, at the latest after START_S.

    A client that comes before is told that there is no such task.
    """
    with suppress(TimeoutError, TaskServerError):
        async with asyncio.timeout(START_S):
            listed = await client.tasks()
            while any(task.waiting == STARTING for task in listed.tasks):
                listed = await client.tasks(after=listed.version, wait_s=LONG_POLL_S)


@asynccontextmanager
async def _task_client(config: GatewayConfig, http: HttpClient) -> AsyncIterator[TaskClient]:
    if config.controller:
        yield TaskClient(config.controller, http, config.controller_token or config.token)
    else:
        async with own_worker(config.tasks) as (url, token):
            yield TaskClient(url, http, token)


@asynccontextmanager
async def own_worker(tasks: Sequence[TaskDefinition]) -> AsyncIterator[tuple[str, str]]:
    """Serve tasks by a worker on this event loop, at loopback; yields its (URL, token)."""
    from task_server.worker.worker import Worker

    token = secrets.token_hex(16)
    listener = listen("127.0.0.1", 0)
    url = url_of("127.0.0.1", listener)
    access = worker_access(url, AccessTokens(token))
    worker = Worker("gateway", url, tasks, access=access)
    settings = uvicorn_config(worker.app(), keep_alive_s=KEEP_ALIVE_S, last_replies_s=1, knows=access.knows)
    async with worker.running(), embedded(settings, listener):
        yield url, token


async def _health(_: Request) -> Response:
    """Whether the gateway runs."""
    return JSONResponse({"status": "ok"})


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = f"{request.method} {request.url.path}: {error.detail}"
    return JSONResponse({"detail": text}, error.status_code, error.headers)


def _refused(_scope: Scope, status: int, cause: str) -> Response:
    if status == 403:
        text = f"{cause}, and this server has no token; set PROCTOR_TOKEN"
    else:
        text = "send `Authorization: Bearer TOKEN`, or begin the path with /t/TOKEN"
    return JSONResponse({"detail": text}, status)
