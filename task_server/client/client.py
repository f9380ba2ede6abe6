"""Talks to a worker or a controller: every call is repeated until it succeeds, is refused, or patience ends."""

import asyncio
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar
from urllib.parse import quote, urlencode

from proctor.http.client import AnyClient
from proctor.llm.kept_replies import KeptReply
from proctor.types import Finish, Summary
from task_server.client.reach import Reach
from task_server.http.transport import Caller, json_of
from task_server.wire.errors import InWork, ServerUnreachable, TaskServerError, UnknownSession
from task_server.wire.messages import (
    HEARTBEAT_S,
    SESSION_LEASE_S,
    STEP_WAIT_S,
    Health,
    LeasesRenewed,
    RenewLeases,
    SampleList,
    SamplesQuery,
    Started,
    StartSession,
    Step,
    SummarizeRequest,
    TaskList,
    TasksQuery,
    TurnRequest,
    TurnResponse,
    WorkerList,
)
from task_server.wire.turns import Reply

log = logging.getLogger(__name__)

CALL_S = STEP_WAIT_S + 10.0
"""A server that has not answered by then hangs: even a step in work is answered after STEP_WAIT_S."""
DOUBTFUL_S = HEARTBEAT_S
"""A start that was sent so long ago may have reached another controller than the one that answers now: a new one places
nothing before it has waited for twice as long."""
PROBE_S = 2.0
SUMMARY_S = 300.0
LONGEST_PAUSE_S = 5.0
NEWS = "what can be started"

Answer = TypeVar("Answer")
Stepped = TypeVar("Stepped", Started, TurnResponse)


@dataclass
class Call:
    """A call under way, all its tries together."""

    what: str
    since: float
    """By the monotonic clock."""
    trouble: str | None = None
    """How the last try failed."""


def pause_s(failures: int, retry_after_s: float | None, draw: float) -> float:
    """Seconds before the next try: full jitter (`draw` in [0, 1)) over a doubling range, after what the server asks."""
    return (retry_after_s or 0.0) + draw * min(LONGEST_PAUSE_S, 0.1 * 2.0 ** min(failures, 10))


class ReplyLog(Protocol):
    """Where a client keeps what models on the environment's side said in a trial, for its next session."""

    replies: list[KeptReply]
    """All so far, in order."""

    async def add(self, replies: Sequence[KeptReply]) -> None:
        """Keep more; they are durable when this returns."""


class TaskClient:
    """Calls to one task server, a worker or a controller, and to the workers that its sessions are pinned to.

    All raise TaskServerError: what can't be helped by trying again at once, the rest after `patience_s` of trying.
    A step may take up to `step_s`, while its server keeps saying that it is in work. With `relayed`, nothing goes
    straight to a worker.
    """

    def __init__(
        self,
        url: str,
        http: AnyClient,
        token: str | None = None,
        *,
        patience_s: float = 60.0,
        step_s: float = 1800.0,
        relayed: bool = False,
    ) -> None:
        self._url = url.rstrip("/")
        self._caller = Caller(http, token, home=self._url)
        self._prober = Caller(http, None)
        self._patience_s = patience_s
        self._step_s = step_s
        self._relayed = relayed
        self._reach = Reach(self._probe)
        self.calls: dict[int, Call] = {}
        """Those under way, the oldest first; for whoever wants to know what is waited for."""

    def held_up(self) -> list[Call]:
        """The calls under way that somebody waits for, the oldest first: not those that wait for news."""
        return [call for call in self.calls.values() if call.trouble or call.what != NEWS]

    async def tasks(
        self, after: str | None = None, wait_s: float = 0.0, *, client: str | None = None, wants: str = ""
    ) -> TaskList:
        """The tasks and what they can take. With the version known already: when that changed, or after `wait_s`.

        `client` and `wants` tell how many sessions could be held: `TasksQuery`.
        """
        given = TasksQuery(after=after, wait_s=wait_s, client=client, wants=wants)
        query = urlencode(given.model_dump(exclude_defaults=True))
        return await self._retry_until_available(
            NEWS,
            lambda: self._caller.call("GET", f"{self._url}/tasks?{query}", TaskList, deadline_s=CALL_S + wait_s),
        )

    async def samples(self, task: str, digest: str | None = None) -> SampleList:
        """The samples of a task and the digest of what they come from; the expected one where a worker has it."""
        query = urlencode(SamplesQuery(digest=digest).model_dump(exclude_defaults=True))
        return await self._retry_until_available(
            f"the samples of {task}",
            lambda: self._caller.call(
                "GET", f"{self._url}/tasks/{quote(task, safe='')}/samples?{query}", SampleList, deadline_s=CALL_S
            ),
        )

    async def start(
        self,
        session: str,
        task: str,
        sample: str,
        seed: int = 0,
        *,
        digest: str | None = None,
        lease_s: float = SESSION_LEASE_S,
        patience_s: float | None = None,
        log: ReplyLog | None = None,
        begun: bool = False,
    ) -> Started:
        """The session's first step and where it lives; only a worker with the expected digest may hold it.

        Models on the environment's side say again what the log has. Raises NoCapacity when no slot came free within the
        patience, DigestDiffers when there is no such worker. One that may have begun a while ago, by an earlier client
        (`begun`) or since an answer was lost, may live at a worker that a new controller has not heard: it begins
        nowhere else, and raises UnknownSession.
        """
        asked = StartSession(session=session, task=task, sample=sample, seed=seed, lease_s=lease_s, digest=digest)
        doubtful_since = -math.inf if begun else math.inf

        async def ask() -> Started:
            nonlocal doubtful_since
            asked_at = time.monotonic()
            if asked_at - doubtful_since > DOUBTFUL_S:
                await self._check_known(session)
            request = asked if log is None else asked.model_copy(update={"replies": tuple(log.replies)})
            body = await asyncio.to_thread(json_of, request) if request.replies else json_of(request)
            url = f"{self._url}/sessions"
            try:
                return await _logged(log, self._caller.call("POST", url, Started, body, deadline_s=CALL_S))
            except (InWork, ServerUnreachable) as error:
                if not (isinstance(error, ServerUnreachable) and error.never_sent):
                    doubtful_since = min(doubtful_since, asked_at)
                raise

        started = await self._retry_until_available(f"a session of {task}", ask, patience_s)
        await self._reachable(started.url.rstrip("/"))  # while the controller is there
        return started

    async def _check_known(self, session: str) -> None:
        """Raises UnknownSession where no worker that the server knows has the session."""
        request = RenewLeases(sessions=(session,))
        url = f"{self._url}/leases"
        if (await self._caller.call("POST", url, LeasesRenewed, request, deadline_s=CALL_S)).lost:
            raise UnknownSession(f"session {session} lives no more, or at a worker that {self._url} does not know")

    async def turn(self, url: str, session: str, n: int, reply: Reply, log: ReplyLog | None = None) -> Step:
        """What came after turn `n` of a session pinned to the worker at `url`."""

        async def ask(base: str) -> TurnResponse:
            request = TurnRequest(turn=n, reply=reply, replies=None if log is None else len(log.replies))
            turns = f"{base}/sessions/{session}/turns"
            return await _logged(log, self._caller.call("POST", turns, TurnResponse, request, deadline_s=CALL_S))

        return (await self._retry_until_available(f"a turn at {url}", lambda: self._routed(url, ask))).step

    async def end(self, session: str, url: str | None = None) -> None:
        """End a session: what it held is freed, and the record of its last step too. Repeatable."""
        await self._retry_until_available(
            "a session's end",
            lambda: self._routed(
                url or self._url,
                lambda base: self._caller.done("DELETE", f"{base}/sessions/{session}", deadline_s=CALL_S),
            ),
        )

    async def renew(self, url: str, sessions: Sequence[str]) -> tuple[str, ...]:
        """Keep the sessions pinned to the worker at `url` alive; those of them that are lost."""
        request = RenewLeases(sessions=tuple(sessions))
        renewed = await self._retry_until_available(
            f"leases at {url}",
            lambda: self._routed(
                url,
                lambda base: self._caller.call("POST", f"{base}/leases", LeasesRenewed, request, deadline_s=CALL_S),
            ),
        )
        return renewed.lost

    async def summarize(
        self, task: str, finishes: Sequence[Finish], clusters: Sequence[int] = (), *, digest: str | None = None
    ) -> Summary:
        """The environment's own metrics over finishes; `clusters` says which of them belong together."""
        asked = SummarizeRequest(finishes=tuple(finishes), clusters=tuple(clusters), digest=digest)
        request = await asyncio.to_thread(json_of, asked)
        return await self._retry_until_available(
            f"the summary of {task}",
            lambda: self._caller.call(
                "POST",
                f"{self._url}/tasks/{quote(task, safe='')}/summary",
                Summary,
                request,
                deadline_s=SUMMARY_S,
            ),
        )

    async def _retry_until_available(
        self, what: str, attempt: Callable[[], Awaitable[Answer]], patience_s: float | None = None
    ) -> Answer:
        """The one retry loop: every request may be repeated. `what` names what is asked for."""
        call = Call(what, time.monotonic())
        self.calls[id(call)] = call
        try:
            return await self._until_answered(call, attempt, self._patience_s if patience_s is None else patience_s)
        finally:
            del self.calls[id(call)]

    async def _until_answered(self, call: Call, attempt: Callable[[], Awaitable[Answer]], patience_s: float) -> Answer:
        began = trusted = call.since
        failures = 0
        while True:
            try:
                return await attempt()
            except InWork:
                trusted, failures, call.trouble = time.monotonic(), 0, "the environment is at work on it"
                if trusted - began > self._step_s:
                    raise
            except TaskServerError as error:
                call.trouble = str(error)
                wait_s = pause_s(failures, error.retry_after_s, random.random())
                if not error.retryable or time.monotonic() + wait_s - trusted > patience_s:
                    raise
                failures += 1
                await asyncio.sleep(wait_s)

    async def _routed(self, url: str, call: Callable[[str], Awaitable[Answer]]) -> Answer:
        """A call to the pinned worker, or through the controller where it knows no such worker or it can't be reached.

        A session's server says where that is: asked to go anywhere else, the client would do as it is told.
        """
        url = url.rstrip("/")
        if await self._reachable(url):
            try:
                return await call(url)
            except ServerUnreachable:
                pass
        return await call(self._url)

    async def _reachable(self, url: str) -> bool:
        return url != self._url and not self._relayed and await self._reach.reaches(url)

    async def _probe(self, url: str) -> bool:
        """Whether the controller names a worker at this URL, and that answers from here."""
        try:
            listed = await self._retry_until_available(
                "its workers",
                lambda: self._caller.call("GET", f"{self._url}/workers", WorkerList, deadline_s=CALL_S),
            )
            if url not in {worker.url.rstrip("/") for worker in listed.workers}:
                log.warning("%s names no worker at %s: its sessions are played through the former", self._url, url)
                return False
            alive = await self._prober.call("GET", f"{url}/healthz", Health, deadline_s=PROBE_S)
        except TaskServerError:
            return False
        return alive.url.rstrip("/") == url


async def _logged(log: ReplyLog | None, call: Awaitable[Stepped]) -> Stepped:
    """An answer whose replies are kept, and so are those that come before it."""
    try:
        answer = await call
    except InWork as work:
        if log is not None and work.replies:
            await log.add(work.replies)
        raise
    if log is not None and answer.replies:
        await log.add(answer.replies)
    return answer
