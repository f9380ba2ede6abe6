"""Runs a worker or a controller as a process: socket, signals, shutdown."""

import socket
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import BeforeValidator, Field, InstanceOf, model_validator
from starlette.types import ASGIApp

from proctor import breakpoints, event_loop
from proctor.config.task import TaskDefinition
from proctor.config.tokens import AccessTokens
from proctor.config.wording import NAME
from proctor.http import is_loopback
from proctor.http.auth import NO_TOKENS, Access
from proctor.http.client import http_client
from proctor.http.server import ConfigError, listen, url_of
from proctor.http.serving import serve_until_signal, uvicorn_config
from proctor.http.tls import NO_TLS, ServerTls
from proctor.types import Value
from task_server.http.access import forms_at, worker_access
from task_server.http.transport import Caller
from task_server.wire.messages import SETTLE_S, WORKER_LEASE_S
from task_server.worker.advertise import ANYWHERE, address_towards, reached_by

if TYPE_CHECKING:
    from task_server.http.routes import Service

KEEP_ALIVE_S = 120
"""Longer than a model call, so that a session's turns share a connection."""
LAST_REPLIES_S = 5
"""On shutdown, requests under way get this long to be answered."""

OnReady = Callable[[str], None]
Given = Annotated[InstanceOf[AccessTokens], BeforeValidator(AccessTokens.given)]


class ServeConfig(Value):
    """The settings that workers and controllers share."""

    host: str = "127.0.0.1"
    port: int = Field(default=0, ge=0, le=65535)
    """0 chooses a free port."""
    token: Given = NO_TOKENS
    """The clients' tokens. A worker behind a controller is sent what `token_for` derives from them."""
    worker_token: Given = NO_TOKENS
    """The tokens that workers send to the controller, for heartbeats only; the clients' tokens if there are none."""
    metrics_token: Given = NO_TOKENS
    """Tokens for GET /metrics only."""
    tls: ServerTls = NO_TLS
    advertise: str = ""
    """Base URL under which others reach this process. If empty, the address it listens at; if it listens at all
    addresses, a worker announces the one that routes to its controller, and others announce the machine's name."""
    stop_with_stdin: bool = False
    """End at once when standard input closes: the process that started this one is gone."""


class WorkerConfig(ServeConfig):
    """The settings of a worker process."""

    tasks: tuple[TaskDefinition, ...] = Field(min_length=1)
    controller: str = ""
    """Base URL of the controller to report to; empty for a lone worker."""
    name: str = Field(default="", pattern=NAME + "|^$")
    """The worker's name, unique among the controller's workers; host name and port if empty."""
    grace_s: float = Field(default=30.0, ge=0)
    """Live sessions may go on for this long after SIGTERM."""

    @model_validator(mode="after")
    def _can_be_told_its_token(self) -> Self:
        if self.worker_token and not self.token and not self.controller:
            raise ValueError("worker_token: only a controller asks for it; give a lone worker `token`")
        return self

    def access(self, url: str) -> Access:
        """The tokens that this worker accepts. With a worker token alone, the controller sends the one for clients."""
        access = worker_access(url, self.token, self.metrics_token, lone=not self.controller)
        access.pending = not self.token and bool(self.worker_token)
        return access


class ControllerConfig(ServeConfig):
    """The settings of a controller process."""

    lease_s: float = Field(default=WORKER_LEASE_S, gt=0)
    """A worker that is silent for this long counts as lost."""
    settle_s: float = Field(default=SETTLE_S, ge=0)
    """No session is placed for this long after the start, so that every worker can report first."""
    allow_workers: tuple[IPv4Network | IPv6Network, ...] = ()
    """Address ranges that workers may announce, besides the address that their connection comes from."""

    @model_validator(mode="after")
    def _clients_have_a_token(self) -> Self:
        if not self.token and (self.worker_token or self.metrics_token):
            raise ValueError("token: clients need one too where workers or metrics have their own")
        return self

    def access(self) -> Access:
        """The tokens that this controller accepts."""
        only = {("POST", "/workers"): self.worker_token}
        return Access(self.token, metrics=self.metrics_token, only=only)


def serve_worker(config: WorkerConfig, on_ready: OnReady = lambda url: None) -> None:
    """Serve until SIGTERM, SIGINT or the end of standard input. `on_ready` gets the base URL once it listens.

    Raises ConfigError, or FileError for a task that can't be built.
    """
    from task_server.worker.worker import Worker

    listener = open_listener(config)
    url = base_url(config, listener)
    name = config.name or f"{socket.gethostname()}-{listener.getsockname()[1]}"

    async def run() -> None:
        async with http_client(tls=config.tls) as http:
            caller = Caller(http, config.worker_token or config.token, home=config.controller)
            access = config.access(url)
            first, found = url, config.controller and not config.advertise and config.host in ANYWHERE

            def locate() -> str:
                address = address_towards(config.controller, ANYWHERE[config.host])
                url = url_of(address, listener, config.tls.scheme)
                access.accept(forms_at(first, url, lone=not config.controller))
                return url

            worker = Worker(
                name,
                url,
                config.tasks,
                controller=config.controller,
                caller=caller if config.controller else None,
                access=access,
                locate=locate if found else None,
            )
            app = worker.app()
            with event_loop.watched(), breakpoints.stops():
                await run_service(
                    worker, app, listener, config, lambda: on_ready(url), access=access, grace_s=config.grace_s
                )

    with listener:
        event_loop.run(run())


def serve_controller(config: ControllerConfig, on_ready: OnReady = lambda url: None) -> None:
    """Serve until SIGTERM, SIGINT or the end of standard input. `on_ready` gets the base URL once it listens.

    Raises ConfigError.
    """
    from task_server.controller.admission import WorkerAddresses, loopback_only
    from task_server.controller.controller import Controller

    listener = open_listener(config)
    url = base_url(config, listener)

    async def run() -> None:
        addresses = WorkerAddresses(config.allow_workers)
        async with http_client(tls=config.tls, resolve=addresses.resolve) as http:
            access = config.access()
            controller = Controller(
                url,
                Caller(http, config.token),
                admit=addresses.admit if config.token else loopback_only,
                tokens=config.token,
                access=access,
                lease_s=config.lease_s,
                settle_s=config.settle_s,
            )
            await run_service(controller, controller.app(), listener, config, lambda: on_ready(url), access=access)

    with listener:
        event_loop.run(run())


async def run_service(
    service: "Service",
    app: ASGIApp,
    listener: socket.socket,
    config: ServeConfig,
    on_ready: Callable[[], None],
    *,
    access: Access,
    grace_s: float = 0.0,
    max_message_bytes: int | None = None,
) -> None:
    """Serve the app of a service until a signal or the end of standard input has drained the service.

    With `max_message_bytes` it takes WebSockets.
    """
    settings = uvicorn_config(
        app,
        keep_alive_s=KEEP_ALIVE_S,
        last_replies_s=LAST_REPLIES_S,
        tls=config.tls,
        knows=access.knows,
        max_message_bytes=max_message_bytes,
    )
    await serve_until_signal(
        settings,
        listener,
        on_ready,
        lambda at_once: service.drain(0.0 if at_once else grace_s),
        running=service.running(),
        stop_with_stdin=config.stop_with_stdin,
    )


def open_listener(config: ServeConfig) -> socket.socket:
    """The configured socket. Without a token it must be at a loopback address. Raises ConfigError."""
    if not (config.token or config.worker_token or is_loopback(config.host)):
        raise ConfigError(f"host: {config.host} is open to other machines; set a token, or listen at 127.0.0.1")
    return listen(config.host, config.port)


def base_url(config: ServeConfig, listener: socket.socket) -> str:
    """The URL under which others reach this process."""
    if config.advertise:
        return config.advertise.rstrip("/")
    controller = config.controller if isinstance(config, WorkerConfig) else ""
    return url_of(reached_by(config.host, controller), listener, config.tls.scheme)
