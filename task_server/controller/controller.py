"""The controller: one address for many workers. It places sessions on them and relays requests.

Its knowledge of workers comes from their heartbeats alone.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

from pydantic import BaseModel
from starlette.types import ASGIApp

from proctor.http.auth import Access
from proctor.observability.metrics import expose, gauge
from proctor.observability.process import ProcessMetrics
from proctor.types import Summary
from task_server.controller.admission import Admit, loopback_only
from task_server.controller.placement import Placement, WorkerRef
from task_server.controller.publication import Publication
from task_server.demand_tracker import DemandTracker
from task_server.http.access import token_for
from task_server.http.app import build_app
from task_server.http.openapi import document
from task_server.http.operations import CONTROLLER_OPERATIONS
from task_server.http.service import PlacementService
from task_server.http.transport import Caller, Done
from task_server.metrics import PlacementMetrics, task_gauges, worker_gauges
from task_server.wire.errors import (
    ApiError,
    BadReply,
    DigestDiffers,
    InWork,
    NoCapacity,
    NotReady,
    ServerUnreachable,
    TaskServerError,
    TurnConflict,
    UnknownSession,
    WorkerLost,
)
from task_server.wire.messages import (
    SETTLE_S,
    STEP_WAIT_S,
    VERSION,
    WORKER_LEASE_S,
    Health,
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
)
from task_server.wire.worker_messages import Heartbeat, HeartbeatAck, WorkerList

log = logging.getLogger(__name__)

TICK_S = 0.5
RELAY_S = STEP_WAIT_S + 5.0
"""Deadline of a relayed request; a worker that takes longer hangs."""

SUMMARY_S = 290.0

Answer = TypeVar("Answer", bound=BaseModel)


class Controller(PlacementService):
    """The service of a controller. `admit` decides which worker addresses are allowed; `token` is that of clients."""

    def __init__(
        self,
        url: str,
        caller: Caller,
        *,
        admit: Admit = loopback_only,
        token: str | None = None,
        access: Access | None = None,
        lease_s: float = WORKER_LEASE_S,
        settle_s: float = SETTLE_S,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._caller = caller
        self._admit = admit
        self._token = token
        self._access = access or Access()
        self._lease_s = lease_s
        self._now = now
        self._settled_at = now() + settle_s
        self._placement = Placement(lease_s)
        self._publication = Publication(self._placement, now)
        self._draining = False
        self._demand = DemandTracker()
        self._process = ProcessMetrics("controller", now)
        self._metrics = PlacementMetrics()

    def app(self) -> ASGIApp:
        """The HTTP app of this controller."""
        described = partial(document, "Proctor controller", CONTROLLER_OPERATIONS, self._access.closed)
        return build_app(self, CONTROLLER_OPERATIONS, self._access, described)

    async def heartbeat(self, heartbeat: Heartbeat, peer: str | None) -> HeartbeatAck:
        verified = await self._admit(heartbeat.url, peer)
        elsewhere = self._placement.heartbeat(heartbeat, self._now())
        self._publication.changed()
        access = token_for(self._token, heartbeat.url) if self._token is not None and verified else None
        return HeartbeatAck(lease_s=self._lease_s, elsewhere=elsewhere, access=access)

    async def workers(self) -> WorkerList:
        return WorkerList.of(self._placement.workers())

    async def tasks(self, query: TasksQuery) -> TaskList:
        self._demand.record(query, self._now())
        return await self._publication.answer(query)

    async def samples(self, task: str, query: SamplesQuery) -> SampleList:
        ref = self._any_holding(task, query.digest)
        wanted = [f"{name}=true" for name in ("clusters", "categories") if getattr(query, name)]
        path = f"tasks/{task}/samples{'?' if wanted else ''}{'&'.join(wanted)}"
        return await self._ask_any(self._ask(ref, "GET", path, SampleList))

    async def start(self, request: StartSession) -> Started:
        self.check_ready()
        body = await asyncio.to_thread(request.model_dump_json) if request.replies else request.model_dump_json()
        refused: set[str] = set()
        while True:
            ref = self._placement.place(request.session, request.task, self._now(), refused, request.digest)
            self._publication.changed()
            try:
                started = await self._caller.call("POST", f"{ref.url}/sessions", Started, body, deadline_s=RELAY_S)
            except (InWork, TurnConflict):  # the session lives at this worker
                raise
            except ApiError as refusal:
                self._placement.refused(request.session, ref.worker)
                self._publication.changed()
                if not isinstance(refusal, (NoCapacity, NotReady, DigestDiffers)):
                    raise
            except (ServerUnreachable, BadReply) as error:
                if not (isinstance(error, ServerUnreachable) and error.never_sent):  # the worker may have started it
                    raise _no_answer(ref, error) from error
                self._placement.refused(request.session, ref.worker)
                self._publication.changed()
                if _refuses_connections(error):
                    self._forget(ref)
            else:
                self._metrics.placed(request.task).inc()
                return started.model_copy(update={"worker": ref.worker, "url": ref.url})  # never the worker's own words
            refused.add(ref.worker)

    async def turn(self, session: str, request: TurnRequest) -> TurnResponse:
        return await self._ask(self._holder(session), "POST", f"sessions/{session}/turns", TurnResponse, request)

    async def end(self, session: str) -> None:
        try:
            await self._ask(self._holder(session), "DELETE", f"sessions/{session}", Done)
        except (UnknownSession, WorkerLost):
            return

    async def renew(self, request: RenewLeases) -> LeasesRenewed:
        lost: list[str] = []
        by_worker: dict[WorkerRef, list[str]] = {}
        for session in request.sessions:
            try:
                by_worker.setdefault(self._holder(session), []).append(session)
            except (UnknownSession, WorkerLost):
                lost.append(session)
        for answer in await asyncio.gather(*(self._renew_at(ref, held) for ref, held in by_worker.items())):
            lost += answer
        return LeasesRenewed(lost=tuple(lost))

    async def summarize(self, task: str, request: SummarizeRequest) -> Summary:
        ref = self._any_holding(task, request.digest)
        body = await asyncio.to_thread(request.model_dump_json)
        asked = self._ask(ref, "POST", f"tasks/{task}/summary", Summary, body, deadline_s=SUMMARY_S)
        return await self._ask_any(asked)

    def alive(self) -> Health:
        return Health(role="controller", url=self._url, version=VERSION, time=time.time())

    def check_ready(self) -> None:
        if self._draining:
            raise NotReady("this controller is stopping", retry_after_s=1.0)
        self._check_settled()

    def metrics(self) -> str:
        settled = self._now() >= self._settled_at
        return expose(
            [
                *worker_gauges(self._placement.workers()),
                gauge("proctor_controller_settled", "1 once every worker had time to report.", (), {(): settled}),
                *task_gauges(self._placement.capacities()),
                self._demand.metric(self._now()),
                *self._metrics.collect(),
                *self._process.collect(),
            ]
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(self._watch())
            try:
                yield
            finally:
                watch.cancel()

    async def drain(self, grace_s: float) -> None:
        self._draining = True
        self._publication.close()

    async def _watch(self) -> None:
        while True:
            await self._process.sleep(TICK_S)
            for last in self._placement.tick(self._now()):
                if not (last.draining and not last.sessions):  # else it left in order
                    log.warning("worker %s is lost: no heartbeat for %g s", last.worker, self._lease_s)
                    self._metrics.lost.inc()
            self._publication.changed()

    async def _ask(
        self,
        ref: WorkerRef,
        method: str,
        path: str,
        answer: type[Answer],
        request: BaseModel | str | None = None,
        *,
        deadline_s: float = RELAY_S,
    ) -> Answer:
        """A worker's answer. Raises ApiError as the worker did, WorkerLost if it refuses connections, else NotReady."""
        self._metrics.relayed.inc()
        try:
            return await self._caller.call(method, f"{ref.url}/{path}", answer, request, deadline_s=deadline_s)
        except (ServerUnreachable, BadReply) as error:
            if _refuses_connections(error):
                self._forget(ref)
                raise WorkerLost(f"worker {ref.worker} is gone") from error
            raise _no_answer(ref, error) from error

    async def _ask_any(self, asked: Awaitable[Answer]) -> Answer:
        """A worker's answer to a request that any worker of the task could answer.

        Raises ApiError as the worker did, and NotReady; so for a lost worker, as the client's next try goes to another.
        """
        try:
            return await asked
        except WorkerLost as lost:
            raise NotReady(f"{lost}; the next try goes to another one", retry_after_s=0.5) from lost

    def _any_holding(self, task: str, digest: str | None) -> WorkerRef:
        self._check_settled()
        return self._placement.any_holding(task, digest)

    async def _renew_at(self, ref: WorkerRef, sessions: Sequence[str]) -> tuple[str, ...]:
        """The worker's sessions that are lost; none if the worker just does not answer."""
        request = RenewLeases(sessions=tuple(sessions))
        try:
            return (await self._ask(ref, "POST", "leases", LeasesRenewed, request)).lost
        except WorkerLost:
            return tuple(sessions)
        except NotReady:
            return ()

    def _holder(self, session: str) -> WorkerRef:
        try:
            return self._placement.holder(session)
        except UnknownSession:
            self._check_settled()
            raise

    def _check_settled(self) -> None:
        """Raises NotReady until every worker had time to report: until then, an unknown session may still exist."""
        left_s = self._settled_at - self._now()
        if left_s > 0:
            raise NotReady("just started, waiting for the workers to report", retry_after_s=left_s)

    def _forget(self, ref: WorkerRef) -> None:
        log.warning("worker %s is lost: %s refuses connections", ref.worker, ref.url)
        self._metrics.lost.inc()
        self._placement.forget(ref, self._now())
        self._publication.changed()


def _no_answer(ref: WorkerRef, error: TaskServerError) -> NotReady:
    return NotReady(f"worker {ref.worker} gave no usable answer: {error}", retry_after_s=0.5)


def _refuses_connections(error: BaseException | None) -> bool:
    """True if the machine refused the connection: no process listens at the address."""
    while error is not None:
        if isinstance(error, ConnectionRefusedError):
            return True
        error = error.__cause__ or error.__context__
    return False
