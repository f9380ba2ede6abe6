"""Foreign sessions: clients of another wire play sessions of a task server. Nothing here knows a wire.

How to add a wire NAME:

1. `NAME.py`: pure. The types of its requests and replies, and functions that translate: our `Observation`, `Finish`,
   `Offer` to its values, its values to our `Reply` (`Act` or `Stop`).
2. `NAME_routes.py`: thin. A function that adds the routes of a `Gateway` (`add_route`), and `WIRE`, a `ForeignWire`.
   A handler reads the request, calls `Gateway.start`, `Gateway.find`, `ForeignSession.step` or `Gateway.cancel`, and
   writes the translated answer. Before it sends the answer to a step, it sets `ForeignSession.answer_lost` where its
   client has gone (`wires.py`, `note_delivery`).
3. An entry point of the group `proctor.wires`, which also makes the option `proctor serve --NAME`.

A step never raises for a failure of the task server: the session then ends with a fault, which is a `Finish` without a
score. A wire must show it as an error, never as a score.
"""

import asyncio
import itertools
import logging
import secrets
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress

from proctor.event_loop import beside
from proctor.types import Finish, FinishReason, Summary
from proctor_bridges.gateway.foreign_session import (
    ForeignSession,
    NoSlot,
    NoSuchSample,
    NotOffered,
    Offer,
    SessionGone,
    StepUnderWay,
)
from task_server.client.client import TaskClient
from task_server.wire.errors import NoCapacity, NotReady, TaskServerError, UnknownSample, UnknownTask
from task_server.wire.messages import SESSION_LEASE_S, Act, SampleList, TaskCapacity
from task_server.wire.turns import Reply

log = logging.getLogger(__name__)

RENEW_S = SESSION_LEASE_S / 4
TICK_S = 0.5
CATALOGUE_S = 5.0
"""The samples of a task are waited for this long."""
LAST_ENDS_S = 5.0
"""At its end the gateway waits this long for its sessions to end at the task server; then their leases end them."""


class Gateway:
    """The foreign sessions of one wire. What is idle for `idle_s` is ended; until then its lease is renewed."""

    def __init__(self, client: TaskClient, idle_s: float, now: Callable[[], float] = time.monotonic) -> None:
        self._client, self._idle_s, self._now = client, idle_s, now
        self._sessions: dict[Hashable, ForeignSession] = {}
        self._catalogues: dict[tuple[str, str], SampleList] = {}
        self._numbers = itertools.count(int(time.time() * 1000))
        """Ids for wires that don't choose their own. Two lives of this process share none."""
        self._ending: set[asyncio.Task[None]] = set()
        self._renewed_at = now()
        self._draining = False
        self._ended = asyncio.Event()
        """Set whenever a session ends."""

    async def offers(self) -> dict[str, Offer]:
        """The tasks by name, without those that are for built-in agents alone or were never ready."""
        return await self._offers(await self._listed())

    async def offer(self, task: str) -> Offer:
        """One task; the samples of others are not read for it. Raises NotOffered."""
        listed = await self._listed()
        found = await self._offers([each for each in listed if each.name == task])
        if task not in found:
            names = ", ".join(sorted(await self._offers(listed))) or "none"
            raise NotOffered(f"no task {task[:100]!r} is offered; there are: {names}")
        return found[task]

    async def start(
        self, task: str, sample: str, seed: int = 0, *, id: Hashable = None, patience_s: float = 0.0
    ) -> ForeignSession:
        """Start a session under the wire's own id, or the next number; a slot is waited for up to `patience_s`.

        Raises NotOffered, NoSuchSample, NoSlot. Any other failure is the session's finish.
        """
        offer = await self.offer(task)
        if sample not in offer.catalogue.samples:
            raise NoSuchSample(f"task {task!r} has no sample {sample[:100]!r}")
        if self._draining:
            raise NoSlot("this server is stopping")
        waiting = Finish.fault(FinishReason.TASK_ERROR, "the session has not started")
        session = ForeignSession(next(self._numbers) if id is None else id, offer.catalogue, sample, waiting)
        session.server_id, session.used_at = secrets.token_hex(16), self._now()
        try:
            session.started = await self._client.start(session.server_id, task, sample, seed, patience_s=patience_s)
            session.see(session.started.step)
        except (NoCapacity, NotReady) as error:
            raise NoSlot(f"no session of task {task!r} can start now: {error}") from error
        except (UnknownTask, UnknownSample) as error:
            raise NotOffered(str(error)) from error
        except TaskServerError as error:
            session.fail(f"the session could not start: {error}")
        self._sessions[session.id] = session
        self._free_if_over(session)
        return session

    def find(self, id: Hashable) -> ForeignSession:
        """The session of this id, live or finished not long ago. Raises SessionGone."""
        if id not in self._sessions:
            raise SessionGone(f"no session {str(id)[:100]}: it never was, it ended, or it was idle too long")
        session = self._sessions[id]
        session.used_at = self._now()
        return session

    async def step(self, session: ForeignSession, reply: Reply, key: Hashable = None) -> None:
        """Answer the current observation; `session.state` is then the next one, or the finish.

        A repetition of the last request changes nothing. A wire whose requests have ids passes them as `key`. Raises
        SessionGone where the session is over, StepUnderWay where it works on another answer.
        """
        session.used_at = self._now()
        waited = session.lock.locked()
        if waited and not session.repeats(reply, key, waited):
            raise StepUnderWay("the session still works on another request; wait for its answer")
        async with session.lock:
            if not session.repeats(reply, key, waited):
                await self._step(session, reply, key)
            session.used_at = self._now()

    async def cancel(self, session: ForeignSession) -> None:
        """End a session and forget it."""
        self._sessions.pop(session.id, None)
        if session.live:
            session.fail("the session was cancelled")
            self._end_soon(session)

    async def summarize(self, task: str, finishes: Sequence[Finish], clusters: Sequence[int]) -> Summary:
        """The environment's metrics over finishes. Raises TaskServerError."""
        return await self._client.summarize(task, finishes, clusters)

    def sessions(self) -> Iterator[ForeignSession]:
        """The live sessions, oldest first."""
        return (session for session in tuple(self._sessions.values()) if session.live)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Renew leases and end what is idle; at the end, end all sessions."""
        try:
            with beside(self._watch()):
                yield
        finally:
            for session in tuple(self.sessions()):
                await self.cancel(session)
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_ENDS_S):
                    while self._ending:
                        await asyncio.wait(self._ending)
            for ending in self._ending:
                ending.cancel()

    async def drain(self, grace_s: float) -> None:
        """Start no more sessions, and wait up to `grace_s` for the live ones."""
        self._draining = True
        until = self._now() + grace_s
        while any(True for _ in self.sessions()) and (left_s := until - self._now()) > 0:
            self._ended.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._ended.wait()

    async def _step(self, session: ForeignSession, reply: Reply, key: Hashable) -> None:
        if session.started is None or not session.live:
            raise SessionGone("the session is over")
        url, n = session.started.url, session.turn + 1
        reply = session.answered(reply, key)
        try:
            step = await self._client.turn(url, session.server_id, n, _without_echo(reply))
        except TaskServerError as error:
            session.fail(f"turn {n} failed: {error}")
        else:
            if session.live:  # else it was cancelled meanwhile
                session.see(step)
        self._free_if_over(session)

    async def _listed(self) -> Sequence[TaskCapacity]:
        """The tasks now. What is known of tasks that are no longer listed is forgotten."""
        listed = (await self._client.tasks()).tasks
        for gone in self._catalogues.keys() - {(each.name, each.digest) for each in listed}:
            self._catalogues.pop(gone, None)
        return listed

    async def _offers(self, listed: Sequence[TaskCapacity]) -> dict[str, Offer]:
        # where workers differ in digest, the task's own entry is its last, without one
        ready = [each for each in listed if each.digest is not None or each.waiting is None]
        catalogues = await asyncio.gather(*(self._catalogue(each.name, each.digest) for each in ready))
        return {
            each.name: Offer(catalogue, each.total, each.free, each.waiting)
            for each, catalogue in zip(ready, catalogues, strict=True)
            if catalogue is not None and not catalogue.trusted_agents_only
        }

    async def _catalogue(self, task: str, digest: str | None) -> SampleList | None:
        """The samples of a task; None while its server can't tell them."""
        known = self._catalogues.get((task, digest or ""))
        if known is not None:
            return known
        try:
            async with asyncio.timeout(CATALOGUE_S):
                catalogue = await self._client.samples(task, digest)
        except (TaskServerError, TimeoutError) as error:
            log.warning("task %s is not offered: its samples can't be read: %s", task, error)
            return None
        if digest is not None:
            self._catalogues[task, digest] = catalogue
        return catalogue

    def _free_if_over(self, session: ForeignSession) -> None:
        if not session.live:
            self._end_soon(session)

    def _end_soon(self, session: ForeignSession) -> None:
        """End it at the task server, without keeping the client waiting."""
        self._ended.set()
        if session.started is not None:
            ending = asyncio.create_task(self._end(session.server_id, session.started.url))
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    async def _end(self, server_id: str, url: str) -> None:
        with suppress(TaskServerError):  # its lease ends it
            await self._client.end(server_id, url)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            await self.tend()

    async def tend(self) -> None:
        """End what is idle, and renew the leases that are due."""
        now = self._now()
        for session in tuple(self._sessions.values()):
            if now - session.used_at > self._idle_s and not session.lock.locked():
                if session.live:
                    log.warning("a session of task %s ended: no request for %g s", session.task.task, self._idle_s)
                await self.cancel(session)
        if now - self._renewed_at >= RENEW_S:
            self._renewed_at = now
            await self._renew()

    async def _renew(self) -> None:
        by_url: defaultdict[str, list[ForeignSession]] = defaultdict(list)
        for session in self.sessions():
            if session.started is not None:
                by_url[session.started.url].append(session)
        await asyncio.gather(*(self._renew_at(url, sessions) for url, sessions in by_url.items()))

    async def _renew_at(self, url: str, sessions: list[ForeignSession]) -> None:
        try:
            async with asyncio.timeout(RENEW_S):
                lost = frozenset(await self._client.renew(url, [session.server_id for session in sessions]))
        except (TaskServerError, TimeoutError) as error:
            log.warning("leases at %s were not renewed: %s", url, error)
            return
        for session in sessions:
            if session.server_id in lost and session.live and not session.lock.locked():
                session.fail("the task server lost the session")
                self._free_if_over(session)


def _without_echo(reply: Reply) -> Reply:
    """The answer as environments get it."""
    return Act(action=reply.action.without_echo()) if isinstance(reply, Act) else reply
