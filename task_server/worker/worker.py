"""A worker: holds tasks, runs their sessions, and reports to its controller if it has one."""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

from starlette.types import ASGIApp

from proctor.config.task import TaskDefinition
from proctor.http.auth import Access
from proctor.observability.metrics import expose, gauge
from proctor.observability.process import ProcessMetrics
from proctor.summary import summarize
from proctor.types import Summary
from task_server.changes import Changes
from task_server.demand_tracker import DemandTracker
from task_server.heartbeat import BATCH_S, Reporter
from task_server.http.app import build_app
from task_server.http.openapi import document
from task_server.http.operations import OPERATIONS
from task_server.http.service import TaskService
from task_server.http.transport import Caller
from task_server.metrics import task_gauges
from task_server.wire.errors import BadRequest, NotReady, UnknownTask
from task_server.wire.messages import (
    VERSION,
    Health,
    LeasesRenewed,
    RenewLeases,
    SampleList,
    SamplesQuery,
    Started,
    StartSession,
    SummarizeRequest,
    TaskCapacity,
    TaskList,
    TasksQuery,
    TurnRequest,
    TurnResponse,
)
from task_server.wire.worker_messages import Heartbeat, HeartbeatAck
from task_server.worker.hosted_task import HostedTask
from task_server.worker.sessions import Sessions

log = logging.getLogger(__name__)

TICK_S = 0.5


class Worker(TaskService):
    """The service of a worker."""

    def __init__(
        self,
        name: str,
        url: str,
        tasks: Sequence[TaskDefinition],
        *,
        controller: str = "",
        caller: Caller | None = None,
        access: Access | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.url = url
        self._access = access or Access()
        self._now = now
        self._changes = Changes()
        self._tasks = {task.name: HostedTask(task, self._changes.notify) for task in tasks}
        self._sessions = Sessions(now, self._changes.notify)
        self._reporter = (
            Reporter(
                controller,
                caller,
                self._changes,
                compose=self._heartbeat,
                on_acknowledged=self._acknowledged,
                on_replaced=self._replaced,
                now=now,
            )
            if caller
            else None
        )
        self._draining = False
        self._warned = False
        self._boot = secrets.token_hex(8)
        self._sequence = 0
        self._demand = DemandTracker()
        self._process = ProcessMetrics("worker", now)

    def app(self) -> ASGIApp:
        """The HTTP app of this worker."""
        described = partial(document, "Proctor worker", OPERATIONS, self._access.closed)
        return build_app(self, OPERATIONS, self._access, described)

    async def tasks(self, query: TasksQuery) -> TaskList:
        self._demand.record(query, self._now())
        if query.after == self._version():
            await self._changes.wait(self._changes.count, query.wait_s)
            await asyncio.sleep(min(BATCH_S, query.wait_s))
        return TaskList(version=self._version(), tasks=self._capacities())

    async def samples(self, task: str, query: SamplesQuery) -> SampleList:
        listed = self._task(task).samples()
        unasked = [name for name in ("clusters", "categories") if not getattr(query, name)]
        return listed.model_copy(update=dict.fromkeys(unasked, ()))

    async def start(self, request: StartSession) -> Started:
        task = self._task(request.task)
        task.check_digest(request.digest)
        session = self._sessions.find_started(request)
        if session is None:
            self._check_open()
            task.admit(request.sample)
            session = self._sessions.start(request, task.environment, task.capacity)
        replies = len(request.replies) if request.replies is not None else None
        current = await session.current_step(replies)
        return Started(worker=self.name, url=self.url, step=current.step, replies=current.replies)

    async def turn(self, session: str, request: TurnRequest) -> TurnResponse:
        return await self._sessions.find(session).turn(request)

    async def end(self, session: str) -> None:
        await self._sessions.end(session)

    async def renew(self, request: RenewLeases) -> LeasesRenewed:
        return LeasesRenewed(lost=self._sessions.renew(request.sessions))

    async def summarize(self, task: str, request: SummarizeRequest) -> Summary:
        hosted = self._task(task)
        hosted.check_digest(request.digest)
        try:
            return await asyncio.to_thread(
                summarize, hosted.environment, request.finishes, request.clusters, request.samples
            )
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            what = f"{type(error).__name__}: {str(error)[:200]}"
            raise BadRequest(f"finishes: task {task!r} can't have given these ({what})") from error

    def alive(self) -> Health:
        return Health(role="worker", url=self.url, version=VERSION, time=time.time())

    def check_ready(self) -> None:
        self._check_open()
        if any(task.waiting is not None for task in self._tasks.values()):
            # /readyz needs no token, so the reason is not in its answer
            raise NotReady("a task can't start sessions yet; see GET /tasks", retry_after_s=1.0)

    def metrics(self) -> str:
        capacities = self._capacities()
        total = {(task.name,): task.total for task in capacities}
        free = {(task.name,): task.free for task in capacities}
        live = {(task.name,): self._sessions.live(task.name) for task in capacities}
        return expose(
            [
                gauge("proctor_slots", "Sessions that a task can hold.", ("task",), total),
                gauge("proctor_slots_free", "Sessions that a task can start now.", ("task",), free),
                gauge("proctor_sessions_live", "Sessions under way.", ("task",), live),
                *task_gauges(capacities),
                self._demand.metric(self._now()),
                *self._sessions.metrics.collect(),
                *self._process.collect(),
            ]
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            hosting = {task: group.create_task(task.run(), name=task.name) for task in self._tasks.values()}
            loops = [group.create_task(self._watch())]
            if self._reporter is not None:
                loops.append(group.create_task(self._reporter.run()))
            try:
                yield
            finally:
                await self.drain(0)
                await asyncio.gather(*(task.stop(running) for task, running in hosting.items()))
                for loop in loops:
                    loop.cancel()

    async def drain(self, grace_s: float) -> None:
        self._draining = True
        self._changes.notify()
        ends = self._now() + grace_s
        while not self._sessions.idle() and not self._changes.closed and (left_s := ends - self._now()) > 0:
            await self._changes.wait(self._changes.count, left_s)
        await self._sessions.end_all()
        self._changes.close()

    async def _watch(self) -> None:
        """End the sessions whose client is gone. A controller that does not answer is no reason to end any."""
        while True:
            await self._process.sleep(TICK_S)
            expired = self._sessions.expire()
            if expired:
                log.warning("%d sessions ended: no client request within their lease", expired)
                self._sessions.metrics.expired.inc(expired)

    def _heartbeat(self) -> Heartbeat:
        self._sequence += 1
        return Heartbeat(
            worker=self.name,
            boot=self._boot,
            url=self.url,
            sequence=self._sequence,
            draining=self._draining,
            tasks=self._capacities(),
            sessions=self._sessions.held(),
            version=VERSION,
        )

    def _capacities(self) -> tuple[TaskCapacity, ...]:
        return tuple(self._capacity(task) for task in self._tasks.values())

    def _capacity(self, task: HostedTask) -> TaskCapacity:
        waiting = "draining" if self._draining else task.waiting
        free = 0 if waiting is not None else max(0, task.capacity - self._sessions.live(task.name))
        return TaskCapacity(
            name=task.name,
            environment=task.environment_name,
            total=task.capacity,
            free=free,
            waiting=waiting,
            digest=task.catalogue.digest if task.catalogue else None,
        )

    def _task(self, name: str) -> HostedTask:
        if name not in self._tasks:
            raise UnknownTask(f"no task {name[:100]!r} here; there are: {', '.join(sorted(self._tasks))}")
        return self._tasks[name]

    def _check_open(self) -> None:
        if self._draining:
            raise NotReady("this worker is draining", retry_after_s=1.0)
        if self._is_cut_off():
            raise NotReady("this worker has lost its controller", retry_after_s=1.0)

    async def _replaced(self) -> None:
        """End all sessions: the controller lists another worker of our name, so no client reaches ours through it."""
        if self._sessions.held():
            log.error("another worker has this name at the controller: all sessions end; give each worker its own name")
            await self._sessions.end_all()

    async def _acknowledged(self, answer: HeartbeatAck) -> None:
        """Apply the answer to a heartbeat: end the sessions that live elsewhere, and accept the clients' token for us.

        If the answer has no token, the controller has none or could not verify that this worker is at its address.
        """
        if answer.elsewhere:
            log.warning("%d sessions end: they live at another worker since this one was lost", len(answer.elsewhere))
            await asyncio.gather(*map(self._sessions.end, answer.elsewhere))
        if answer.access is not None:
            self._access.grant(answer.access)
        elif self._access.pending and not self._warned:
            log.warning(
                "the controller sent no token, so no session can start here: it has none, or admits this worker by "
                "--allow-workers only; set PROCTOR_TOKEN here too, or --advertise the address of this worker's requests"
            )
            self._warned = True

    def _is_cut_off(self) -> bool:
        return self._reporter is not None and self._reporter.contact.lost(self._now())

    def _version(self) -> str:
        return f"{self._boot}-{self._changes.count}"
