"""A worker: holds tasks, runs their sessions, and reports to its controller if it has one."""

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any

from starlette.types import ASGIApp

from proctor.config.task import TaskDefinition
from proctor.environment import Environment
from proctor.http.auth import Access
from proctor.observability.metrics import ProcessMetrics, expose, gauge
from proctor.observability.redaction import redacted
from proctor.summary import summarize
from proctor.types import Summary
from task_server.heartbeat import BATCH_S, Changes, Reporter
from task_server.http.routes import TaskService, build_app
from task_server.http.transport import Caller
from task_server.metrics import task_gauges
from task_server.shares import Holder, Shares, holder_of
from task_server.wire.errors import BadRequest, NotReady, TaskServerError, TurnConflict, UnknownTask
from task_server.wire.messages import (
    NOBODY,
    VERSION,
    Health,
    LeasesRenewed,
    RenewLeases,
    SampleList,
    SamplesQuery,
    Sender,
    Started,
    StartSession,
    SummarizeRequest,
    TaskCapacity,
    TaskList,
    TasksQuery,
    TurnRequest,
    TurnResponse,
)
from task_server.wire.worker_messages import Heartbeat, HeartbeatAck, RunList
from task_server.worker.hosted_task import HostedTask
from task_server.worker.sessions import TICK_S, Sessions

log = logging.getLogger(__name__)

REFUSED_S = 60.0
"""A worker that plays nothing, and that its controller refuses for so long, is not alive: a restart may help."""


class Worker(TaskService):
    """The service of a worker. `locate` finds its URL, which may change; None if that is given. It raises OSError.

    `worlds` are the environments of tasks that were given in Python; the others are built.
    """

    def __init__(
        self,
        name: str,
        url: str,
        tasks: Sequence[TaskDefinition],
        *,
        controller: str = "",
        caller: Caller | None = None,
        access: Access | None = None,
        locate: Callable[[], str] | None = None,
        worlds: Mapping[str, Environment] = MappingProxyType({}),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.url = url
        self._locate = locate
        self._access = access or Access()
        self._now = now
        self._changes = Changes()
        self._tasks = {task.name: HostedTask(task, self._changes.notify, worlds.get(task.name)) for task in tasks}
        self._sessions = Sessions(now, self._changes.notify, self._freed)
        self._reporter = (
            Reporter(
                controller,
                caller,
                self._changes,
                compose=self._heartbeat,
                on_acknowledged=self._acknowledged,
                on_failed=self._not_acknowledged,
                now=now,
            )
            if caller
            else None
        )
        self._draining = self._warned = False
        self._boot = secrets.token_hex(8)
        self._sequence = 0
        self._shares = Shares()
        self._process = ProcessMetrics("worker", now)

    def app(self) -> ASGIApp:
        """The HTTP app of this worker."""
        return build_app(self, "Proctor worker", self._access)

    async def tasks(self, query: TasksQuery, sender: Sender = NOBODY) -> TaskList:
        self._shares.record(query, sender, self._now())
        if self._shares.offer(self.capacities(), self._now()):
            self._changes.notify()
        if query.after == self._version():
            await self._changes.wait(self._changes.count, query.wait_s)
            await asyncio.sleep(min(BATCH_S, query.wait_s))
            self._shares.offer(self.capacities(), self._now())
        seen = self._shares.seen_by(holder_of(sender), self.capacities())
        return TaskList(version=self._version(), tasks=seen)

    async def samples(self, task: str, query: SamplesQuery) -> SampleList:
        listed = self._task(task).samples()
        unasked = [name for name in ("clusters", "categories") if not getattr(query, name)]
        return listed.model_copy(update=dict.fromkeys(unasked, ()))

    async def start(self, request: StartSession, sender: Sender = NOBODY) -> Started:
        task = self._task(request.task)
        task.check_digest(request.digest)
        session = self._sessions.find_started(request, sender)
        if session is None:
            self._check_open()
            task.admit(request.sample)
            free = self._capacity(task).free
            if self._reporter is None and free:  # else the controller has chosen whose turn it is, or it is nobody's
                self._shares.take(task.name, holder_of(sender), free, self._now())
            session = self._sessions.start(request, task.environment, task.capacity, sender)
        replies = len(request.replies) if request.replies is not None else None
        current = await session.current_step(replies)
        return Started(worker=self.name, url=self.url, step=current.step, replies=current.replies)

    def turn(self, session: str, request: TurnRequest, sender: Sender = NOBODY) -> Coroutine[Any, Any, TurnResponse]:
        return self._sessions.find(session, sender).turn(request)

    async def end(self, session: str, sender: Sender = NOBODY) -> None:
        await self._sessions.end(session, sender)

    async def renew(self, request: RenewLeases, sender: Sender = NOBODY) -> LeasesRenewed:
        return self._sessions.renew(request.sessions, sender)

    async def summarize(self, task: str, request: SummarizeRequest) -> Summary:
        hosted = self._task(task)
        hosted.check_digest(request.digest)
        try:
            return await asyncio.to_thread(
                summarize, hosted.environment, request.finishes, request.clusters, request.samples
            )
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            what = f"{type(error).__name__}: {redacted(str(error))[:200]}"
            raise BadRequest(f"finishes: task {task!r} can't have given these ({what})") from error

    async def runs(self) -> RunList:
        return self._shares.listed(self._now())

    def alive(self) -> Health:
        return Health(role="worker", url=self.url, version=VERSION, time=time.time())

    def check_alive(self) -> None:
        since = self._reporter.refused_since if self._reporter else None
        if since is not None and self._now() - since >= REFUSED_S and self._sessions.idle():
            raise NotReady("the controller refuses this worker; its log has the cause")

    def check_ready(self) -> None:
        self._check_open()
        if self._reporter is not None and self._reporter.refused_since is not None:
            raise NotReady("the controller refuses this worker; its log has the cause", retry_after_s=1.0)
        if any(task.waiting is not None for task in self._tasks.values()):
            # /readyz needs no token, so the reason is not in its answer
            raise NotReady("a task can't start sessions yet; see GET /tasks", retry_after_s=1.0)

    def metrics(self) -> str:
        capacities = self.capacities()
        total = {(task.name,): task.total for task in capacities}
        free = {(task.name,): task.free for task in capacities}
        live = {(task.name,): self._sessions.live(task.name) for task in capacities}
        return expose(
            [
                gauge("proctor_slots", "Sessions that a task can hold.", ("task",), total),
                gauge("proctor_slots_free", "Sessions that a task can start now.", ("task",), free),
                gauge("proctor_sessions_live", "Sessions under way.", ("task",), live),
                *task_gauges(capacities),
                *self._shares.metrics(self._now()),
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
        """End the sessions whose client is gone. While the controller does not answer, no lease runs."""
        self._sessions.tick()
        while True:
            self._shares.weigh(self._access.users())
            await self._process.sleep(TICK_S)
            self._sessions.tick()
            self._shares.forget_silent(self._now())
            if self._shares.offer(self.capacities(), self._now()):
                self._changes.notify()
            if self._is_cut_off():
                self._sessions.renew(self._sessions.held())
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
            tasks=self.capacities(),
            sessions=self._sessions.held(),
            version=VERSION,
            holds=self._sessions.holds(),
        )

    def _freed(self, task: str, holder: Holder) -> None:
        if self._reporter is None:
            self._shares.hold(task, holder, -1)
            self._shares.offer(self.capacities(), self._now())

    def capacities(self) -> tuple[TaskCapacity, ...]:
        """Each task's slots, in all and free."""
        return tuple(map(self._capacity, self._tasks.values()))

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

    async def _not_acknowledged(self, error: TaskServerError) -> None:
        """End all sessions if the controller lists another worker of our name, since no client reaches ours through it.

        Before the next try, and so a new connection, announce this worker's address as it is now, if none was given.
        """
        if isinstance(error, TurnConflict) and self._sessions.held():
            log.error("another worker has this name at the controller: all sessions end; give each worker its own name")
            await self._sessions.end_all()
        if self._locate is not None:
            with contextlib.suppress(OSError):  # there is no route now
                if (url := await asyncio.to_thread(self._locate)) != self.url:
                    log.warning("this worker's address is now %s; it was %s", url, self.url)
                    self.url = url

    async def _acknowledged(self, answer: HeartbeatAck) -> None:
        """Apply the answer to a heartbeat: end the sessions that live elsewhere, and accept the clients' tokens for us.

        If the answer has none, the controller has none or could not verify that this worker is at its address.
        """
        if answer.elsewhere:
            log.warning("%d sessions end: they live at another worker since this one was lost", len(answer.elsewhere))
            await asyncio.gather(*map(self._sessions.end, answer.elsewhere))
        if answer.access is not None:
            self._access.grant(answer.accepted or (answer.access,))
        elif self._access.pending and not self._warned:
            log.warning(
                "the controller sent no token, so no session can start here: it has none, or admits this worker by "
                "--allow-workers only; set PROCTOR_TOKEN here too, or --advertise the address of this worker's requests"
            )
            self._warned = True

    def _is_cut_off(self) -> bool:
        return self._reporter is not None and self._reporter.lost()

    def _version(self) -> str:
        return f"{self._boot}-{self._changes.count}"
