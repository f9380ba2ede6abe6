"""The client of workers and controllers. It repeats a call until it succeeds, is refused, or `patience_s` is over."""

import asyncio
import contextlib
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import quote, urlencode

from pydantic import BaseModel

from proctor.config.tokens import AccessTokens
from proctor.event_loop import clock
from proctor.http.client import HttpClient
from proctor.retry import RetryPolicy
from proctor.session.kept_replies import KeptReply
from proctor.types import Finish, Summary
from task_server.client.reachability import Reach, ServerOutage
from task_server.http.transport import NONE, Caller, Done
from task_server.wire import messages
from task_server.wire.clients import SILENT_S
from task_server.wire.errors import (
    InWork,
    NoCapacity,
    ServerAway,
    ServerUnreachable,
    SessionHeld,
    TaskServerError,
    Unauthorized,
    UnknownSession,
    WorkerLost,
)
from task_server.wire.turns import Reply
from task_server.wire.worker_messages import WorkerList

if TYPE_CHECKING:
    from task_server.http.routes import TaskService

log = logging.getLogger(__name__)

CALL_S = messages.STEP_WAIT_S + 10.0
"""Deadline of one request. A step in work is answered after STEP_WAIT_S, so a server that takes longer hangs."""
DOUBTFUL_S = messages.HEARTBEAT_S
"""A start sent longer ago than this may have reached an earlier controller than the one that answers now. A new
controller places no session for twice as long (SETTLE_S)."""
HELD_S = 1.5 * SILENT_S
"""A call waits so long for a session that another client has: by then that one is silent, or plays on."""
PROBE_S = 2.0
SUMMARY_S = 300.0
NEWS, WORKERS, LEASES = "what can be started", "its workers", "leases at"

Answer = TypeVar("Answer")
Message = TypeVar("Message", bound=BaseModel)


@dataclass
class Call:
    """A call under way, over all its tries."""

    what: str
    """What the call asks for."""
    since: float
    """When its first try began, on the monotonic clock."""
    trouble: str | None = None
    """How the last try failed, or what it waits for."""


class ReplyLog(Protocol):
    """A trial's replies of environment models (judges, hosts, users), kept for the trial's next session."""

    replies: list[KeptReply]
    """All replies so far, in order."""

    async def add(self, replies: Sequence[KeptReply]) -> None:
        """Append replies; they are durable when this returns."""


class TaskClient:
    """Calls to one task server, a worker or a controller, and to the workers that its sessions are pinned to.

    All calls raise TaskServerError: at once if a retry can't help, otherwise after `patience_s` of retries. A step may
    take up to `step_s` while its server answers `in_work`. With `relayed`, all requests go through the controller. No
    session may block its worker's event loop for longer than `blocks_s`. With `outlasts`, calls wait while the server
    answers nobody (`outage`), without using up their patience; starts that were not sent raise ServerAway at once. A
    refused token is waited for, within that patience, once one was accepted: tokens change. A service of this process
    (`here`) is called, not posted to.
    """

    def __init__(
        self,
        url: str,
        http: HttpClient,
        token: AccessTokens | str | None = None,
        *,
        patience_s: float = 60.0,
        step_s: float = 1800.0,
        relayed: bool = False,
        sender: messages.Sender = messages.NOBODY,
        blocks_s: float | None = None,
        outlasts: bool = False,
        here: "TaskService | None" = None,
    ) -> None:
        self._url = url.rstrip("/")
        self._http, self._tokens, self._here = http, AccessTokens.given(token), here
        self._accepted = False
        """Whether a token was."""
        self._prober = Caller(http, None)
        self._policy = RetryPolicy(max_retry_s=patience_s, base_s=0.1, cap_s=5.0)
        self._step_s = step_s
        self.play_for(sender)
        self._relayed = relayed
        self._blocks_s = blocks_s and min(max(blocks_s, messages.SHORTEST_BLOCK_S), messages.LONGEST_BLOCK_S)
        self._reach = Reach(self._probe)
        self.outage = ServerOutage(self._url, self._answers, patience_s)
        self._outlasts = outlasts
        self.calls: dict[int, Call] = {}
        """The calls under way, oldest first, to show what the run waits for."""
        self.lost: dict[str, tuple[float, str]] = {}
        """URL of a worker -> when it was found lost, on the monotonic clock, and how; until a session starts there"""
        self._without_slot: dict[str, list[asyncio.Event]] = {}
        """task -> the starts that found no slot of it and wait before their next try, oldest first"""

    def play_for(self, sender: messages.Sender) -> None:
        """Say in every request from now on who sends it."""
        if self._here is not None:
            from task_server.client.called import Called  # clients of servers do without

            self._caller: Caller | Called = Called(self._here, sender)
        else:
            self._caller = Caller(self._http, self._tokens, self._url, sender.headers())

    def held_up(self) -> list[Call]:
        """The calls under way that hold something up, oldest first: all but long polls and renewals that go well."""
        return [call for call in self.calls.values() if call.trouble or not call.what.startswith((NEWS, LEASES))]

    async def tasks(
        self, after: str | None = None, wait_s: float = 0.0, *, client: str | None = None, wants: str = ""
    ) -> messages.TaskList:
        """The tasks and their capacity.

        With `after`, the version known already, the answer comes when the list changes, or after `wait_s`. `client` and
        `wants` report this client's demand for sessions: see `TasksQuery`.
        """
        given = messages.TasksQuery(after=after, wait_s=wait_s, client=client, wants=wants)
        query = urlencode(given.model_dump(exclude_defaults=True))
        listed = await self._ask(NEWS, "GET", f"tasks?{query}", messages.TaskList, deadline_s=CALL_S + wait_s)
        for task in listed.tasks:
            for waiting in self._without_slot.get(task.name, ())[: task.free]:
                waiting.set()
        return listed

    async def samples(self, task: str, digest: str | None = None) -> messages.SampleList:
        """Samples, their clusters and categories, and digest of a task; from a worker with `digest` if there is one."""
        asked = messages.SamplesQuery(digest=digest, clusters=True, categories=True)
        query = urlencode(asked.model_dump(exclude_defaults=True))
        path = f"tasks/{quote(task, safe='')}/samples?{query}"
        return await self._ask(f"the samples of {task}", "GET", path, messages.SampleList)

    async def start(
        self,
        session: str,
        task: str,
        sample: str,
        seed: int = 0,
        *,
        digest: str | None = None,
        lease_s: float = messages.SESSION_LEASE_S,
        patience_s: float | None = None,
        log: ReplyLog | None = None,
        begun: bool = False,
    ) -> messages.Started:
        """Start a session on a worker with the expected digest; its first step, and the worker that holds it.

        Environment models repeat the replies in `log`. Raises NoCapacity if no slot becomes free within `patience_s`,
        DigestDiffers if no worker has the digest. A session that may have started before, for an earlier client
        (`begun`) or because an answer was lost, may live at a worker that a new controller does not know yet. It is not
        started a second time: if no known worker holds it, this raises UnknownSession.
        """
        asked = messages.StartSession(
            session=session,
            task=task,
            sample=sample,
            seed=seed,
            lease_s=lease_s,
            digest=digest,
            blocks_s=self._blocks_s,
        )
        doubtful_since = -math.inf if begun else math.inf

        async def ask(base: str) -> messages.Started:
            nonlocal doubtful_since
            asked_at = time.monotonic()
            if asked_at - doubtful_since > DOUBTFUL_S:
                await self._check_known(session)
            request = asked if log is None else asked.model_copy(update={"replies": tuple(log.replies)})
            body = await asyncio.to_thread(request.model_dump_json) if request.replies else request
            try:
                answer = await self._caller.call("POST", f"{base}/sessions", messages.Started, body, deadline_s=CALL_S)
            except (InWork, ServerUnreachable) as error:
                if not (isinstance(error, ServerUnreachable) and error.never_sent):
                    doubtful_since = min(doubtful_since, asked_at)
                elif doubtful_since == math.inf and self._outlasts and await self.outage.found(str(error)):
                    raise ServerAway(str(self.outage)) from error
                raise
            if answer.replies and log is not None:
                await log.add(answer.replies)
            return answer

        what = f"a session of {task}"
        started = await self._retry_until_available(
            what, ask, patience_s=patience_s, log=log, task=task, session=session
        )
        if (url := started.url.rstrip("/")) != self._url:
            self._note_return(started.worker, url)
            await self._reachable(url)  # the probe asks the controller, which has just answered
        return started

    def _note_return(self, worker: str, url: str) -> None:
        if (lost := self.lost.pop(url, None)) is not None:
            log.warning("worker %s is back at %s, after: %s", worker, url, lost[1])

    async def _check_known(self, session: str) -> None:
        """Raises UnknownSession if no worker that the server knows holds the session."""
        request = messages.RenewLeases(sessions=(session,))
        url = f"{self._url}/leases"
        if (await self._caller.call("POST", url, messages.LeasesRenewed, request, deadline_s=CALL_S)).lost:
            raise UnknownSession(f"session {session} has ended, or its worker is not known to {self._url}")

    def turn(
        self, url: str, session: str, n: int, reply: Reply, log: ReplyLog | None = None
    ) -> Coroutine[Any, Any, messages.Step]:
        """Answer turn `n` of a session pinned to the worker at `url`; the next step."""

        async def ask(base: str) -> messages.Step:
            request = messages.TurnRequest(turn=n, reply=reply, replies=None if log is None else len(log.replies))
            turns = f"{base}/sessions/{session}/turns"
            answer = await self._caller.call("POST", turns, messages.TurnResponse, request, deadline_s=CALL_S)
            if answer.replies and log is not None:
                await log.add(answer.replies)
            return answer.step

        return self._retry_until_available(f"a turn at {url}", ask, url, log=log, session=session)

    async def end(self, session: str, url: str | None = None) -> None:
        """End a session: its resources and the record of its last step are freed. Repeatable."""
        await self._ask("a session's end", "DELETE", f"sessions/{session}", Done, worker=url)

    async def renew(self, url: str | None, sessions: Sequence[str], *, yields: bool = False) -> tuple[str, ...]:
        """Renew the leases of sessions pinned to the worker at `url`, if any; those that are lost.

        With `yields` another client may take the sessions. Raises SessionTaken where one has.
        """
        return (await self._renewed(url, sessions, yields)).lost

    async def give_way(self) -> bool:
        """Let other clients of the run take this one's sessions; whether one was heard within SILENT_S."""
        return (await self._renewed(None, (), yields=True)).others

    async def _renewed(self, url: str | None, sessions: Sequence[str], yields: bool = False) -> messages.LeasesRenewed:
        request, headers = messages.RenewLeases(sessions=tuple(sessions)), messages.Sender(yields=yields).headers()
        what = f"{LEASES} {url or self._url}"
        return await self._ask(what, "POST", "leases", messages.LeasesRenewed, request, worker=url, headers=headers)

    async def blocked_s(self, url: str, session: str) -> float:
        """How long the worker of a session answered nobody since the session started. Raises UnknownSession.

        0 in this process, whose time limits stand still meanwhile.
        """
        if self._here is not None:
            return 0.0
        answer = await self._renewed(url, (session,))
        if answer.lost:
            raise UnknownSession(f"session {session} has ended at {url}")
        return answer.blocked_s

    async def summarize(
        self,
        task: str,
        finishes: Sequence[Finish],
        clusters: Sequence[int] = (),
        samples: Sequence[int] = (),
        *,
        digest: str | None = None,
    ) -> Summary:
        """The environment's own metrics over finishes, with the numbers of the cluster and the sample of each."""
        asked = messages.SummarizeRequest(
            finishes=tuple(finishes), clusters=tuple(clusters), samples=tuple(samples), digest=digest
        )
        request = await asyncio.to_thread(asked.model_dump_json)
        path = f"tasks/{quote(task, safe='')}/summary"
        return await self._ask(f"the summary of {task}", "POST", path, Summary, request, deadline_s=SUMMARY_S)

    async def _ask(
        self,
        what: str,
        method: str,
        path: str,
        answer: type[Message],
        request: BaseModel | str | None = None,
        *,
        worker: str | None = None,
        deadline_s: float = CALL_S,
        headers: Mapping[str, str] = NONE,
    ) -> Message:
        """The answer to one request, which may be repeated, of the pinned `worker` or the controller."""

        def ask(base: str) -> Awaitable[Message]:
            return self._caller.call(method, f"{base}/{path}", answer, request, deadline_s=deadline_s, headers=headers)

        reply = await self._retry_until_available(what, ask, worker)
        self.outage.worked = True
        return reply

    async def _retry_until_available(
        self,
        what: str,
        attempt: Callable[[str], Awaitable[Answer]],
        worker: str | None = None,
        *,
        patience_s: float | None = None,
        log: ReplyLog | None = None,
        task: str = "",
        session: str = "",
    ) -> Answer:
        """Run `attempt` in the one retry loop: every request may be repeated. `what` names what it asks for.

        `attempt` gets the URL to call: that of the pinned `worker` if this client reaches it, else the controller's.
        Replies that come before the answer go to `log`. What finds no slot of `task` is tried again once one is free.
        """
        call = Call(what, time.monotonic())
        self.calls[id(call)] = call
        policy = self._policy if patience_s is None else replace(self._policy, max_retry_s=patience_s)
        pinned = self._url if worker is None else worker.rstrip("/")
        begun = trusted = asked_at = clock()
        failures = 0
        try:
            while True:
                try:
                    if pinned != self._url and (pinned in self._reach.reached or await self._reachable(pinned)):
                        try:
                            return await attempt(pinned)
                        except (ServerUnreachable, Unauthorized) as error:  # it may not know yet what is accepted
                            if isinstance(error, ServerUnreachable) and error.never_sent:
                                self._reach.missed(pinned)
                    answer = await attempt(self._url)
                    self._accepted = True
                    return answer
                except InWork as work:
                    if work.replies and log is not None:
                        await log.add(work.replies)
                    trusted, failures, call.trouble = clock(), 0, "the environment is at work on it"
                    if trusted - begun > self._step_s:
                        raise
                except TaskServerError as error:
                    call.trouble = str(error)
                    if isinstance(error, WorkerLost) and worker is not None:
                        self.lost[pinned] = time.monotonic(), str(error)
                    outlasts = self._outlasts and what != WORKERS and isinstance(error, ServerUnreachable)
                    if outlasts and await self.outage.found(str(error)):
                        await self.outage.over(session)
                        trusted += clock() - asked_at
                        asked_at = clock()
                        continue
                    failures += 1
                    wait_s = self._wait_s(error, policy, failures, clock() - trusted)
                    if wait_s is None:
                        raise
                    await (self._slot(task, wait_s) if isinstance(error, NoCapacity) else asyncio.sleep(wait_s))
                asked_at = clock()
        finally:
            del self.calls[id(call)]

    def _wait_s(self, error: TaskServerError, policy: RetryPolicy, failures: int, silent_s: float) -> float | None:
        """How long to wait before the next try after so many failures in a row; None where none follows."""
        if isinstance(error, SessionHeld):
            return error.retry_after_s if silent_s < HELD_S else None
        if not (error.retryable or (self._accepted and isinstance(error, Unauthorized))):
            return None
        return policy.wait_s(failures, random.random(), elapsed_s=silent_s, retry_after_s=error.retry_after_s)

    async def _slot(self, task: str, wait_s: float) -> None:
        """Wait until the server tells of a free slot of a task: it keeps one that it offers for a moment only."""
        freed = asyncio.Event()
        waiting = self._without_slot.setdefault(task, [])
        waiting.append(freed)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await freed.wait()
        finally:
            waiting.remove(freed)

    async def _reachable(self, url: str) -> bool:
        """Whether calls go to the pinned worker directly, and not through the controller.

        The URL comes from a session's start reply. The check against the controller's list keeps a forged URL from
        redirecting this client.
        """
        return not self._relayed and await self._reach.reaches(url)

    async def _answers(self) -> bool:
        """Whether anything answers at this client's own URL."""
        try:
            await self._prober.call("GET", f"{self._url}/healthz", messages.Health, deadline_s=PROBE_S)
        except ServerUnreachable:
            return False
        except TaskServerError:
            pass
        return True

    async def _probe(self, url: str) -> bool:
        """Whether the controller lists a worker at this URL, and the worker answers this client."""
        try:
            listed = await self._ask(WORKERS, "GET", "workers", WorkerList)
            if url not in {worker.url.rstrip("/") for worker in listed.workers}:
                log.warning("%s lists no worker at %s: its sessions go through the controller", self._url, url)
                return False
            alive = await self._prober.call("GET", f"{url}/healthz", messages.Health, deadline_s=PROBE_S)
        except TaskServerError:
            return False
        return alive.url.rstrip("/") == url
