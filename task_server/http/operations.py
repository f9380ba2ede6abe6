"""The routes of task servers, as a table; what each does is the service's business."""

import re
from typing import Any

from proctor.types import Summary
from task_server.http.app import EmptyRequest, Operation, RequestContext
from task_server.http.service import PlacementService, TaskService
from task_server.wire.errors import (
    BadRequest,
    DigestDiffers,
    Forbidden,
    InWork,
    NoCapacity,
    NotReady,
    TurnConflict,
    UnknownSample,
    UnknownSession,
    UnknownTask,
    WorkerLost,
)
from task_server.wire.messages import (
    MAX_LARGE_BYTES,
    Health,
    Heartbeat,
    HeartbeatAck,
    LeasesRenewed,
    RenewLeases,
    SampleList,
    SamplesQuery,
    Started,
    StartSession,
    SummarizeRequest,
    TaskList,
    TasksQuery,
    TurnRequest,
    TurnResponse,
    WorkerList,
)

_SESSION = re.compile(r"[0-9a-f]{32}")


def _session(asked: RequestContext) -> str:
    if not _SESSION.fullmatch(asked.path["session"]):
        raise BadRequest("a session's id is 32 lower-case hex digits")
    return asked.path["session"]


async def _tasks(service: TaskService, asked: RequestContext, query: TasksQuery) -> TaskList:
    return await service.tasks(query)


async def _samples(service: TaskService, asked: RequestContext, query: SamplesQuery) -> SampleList:
    return await service.samples(asked.path["task"], query)


async def _start(service: TaskService, asked: RequestContext, request: StartSession) -> Started:
    return await service.start(request)


async def _turn(service: TaskService, asked: RequestContext, request: TurnRequest) -> TurnResponse:
    return await service.turn(_session(asked), request)


async def _end(service: TaskService, asked: RequestContext, query: EmptyRequest) -> None:
    await service.end(_session(asked))


async def _renew(service: TaskService, asked: RequestContext, request: RenewLeases) -> LeasesRenewed:
    return await service.renew(request)


async def _summarize(service: TaskService, asked: RequestContext, request: SummarizeRequest) -> Summary:
    return await service.summarize(asked.path["task"], request)


async def _healthz(service: TaskService, asked: RequestContext, query: EmptyRequest) -> Health:
    return service.alive()


async def _readyz(service: TaskService, asked: RequestContext, query: EmptyRequest) -> Health:
    service.check_ready()
    return service.alive()


async def _metrics(service: TaskService, asked: RequestContext, query: EmptyRequest) -> str:
    return service.metrics()


async def _heartbeat(service: PlacementService, asked: RequestContext, request: Heartbeat) -> HeartbeatAck:
    return await service.heartbeat(request, asked.peer)


async def _workers(service: PlacementService, asked: RequestContext, query: EmptyRequest) -> WorkerList:
    return await service.workers()


_LOST = (UnknownSession, WorkerLost)

OPERATIONS: tuple[Operation[TaskService, Any], ...] = (
    Operation("GET", "/tasks", "Tasks and what they can take now; can wait for a change", TasksQuery, TaskList, _tasks),
    Operation(
        "GET",
        "/tasks/{task}/samples",
        "The samples of a task, and a digest of what they come from",
        SamplesQuery,
        SampleList,
        _samples,
        (UnknownTask, NotReady),
    ),
    Operation(
        "POST",
        "/sessions",
        "Place and start a session; repeatable, the same id gives the same first step",
        StartSession,
        Started,
        _start,
        (UnknownTask, UnknownSample, TurnConflict, DigestDiffers, NoCapacity, NotReady, InWork, *_LOST),
        max_bytes=MAX_LARGE_BYTES,
    ),
    Operation(
        "POST",
        "/sessions/{session}/turns",
        "Answer a turn; repeatable, the same answer gives the same step",
        TurnRequest,
        TurnResponse,
        _turn,
        (TurnConflict, InWork, NotReady, *_LOST),
    ),
    Operation(
        "DELETE",
        "/sessions/{session}",
        "End a session and free what it holds; repeatable",
        EmptyRequest,
        None,
        _end,
        (NotReady,),
    ),
    Operation(
        "POST", "/leases", "Keep sessions alive; says which are lost", RenewLeases, LeasesRenewed, _renew, (NotReady,)
    ),
    Operation(
        "POST",
        "/tasks/{task}/summary",
        "The environment's own metrics over finishes",
        SummarizeRequest,
        Summary,
        _summarize,
        (UnknownTask, DigestDiffers, NotReady),
        max_bytes=MAX_LARGE_BYTES,
    ),
    Operation("GET", "/healthz", "Who listens here; needs no token", EmptyRequest, Health, _healthz),
    Operation(
        "GET", "/readyz", "Whether sessions can be started; needs no token", EmptyRequest, Health, _readyz, (NotReady,)
    ),
    Operation("GET", "/metrics", "Figures in the Prometheus text format", EmptyRequest, str, _metrics),
)

CONTROLLER_OPERATIONS: tuple[Operation[PlacementService, Any], ...] = (
    *OPERATIONS,
    Operation(
        "POST",
        "/workers",
        "A worker's heartbeat: all that the controller knows of it",
        Heartbeat,
        HeartbeatAck,
        _heartbeat,
        (TurnConflict, Forbidden),
    ),
    Operation(
        "GET", "/workers", "The live workers, where they are and their versions", EmptyRequest, WorkerList, _workers
    ),
)
