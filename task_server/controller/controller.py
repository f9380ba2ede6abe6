"""The controller: one address for many workers. It places sessions on them and relays requests.

Its knowledge of workers comes from their heartbeats alone.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from pydantic import BaseModel
from starlette.types import ASGIApp

from proctor.config.tokens import AccessTokens
from proctor.http.auth import NO_TOKENS, Access
from proctor.observability.metrics import ProcessMetrics, expose, gauge
from proctor.types import Summary
from task_server.controller.admission import Admit, loopback_only
from task_server.controller.placement import Placement, WorkerRef
from task_server.controller.publication import Publication
from task_server.http.access import token_for
from task_server.http.routes import PlacementService, build_app
from task_server.http.transport import Caller, Done
from task_server.metrics import PlacementMetrics, task_gauges, worker_gauges
from task_server.wire.clients import Clients
from task_server.wire.errors import (
    ApiError,
    BadReply,
    DigestDiffers,
    InWork,
    NoCapacity,
    NotReady,
    OtherClient,
    ServerUnreachable,
    TaskServerError,
    TurnConflict,
    Unauthorized,
    UnknownSession,
    WorkerLost,
)
from task_server.wire.messages import (
    NOBODY,
    SETTLE_S,
    STEP_WAIT_S,
    VERSION,
    WORKER_LEASE_S,
    Health,
    LeasesRenewed,
    RenewLeases,
    SampleList,
    SamplesQuery,
    Sender,
    Started,
    StartSession,
    SummarizeRequest,
    TaskList,
    TasksQuery,
    TurnRequest,
    TurnResponse,
)
from task_server.wire.worker_messages import Heartbeat, HeartbeatAck, RunList, WorkerList, WorkersQuery

log = logging.getLogger(__name__)

TICK_S = 0.5
MAX_TROUBLES = 10_000
RELAY_S = STEP_WAIT_S + 5.0
"""Deadline of a relayed request; a worker that takes longer hangs."""

SUMMARY_S = 290.0

Answer = TypeVar("Answer", bound=BaseModel)


class Controller(PlacementService):
    """The service of a controller. `admit` says which worker addresses are allowed; `tokens` are those of clients."""

    def __init__(
        self,
        url: str,
        caller: Caller,
        *,
        admit: Admit = loopback_only,
        tokens: AccessTokens = NO_TOKENS,
        access: Access | None = None,
        lease_s: float = WORKER_LEASE_S,
        settle_s: float = SETTLE_S,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._caller = caller
        self._admit = admit
        self._tokens = tokens
        self._access = access or Access()
        self._lease_s = lease_s
        self._now = now
        self._settled_at = now() + settle_s
        self._placement = Placement(lease_s)
        self._publication = Publication(self._placement, now)
        self._clients = Clients()
        self._draining = False
        self._troubles: dict[str, str] = {}
        """worker -> why it was lost or refused last, the newest last"""
        self._process = ProcessMetrics("controller", now)
        self._metrics = PlacementMetrics()

    def app(self) -> ASGIApp:
        """The HTTP app of this controller."""
        return build_app(self, "Proctor controller", self._access)

    async def heartbeat(self, heartbeat: Heartbeat, peer: str | None, takes_all: bool = False) -> HeartbeatAck:
        try:
            verified = await self._admit(heartbeat.url, peer)
            elsewhere = self._placement.heartbeat(heartbeat, self._now())
        except ApiError as refusal:
            self._note(heartbeat.worker, f"refused: {refusal}")
            raise
        if (trouble := self._troubles.pop(heartbeat.worker, None)) is not None:
            log.warning("worker %s is back at %s; it was %s", heartbeat.worker, heartbeat.url, trouble)
        self._publication.changed()
        accepted = tuple(token_for(each.text, heartbeat.url) for each in self._tokens.all) if verified else ()
        return HeartbeatAck(
            lease_s=self._lease_s,
            elsewhere=elsewhere,
            access=accepted[0] if accepted else None,
            accepted=accepted if takes_all else (),
        )

    async def workers(self, query: WorkersQuery) -> WorkerList:
        return WorkerList.of(self._placement.heard(self._now()), details=query.details)

    async def runs(self) -> RunList:
        return self._placement.shares.listed(self._now())

    async def tasks(self, query: TasksQuery, sender: Sender = NOBODY) -> TaskList:
        self._placement.shares.record(query, sender, self._now())
        self._publication.changed()
        return await self._publication.answer(query, sender)

    async def samples(self, task: str, query: SamplesQuery) -> SampleList:
        ref = self._any_holding(task, query.digest)
        wanted = [f"{name}=true" for name in ("clusters", "categories") if getattr(query, name)]
        path = f"tasks/{task}/samples{'?' if wanted else ''}{'&'.join(wanted)}"
        return await self._ask_any(self._ask(ref, "GET", path, SampleList))

    async def start(self, request: StartSession, sender: Sender = NOBODY) -> Started:
        self.check_ready()
        body = await asyncio.to_thread(request.model_dump_json) if request.replies else request.model_dump_json()
        refused: set[str] = set()
        while True:
            ref = self._placement.place(
                request.session, request.task, self._now(), refused, request.digest, sender=sender
            )
            self._publication.changed()
            try:
                asked = self._caller.call(
                    "POST", f"{ref.url}/sessions", Started, body, deadline_s=RELAY_S, headers=sender.headers()
                )
                started = await asked
            except (InWork, TurnConflict, OtherClient):  # the session lives at this worker
                raise
            except ApiError as refusal:
                self._placement.refused(request.session, ref.worker)
                self._publication.changed()
                if isinstance(refusal, Unauthorized):
                    raise _no_answer(ref, refusal) from refusal
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

    async def turn(self, session: str, request: TurnRequest, sender: Sender = NOBODY) -> TurnResponse:
        path = f"sessions/{session}/turns"
        return await self._ask(self._holder(session), "POST", path, TurnResponse, request, sender=sender)

    async def end(self, session: str, sender: Sender = NOBODY) -> None:
        try:
            await self._ask(self._holder(session), "DELETE", f"sessions/{session}", Done, sender=sender)
        except (UnknownSession, WorkerLost):
            return

    async def renew(self, request: RenewLeases, sender: Sender = NOBODY) -> LeasesRenewed:
        self._clients.hear(sender, self._now())
        if not request.sessions:
            self._check_settled()  # until then, not every client that plays was heard
        lost: list[str] = []
        by_worker: dict[WorkerRef, list[str]] = {}
        for session in request.sessions:
            try:
                by_worker.setdefault(self._holder(session), []).append(session)
            except (UnknownSession, WorkerLost):
                lost.append(session)
        for answer in await asyncio.gather(*(self._renew_at(*held, sender) for held in by_worker.items())):
            lost += answer
        return LeasesRenewed(lost=tuple(lost), others=self._clients.others(sender, self._now()))

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
                *self._placement.shares.metrics(self._now()),
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
            self._placement.shares.weigh(self._access.users())
            await self._process.sleep(TICK_S)
            self._placement.shares.forget_silent(self._now())
            self._clients.forget_silent(self._now())
            for last, cause in self._placement.tick(self._now()):
                if not (last.draining and not last.sessions):  # else it left in order
                    self._note(last.worker, f"lost: {cause}")
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
        sender: Sender = NOBODY,
    ) -> Answer:
        """A worker's answer. Raises ApiError as the worker did, WorkerLost if it refuses connections, else NotReady."""
        self._metrics.relayed.inc()
        try:
            return await self._caller.call(
                method, f"{ref.url}/{path}", answer, request, deadline_s=deadline_s, headers=sender.headers()
            )
        except (ServerUnreachable, BadReply, Unauthorized) as error:  # it may not know yet what we accept
            if _refuses_connections(error):
                raise WorkerLost(f"worker {ref.worker} is lost: {self._forget(ref)}") from error
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

    async def _renew_at(self, ref: WorkerRef, sessions: Sequence[str], sender: Sender) -> tuple[str, ...]:
        """The worker's sessions that are lost; none if the worker just does not answer."""
        request = RenewLeases(sessions=tuple(sessions))
        try:
            return (await self._ask(ref, "POST", "leases", LeasesRenewed, request, sender=sender)).lost
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

    def _forget(self, ref: WorkerRef) -> str:
        """Drop a worker that no process listens for; the cause."""
        cause = f"{ref.url} refuses connections"
        self._note(ref.worker, f"lost: {cause}")
        self._metrics.lost.inc()
        self._placement.forget(ref, self._now(), cause)
        self._publication.changed()
        return cause

    def _note(self, worker: str, trouble: str) -> None:
        """Log why a worker is lost or refused, each new reason once."""
        if self._troubles.pop(worker, None) != trouble:
            log.warning("worker %s is %s", worker, trouble)
        self._troubles[worker] = trouble
        if len(self._troubles) > MAX_TROUBLES:
            del self._troubles[next(iter(self._troubles))]


def _no_answer(ref: WorkerRef, error: TaskServerError) -> NotReady:
    return NotReady(f"worker {ref.worker} gave no usable answer: {error}", retry_after_s=0.5)


def _refuses_connections(error: BaseException | None) -> bool:
    """True if the machine refused the connection: no process listens at the address."""
    while error is not None:
        if isinstance(error, ConnectionRefusedError):
            return True
        error = error.__cause__ or error.__context__
    return False
