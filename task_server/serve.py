"""Runs a worker or a controller as a process: its socket, its signals, its end."""

import asyncio
import re
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn
from pydantic import Field, SecretStr, field_validator
from starlette.types import ASGIApp

from environments import loop
from environments.definition import NAME, TaskDefinition
from environments.http import http_client
from environments.listening import ConfigError, is_loopback, listen, url_of, uvicorn_config, when_stdin_ends
from environments.types import Value
from task_server.address import reached_by
from task_server.calls import Caller
from task_server.controller import Controller
from task_server.protocol import SETTLE_S, WORKER_LEASE_S
from task_server.service import TaskService
from task_server.worker import Worker

KEEP_ALIVE_S = 120
"""Longer than a model call, so that a session's turns share a connection."""
LAST_REPLIES_S = 5

OnReady = Callable[[str], None]


class ServeConfig(Value):
    """What workers and controllers have in common."""

    host: str = "127.0.0.1"
    port: int = Field(default=0, ge=0, le=65535)
    """0 chooses a free one."""
    token: SecretStr | None = None
    """Asked of every request, and sent to the controller and the workers; printable ASCII without spaces."""
    advertise: str = ""
    """Base URL under which others reach this process. If empty, the address it listens at; where that is all of them,
    a worker takes the one on the way to its controller, and others the machine's name."""
    stop_with_stdin: bool = False
    """End at once when standard input closes: whoever started this process is gone."""

    @field_validator("token")
    @classmethod
    def _fits_a_header(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None and not re.fullmatch(r"[!-~]+", token.get_secret_value()):
            raise ValueError("must be printable ASCII without spaces, and not empty")
        return token


class WorkerConfig(ServeConfig):
    """A worker process."""

    tasks: tuple[TaskDefinition, ...] = Field(min_length=1)
    controller: str = ""
    """Base URL of the controller to report to; empty for a lone worker."""
    name: str = Field(default="", pattern=NAME + "|^$")
    """Unique among the controller's workers; host name and port if empty."""
    grace_s: float = Field(default=30.0, ge=0)
    """After SIGTERM live sessions may go on for this long."""


class ControllerConfig(ServeConfig):
    """A controller process."""

    lease_s: float = Field(default=WORKER_LEASE_S, gt=0)
    """A worker silent for this long is taken for lost."""
    settle_s: float = Field(default=SETTLE_S, ge=0)
    """After the start, sessions are refused for this long, so that every worker has reported."""


def serve_worker(config: WorkerConfig, on_ready: OnReady = lambda url: None) -> None:
    """Serve until SIGTERM, SIGINT or the end of standard input. `on_ready` gets the base URL once it listens.

    Raises ConfigError, or FileError for a task that can't be built.
    """
    listener = _listen(config)
    url = _base_url(config, listener)
    name = config.name or f"{socket.gethostname()}-{listener.getsockname()[1]}"
    token = _token(config)

    async def run() -> None:
        async with http_client() as http:
            caller = Caller(http, token) if config.controller else None
            worker = Worker(name, url, config.tasks, controller=config.controller, caller=caller)
            await _serve(
                worker,
                worker.app(token),
                listener,
                grace_s=config.grace_s,
                stop_with_stdin=config.stop_with_stdin,
                on_ready=lambda: on_ready(url),
            )

    with listener:
        loop.run(run())


def serve_controller(config: ControllerConfig, on_ready: OnReady = lambda url: None) -> None:
    """Serve until SIGTERM, SIGINT or the end of standard input. `on_ready` gets the base URL once it listens.

    Raises ConfigError.
    """
    listener = _listen(config)
    url = _base_url(config, listener)
    token = _token(config)

    async def run() -> None:
        async with http_client() as http:
            controller = Controller(
                url,
                Caller(http, token),
                trusted=token is not None,
                lease_s=config.lease_s,
                settle_s=config.settle_s,
            )
            await _serve(
                controller,
                controller.app(token),
                listener,
                grace_s=0.0,
                stop_with_stdin=config.stop_with_stdin,
                on_ready=lambda: on_ready(url),
            )

    with listener:
        loop.run(run())


class _Server(uvicorn.Server):
    """uvicorn, but a signal first lets the service drain, and the process then exits with 0."""

    def __init__(self, config: uvicorn.Config, leave: Callable[[bool], None], on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._loop = asyncio.get_running_loop()
        self._leave = leave
        self._on_ready = on_ready
        self._signalled = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        at_once, self._signalled = self._signalled, True
        self._loop.call_soon_threadsafe(self._leave, at_once)


async def _serve(
    service: TaskService,
    app: ASGIApp,
    listener: socket.socket,
    *,
    grace_s: float,
    stop_with_stdin: bool,
    on_ready: Callable[[], None],
) -> None:
    leaving: set[asyncio.Task[None]] = set()

    async def drained(grace_s: float) -> None:
        await service.drain(grace_s)
        server.should_exit = True

    def leave(at_once: bool) -> None:
        leaving.add(asyncio.create_task(drained(0.0 if at_once else grace_s)))

    server = _Server(uvicorn_config(app, keep_alive_s=KEEP_ALIVE_S, last_replies_s=LAST_REPLIES_S), leave, on_ready)
    if stop_with_stdin:
        running = asyncio.get_running_loop()
        when_stdin_ends(lambda: running.call_soon_threadsafe(leave, True))
    with server.capture_signals():
        async with service.running():
            await server.serve(sockets=[listener])


def _listen(config: ServeConfig) -> socket.socket:
    if config.token is None and not is_loopback(config.host):
        raise ConfigError(f"host: {config.host} is open to other machines; set a token, or listen at 127.0.0.1")
    return listen(config.host, config.port)


def _base_url(config: ServeConfig, listener: socket.socket) -> str:
    if config.advertise:
        return config.advertise.rstrip("/")
    controller = config.controller if isinstance(config, WorkerConfig) else ""
    return url_of(reached_by(config.host, controller), listener)


def _token(config: ServeConfig) -> str | None:
    return config.token.get_secret_value() if config.token is not None else None
