"""The routes of task servers. Each endpoint calls one method of the service."""

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Path, Query, Request, Response
from fastapi.responses import PlainTextResponse
from starlette.types import ASGIApp

from proctor.http.auth import Access
from proctor.observability.metrics import EXPOSITION
from proctor.types import Summary
from task_server.http.app import TaskApp, sender_of
from task_server.http.service import PlacementService, TaskService
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
    Health,
    LeasesRenewed,
    RenewLeases,
    SampleList,
    SamplesQuery,
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
