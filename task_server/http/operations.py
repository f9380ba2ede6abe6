"""The routes of task servers, as a table; what each does is the service's business."""

import re
from typing import Any

from proctor.types import Summary
from task_server.http.app import Asked, Nothing, Operation
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
    Alive,
    Heartbeat,
    HeartbeatTaken,
    LeasesRenewed,
    RenewLeases,
    SampleList,
    SamplesQuery,
    Started,
    StartSession,
    SummarizeRequest,
    TaskList,
    TasksQuery,
    Turned,
    TurnRequest,
    WorkerList,
)

_SESSION = re.compile(r"[0-9a-f]{32}")


def _session(asked: Asked) -> str:
    if not _SESSION.fullmatch(asked.path["session"]):
        raise BadRequest("a session's id is 32 lower-case hex digits")
    return asked.path["session"]


async def _tasks(service: TaskService, asked: Asked, query: TasksQuery) -> TaskList:
    return await service.tasks(query)


async def _samples(service: TaskService, asked: Asked, query: SamplesQuery) -> SampleList:
    return await service.samples(asked.path["task"], query)


async def _start(service: TaskService, asked: Asked, request: StartSession) -> Started:
    return await service.start(request)


async def _turn(service: TaskService, asked: Asked, request: TurnRequest) -> Turned:
    return await service.turn(_session(asked), request)


async def _end(service: TaskService, asked: Asked, query: Nothing) -> None:
    await service.end(_session(asked))


async def _renew(service: TaskService, asked: Asked, request: RenewLeases) -> LeasesRenewed:
    return await service.renew(request)


async def _summarize(service: TaskService, asked: Asked, request: SummarizeRequest) -> Summary:
    return await service.summarize(asked.path["task"], request)


async def _healthz(service: TaskService, asked: Asked, query: Nothing) -> Alive:
    return service.alive()


async def _readyz(service: TaskService, asked: Asked, query: Nothing) -> Alive:
    service.check_ready()
    return service.alive()


async def _metrics(service: TaskService, asked: Asked, query: Nothing) -> str:
    return service.metrics()


async def _heartbeat(service: PlacementService, asked: Asked, request: Heartbeat) -> HeartbeatTaken:
    return await service.heartbeat(request, asked.peer)


async def _workers(service: PlacementService, asked: Asked, query: Nothing) -> WorkerList:
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
        Turned,
        _turn,
        (TurnConflict, InWork, NotReady, *_LOST),
    ),
    Operation(
        "DELETE",
        "/sessions/{session}",
        "End a session and free what it holds; repeatable",
        Nothing,
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
    Operation("GET", "/healthz", "Who listens here; needs no token", Nothing, Alive, _healthz),
    Operation(
        "GET", "/readyz", "Whether sessions can be started; needs no token", Nothing, Alive, _readyz, (NotReady,)
    ),
    Operation("GET", "/metrics", "Figures in the Prometheus text format", Nothing, str, _metrics),
)

CONTROLLER_OPERATIONS: tuple[Operation[PlacementService, Any], ...] = (
    *OPERATIONS,
    Operation(
        "POST",
        "/workers",
        "A worker's heartbeat: all that the controller knows of it",
        Heartbeat,
        HeartbeatTaken,
        _heartbeat,
        (TurnConflict, Forbidden),
    ),
    Operation("GET", "/workers", "The live workers, where they are and their versions", Nothing, WorkerList, _workers),
)
