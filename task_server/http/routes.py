"""The operations that workers and controllers share, so that a client can use either, and the route of each."""

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Path, Query, Request, Response
from fastapi.responses import PlainTextResponse
from starlette.types import ASGIApp

from proctor.http.auth import Access
from proctor.observability.metrics import EXPOSITION
from proctor.types import Summary
from task_server.http.app import TaskApp, sender_of
from task_server.wire.errors import (
    DigestDiffers,
    Forbidden,
    InWork,
    NoCapacity,
    NotReady,
    SessionHeld,
    SessionTaken,
    TurnConflict,
    UnknownSample,
    UnknownSession,
    UnknownTask,
    WorkerLost,
)
from task_server.wire.messages import (
    NOBODY,
    Health,
    LeasesRenewed,
    RenewLeases,
    SampleList,
    SamplesQuery,
    Sender,
    SessionId,
    Started,
    StartSession,
    SummarizeRequest,
    TaskList,
    TasksQuery,
    TurnRequest,
    TurnResponse,
)
from task_server.wire.worker_messages import TAKES_ALL, Heartbeat, HeartbeatAck, RunList, WorkerList, WorkersQuery

TURNS = "/sessions/{session}/turns"
LOST = (UnknownSession, WorkerLost)
ELSEWHERE = (SessionHeld, SessionTaken)


TaskName = Annotated[str, Path(min_length=1)]


class Service(ABC):
    """What a process runs behind its app."""

    @abstractmethod
    def running(self) -> AbstractAsyncContextManager[None]:
        """Runs the service's background work; entered before the first request and left after the last."""

    @abstractmethod
    async def drain(self, grace_s: float) -> None:
        """Start no new sessions, let live ones go on for up to `grace_s`, then end them.

        May be called again before that, with a shorter grace.
        """


class TaskService(Service):
    """The operations behind the routes. Each raises ApiError when it fails."""

    @abstractmethod
    async def tasks(self, query: TasksQuery, sender: Sender = NOBODY) -> TaskList:
        """The tasks and their capacity, at once or at the next change; free slots are those for the sender."""

    @abstractmethod
    async def samples(self, task: str, query: SamplesQuery) -> SampleList:
        """The samples of a task."""

    @abstractmethod
    async def start(self, request: StartSession, sender: Sender = NOBODY) -> Started:
        """Start a session, or find the one that an equal request started; its current step."""

    @abstractmethod
    async def turn(self, session: str, request: TurnRequest, sender: Sender = NOBODY) -> TurnResponse:
        """Answer a turn; the next step."""

    @abstractmethod
    async def end(self, session: str, sender: Sender = NOBODY) -> None:
        """End a session and free its resources."""

    @abstractmethod
    async def runs(self) -> RunList:
        """Which runs hold and want sessions."""

    @abstractmethod
    async def renew(self, request: RenewLeases, sender: Sender = NOBODY) -> LeasesRenewed:
        """Renew the leases of sessions; without sessions it only says that the sender plays, or that it yields."""

    @abstractmethod
    async def summarize(self, task: str, request: SummarizeRequest) -> Summary:
        """The environment's own metrics over finishes."""

    @abstractmethod
    def alive(self) -> Health:
        """This server's role, URL and version."""

    def check_alive(self) -> None:
        """Raises NotReady where only a restart can help."""

    @abstractmethod
    def check_ready(self) -> None:
        """Raises NotReady while sessions can't be started."""

    @abstractmethod
    def metrics(self) -> str:
        """Metrics in the Prometheus text format."""


class PlacementService(TaskService):
    """A service that workers report to."""

    @abstractmethod
    async def heartbeat(self, heartbeat: Heartbeat, peer: str | None, takes_all: bool = False) -> HeartbeatAck:
        """Record a worker's heartbeat; `peer` is the address that it comes from.

        With `takes_all` the answer has every token that the worker is to accept.
        """

    @abstractmethod
    async def workers(self, query: WorkersQuery) -> WorkerList:
        """The live workers."""


def build_app(service: TaskService, title: str, access: Access) -> ASGIApp:
    """The app of a task service, a worker's or a controller's, with its OpenAPI document at /openapi.json."""
    app = TaskApp(title, access)
    _add_sessions(app, service)
    _add_tasks(app, service)
    _add_state(app, service)
    if isinstance(service, PlacementService):
        _add_workers(app, service)
    return app.guarded(urlsplit(service.alive().url).hostname)


def _add_tasks(app: TaskApp, service: TaskService) -> None:
    """Add the routes about tasks."""

    @app.operation("GET", "/tasks", "Tasks and their free slots; can wait for a change", response_model=TaskList)
    async def tasks(request: Request, query: Annotated[TasksQuery, Query()]) -> Response:
        listed = await service.tasks(query, sender_of(request))
        return Response(listed.body, media_type="application/json")

    @app.operation(
        "GET",
        "/tasks/{task}/samples",
        "The samples of a task, and the digest of its data, prompts and settings",
        UnknownTask,
        NotReady,
    )
    async def samples(task: TaskName, query: Annotated[SamplesQuery, Query()]) -> SampleList:
        return await service.samples(task, query)

    @app.operation(
        "POST",
        "/tasks/{task}/summary",
        "The environment's own metrics over finishes",
        UnknownTask,
        DigestDiffers,
        NotReady,
    )
    async def summarize(request: Request, task: TaskName, given: SummarizeRequest) -> Summary:
        return await service.summarize(task, given)


def _add_sessions(app: TaskApp, service: TaskService) -> None:
    """Add the routes about sessions, turns first: they are asked for most."""
    summary = "Answer a turn; repeatable, the same answer gives the same step"

    @app.operation("POST", TURNS, summary, TurnConflict, *ELSEWHERE, InWork, NotReady, *LOST)
    async def turn(request: Request, session: SessionId, answer: TurnRequest) -> TurnResponse:
        return await service.turn(session, answer, sender_of(request))

    summary = "Place and start a session; repeatable, the same id gives the same first step"
    never = (UnknownTask, UnknownSample, DigestDiffers, NoCapacity)

    @app.operation("POST", "/sessions", summary, *never, TurnConflict, *ELSEWHERE, NotReady, InWork, *LOST)
    async def start(request: Request, asked: StartSession) -> Started:
        return await service.start(asked, sender_of(request))

    summary = "End a session and free what it holds; repeatable, also for a session that never existed"

    @app.operation("DELETE", "/sessions/{session}", summary, *ELSEWHERE, NotReady, status_code=204)
    async def end(request: Request, session: SessionId) -> None:
        await service.end(session, sender_of(request))

    @app.operation("POST", "/leases", "Renew leases; returns the lost sessions", *ELSEWHERE, NotReady)
    async def renew(request: Request, asked: RenewLeases) -> LeasesRenewed:
        return await service.renew(asked, sender_of(request))


def _add_state(app: TaskApp, service: TaskService) -> None:
    """Add the routes about the server itself."""
    summary = "Role, URL and version; fails at an idle worker that its controller refuses for 60 s; needs no token"

    @app.operation("GET", "/healthz", summary, NotReady)
    async def healthz() -> Health:
        service.check_alive()
        return service.alive()

    summary = (
        "Whether sessions of every task can be started (a worker), or 4 s have passed (a controller); needs no token"
    )

    @app.operation("GET", "/readyz", summary, NotReady)
    async def readyz() -> Health:
        service.check_ready()
        return service.alive()

    @app.operation("GET", "/runs", "Which runs hold sessions, and want more")
    async def runs() -> RunList:
        return await service.runs()

    @app.operation("GET", "/metrics", "Metrics in the Prometheus text format", response_class=PlainTextResponse)
    async def metrics() -> PlainTextResponse:
        return PlainTextResponse(service.metrics(), media_type=EXPOSITION)


def _add_workers(app: TaskApp, service: PlacementService) -> None:
    """Add the routes about workers."""

    @app.operation(
        "POST", "/workers", "A worker's heartbeat: the controller's only source about it", TurnConflict, Forbidden
    )
    async def heartbeat(request: Request, heartbeat: Heartbeat) -> HeartbeatAck:
        peer = request.client.host if request.client else None
        return await service.heartbeat(heartbeat, peer, any(name in request.headers for name in TAKES_ALL))

    @app.operation("GET", "/workers", "The live workers, their URLs and versions")
    async def workers(query: Annotated[WorkersQuery, Query()]) -> WorkerList:
        return await service.workers(query)
