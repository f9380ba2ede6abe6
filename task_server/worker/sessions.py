"""The sessions of a worker. `play` runs as an asyncio task and waits in each `act` for the next turn's request."""

import asyncio
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from proctor import event_loop
from proctor.environment import Agent, Environment
from proctor.observability import logging, tracing
from proctor.observability.tracing import Span
from proctor.session.kept_replies import SessionReplies, session_replies
from proctor.session.play import play_to_finish
from proctor.types import Action, Finish, FinishReason, Observation, Tool
from task_server.metrics import SessionMetrics
from task_server.shares import Holder, holder_of
from task_server.wire.clients import Clients, Succession
from task_server.wire.errors import BadRequest, InWork, NoCapacity, UnknownSession
from task_server.wire.messages import (
    NOBODY,
    STEP_WAIT_S,
    Act,
    Finished,
    LeasesRenewed,
    Sender,
    StartSession,
    Step,
    TurnRequest,
    TurnResponse,
)
from task_server.wire.offered_tools import OfferedTools
from task_server.wire.turns import Lease, Reply, Turns, stopped_by
from task_server.wire.worker_messages import Hold

FINISHED_S = 15.0
"""The last step of a finished session is kept this long for repeated requests, each of which extends the time."""
END_S = 10.0
"""Ending a session waits this long for its clean-up. A clean-up that takes longer goes on, and keeps the slot."""
TICK_S = 0.5
"""How often a worker looks for leases that have expired."""
LONGEST_ID = 128
"""Characters of a call's id in its span."""


class Session(Agent):
    """One session. It is the agent of its `play`: `act` passes the observation to the client and awaits the answer."""

    def __init__(self, request: StartSession, now: Callable[[], float], metrics: SessionMetrics) -> None:
        self.request = request
        self.lease, self.succession = Lease.granted(request.lease_s, now()), Succession()
        self.blocked_before_s = 0.0
        """How long the event loop had been blocked when it started."""
        self._now, self._metrics = now, metrics
        self._asked_at, self._span = now(), tracing.begin("environment step", turn=0)
        self._calls: list[Span] = []
        self._ended = False
        self._turns, self._offered = Turns(), OfferedTools()
        self._loop, self._acting = asyncio.get_running_loop(), asyncio.Lock()
        self._next_step: asyncio.Future[Step] = self._loop.create_future()
        self._reply: asyncio.Future[Reply] = self._loop.create_future()
        self._replies = SessionReplies(request.replies or (), lambda: self._loop.call_soon_threadsafe(self._announce))
        self._reply_news: asyncio.Future[None] = self._loop.create_future()

    async def act(self, observation: Observation) -> Action:
        async with self._acting:
            self._reply = self._loop.create_future()
            self._arrived(self._turns.observed(self._offered.step(self._turns.answered + 1, observation)))
            reply = await self._reply
        self._span.adopt()
        if isinstance(reply, Act):
            self._calls = tool_spans(reply.action, observation.tools)
            return reply.action
        raise stopped_by(reply)

    async def run(self, environment: Environment) -> Finish:
        """Play to the finish, which is kept for repeated requests of the last turn."""
        logging.about(session=self.request.session)
        session_replies.set(self._replies)
        self._span.adopt()
        finish = Finish.fault(FinishReason.TASK_ERROR, "CancelledError: the environment cancelled itself")
        try:
            finish = await play_to_finish(environment, self.request.sample, self, self.request.seed)
        finally:
            if not self._ended:
                self._metrics.finished(self.request.task, finish)
            self._arrived(self._turns.finished(finish))
        return finish

    async def current_step(self, replies: int | None = None) -> TurnResponse:
        """The session's current step, once it is there: its first one, that after a turn, or the one a client left.

        `replies` is how many `KeptReply` the client has. Raises InWork, UnknownSession.
        """
        step, has_news = self._next_step, replies is not None and replies < len(self._replies)
        if not step.done() and not has_news:
            await asyncio.sleep(0)  # most worlds answer within it, which spares the waiting
            if step.done() and isinstance(step.result(), Finished):
                await asyncio.sleep(0)  # in which its slot is freed
        if not step.done() and not has_news:
            awaited: list[asyncio.Future[Any]] = [step] if replies is None else [step, self._reply_news]
            timeout_s = min(STEP_WAIT_S, self.request.lease_s / 2)
            await asyncio.wait(awaited, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        news = self._replies.since(replies) if replies is not None else ()
        if not step.done():
            raise InWork("the environment still works on this step; ask again", replies=news)
        return TurnResponse(step=step.result(), replies=news)

    def turn(self, request: TurnRequest) -> Coroutine[Any, Any, TurnResponse]:
        """Apply the answer to a turn, unless it is a repeat; the next step.

        Raises TurnConflict, InWork, UnknownSession.
        """
        self._turns, new = self._turns.replied(request.turn, request.reply)
        if new:
            self._metrics.turns(self.request.task).inc()
            self._asked_at, self._span = self._now(), tracing.begin("environment step", turn=request.turn)
            self._next_step = self._loop.create_future()
            if not self._reply.done():  # it is done if the environment cancelled the wait
                self._reply.set_result(request.reply)
        return self.current_step(request.replies)

    def lost(self) -> None:
        """Fail the requests that wait for a step with UnknownSession: the session has ended."""
        self._ended = True
        self._end_spans()
        if not self._next_step.done():
            self._next_step.set_exception(UnknownSession("the session was ended"))
            self._next_step.exception()  # marks it retrieved: there may be no waiting request

    def _arrived(self, turns: Turns) -> None:
        self._turns = turns
        if not self._next_step.done() and turns.step is not None:
            self._metrics.stepped(self.request.task, turns.answered, self._now() - self._asked_at)
            self._end_spans()
            self._next_step.set_result(turns.step)

    def _end_spans(self) -> None:
        for span in (*self._calls, self._span):
            span.end()
        self._calls = []

    def _announce(self) -> None:
        """Send a new model reply to the client ahead of the step, so that a paid reply is durable."""
        self._reply_news.set_result(None)
        self._reply_news = self._loop.create_future()


def tool_spans(action: Action, offered: Sequence[Tool]) -> list[Span]:
    """A span for each call, until the environment has answered all of them.

    A name that was not offered is not recorded: it may be any text of the model.
    """
    if not action.tool_calls or not tracing.recorders:
        return []
    names = {tool.name for tool in offered}
    return [
        tracing.begin(
            f"{tracing.EXECUTE_TOOL} {name}",
            "internal",
            **{tracing.OPERATION: tracing.EXECUTE_TOOL, tracing.TOOL: name, tracing.TOOL_CALL: call.id[:LONGEST_ID]},
        )
        for call in action.tool_calls
        for name in [call.name if call.name in names else "unknown"]
    ]


class _Ended(NamedTuple):
    """What is kept of a session that was ended, until the lease ends."""

    lease: Lease
    succession: Succession


class Sessions:
    """All sessions of a worker. A slot is in use while `play` runs, its clean-up included."""

    def __init__(
        self,
        now: Callable[[], float],
        changed: Callable[[], None],
        freed: Callable[[str, Holder], None] = lambda task, holder: None,
    ) -> None:
        """`freed` is called with the task and the holder of each session whose slot is free again."""
        self.metrics = SessionMetrics()
        self._now = now
        self._changed = changed
        self._clients = Clients()
        self._sessions: dict[str, Session] = {}
        self._plays: dict[str, asyncio.Task[Finish]] = {}
        self._ended: dict[str, _Ended] = {}
        self._live = defaultdict[str, Counter[Holder]](Counter)
        """task -> for whom its sessions play"""
        self._slot_freed = freed
        self._ticked_at, self._blocked_s = now(), 0.0
        self._may_block_s: float | None = None

    def tick(self) -> None:
        """Know that the event loop runs; called every TICK_S. No session may block it for longer than it says.

        A lease does not run while the loop is blocked.
        """
        before_s, self._blocked_s, self._ticked_at = self._blocked_s, self.blocked_s(), self._now()
        if blocked_s := self._blocked_s - before_s:
            for session in self._sessions.values():
                session.lease = session.lease.extended(blocked_s)
        self._clients.forget_silent(self._unblocked())
        self._guard()

    def _guard(self) -> None:
        limits = (self._sessions[each].request.blocks_s for each in self._plays if each in self._sessions)
        self._may_block_s = min(filter(None, limits), default=None)
        event_loop.may_block(self._may_block_s, self._named)

    def blocked_s(self) -> float:
        """How long the event loop was blocked in all."""
        late_s = self._now() - self._ticked_at - TICK_S
        return self._blocked_s + (late_s if late_s > event_loop.BLOCKED_S else 0.0)

    def _unblocked(self) -> float:
        """The time in which requests were read: a client is not silent while this worker does not listen."""
        return self._now() - self.blocked_s()

    def _admit(self, session_id: str, sender: Sender) -> Session | None:
        """The session, which its sender may use; None if there is none. Raises SessionHeld, SessionTaken."""
        self._clients.hear(sender, now := self._unblocked())
        if session := self._sessions.get(session_id):
            session.succession = session.succession.admit(sender.client, self._clients, now)
        elif session_id in self._ended:
            self._ended[session_id].succession.check_not_taken(sender.client)
        return session

    def _named(self) -> str:
        """The session whose code runs."""
        session = self._sessions.get(known := logging.known_id("session"))
        return f"sample {session.request.sample} of task {session.request.task}" if session else f"session {known}"

    def start(self, request: StartSession, environment: Environment, capacity: int, sender: Sender = NOBODY) -> Session:
        """Start a session, which its sender has; `find` returns it from now on. Raises NoCapacity."""
        if self.live(request.task) >= capacity:
            raise NoCapacity(f"all {capacity} slots of task {request.task!r} are taken", retry_after_s=1.0)
        session, holder = Session(request, self._now, self.metrics), holder_of(sender)
        session.succession = Succession((sender.client,) if sender.client else ())
        self._clients.hear(sender, self._unblocked())
        session.blocked_before_s = self.blocked_s()
        self.metrics.started(request.task).inc()
        play = asyncio.create_task(session.run(environment), name=f"session {request.session}")
        self._sessions[request.session] = session
        self._plays[request.session] = play
        self._live[request.task][holder] += 1
        if request.blocks_s is not None and request.blocks_s < (self._may_block_s or math.inf):
            self._guard()
        play.add_done_callback(lambda _: self._freed(request, holder))
        self._changed()
        return session

    def find_started(self, request: StartSession, sender: Sender = NOBODY) -> Session | None:
        """The session that an equal request started, its lease renewed; None if there was none.

        Raises BadRequest for a different request with the same id, UnknownSession for a session that was ended,
        SessionHeld and SessionTaken where another client has it.
        """
        session = self._admit(request.session, sender)
        if session is None:
            if request.session in self._ended or request.session in self._plays:
                raise UnknownSession("the session was ended")
            return None
        may_differ = {name: getattr(request, name) for name in ("lease_s", "digest", "replies", "blocks_s")}
        if session.request.model_copy(update=may_differ) != request:
            raise BadRequest(f"session {request.session} was started with another task, sample or seed")
        session.lease = session.lease.renewed(self._now())
        return session

    def find(self, session_id: str, sender: Sender = NOBODY) -> Session:
        """A session by its id, its lease renewed. Raises UnknownSession, SessionHeld, SessionTaken."""
        session = self._admit(session_id, sender)
        if session is None:
            raise UnknownSession(f"session {session_id} was never started here, was ended, or its lease ran out")
        session.lease = session.lease.renewed(self._now())
        return session

    def renew(self, session_ids: Sequence[str], sender: Sender = NOBODY) -> LeasesRenewed:
        """Renew leases: all, or none. Raises SessionHeld, SessionTaken where another client has a session."""
        now, blocked_s, blocked_now_s = self._now(), 0.0, self.blocked_s()
        self._clients.hear(sender, self._unblocked())
        found = {session_id: self._admit(session_id, sender) for session_id in session_ids}
        for session in filter(None, found.values()):
            session.lease = session.lease.renewed(now)
            blocked_s = max(blocked_s, blocked_now_s - session.blocked_before_s)
        lost = tuple(session_id for session_id, session in found.items() if session is None)
        others = self._clients.others(sender, self._unblocked())
        return LeasesRenewed(lost=lost, blocked_s=blocked_s if sender.client else 0.0, others=others)

    async def end(self, session_id: str, sender: Sender = NOBODY) -> None:
        """End a session and wait, up to END_S, until its resources are freed. Repeatable.

        Raises SessionHeld, SessionTaken where another client has it.
        """
        self._admit(session_id, sender)
        self._drop(session_id)
        if play := self._plays.get(session_id):
            await asyncio.wait([play], timeout=END_S)

    async def end_all(self) -> None:
        """End every session and wait, up to END_S, until their resources are freed."""
        for session_id in self.held():
            self._drop(session_id)
        if self._plays:
            await asyncio.wait(list(self._plays.values()), timeout=END_S)

    def expire(self) -> int:
        """End the sessions whose lease has expired, without waiting; how many of them were still playing."""
        now = self._now()
        expired = [session_id for session_id, session in self._sessions.items() if session.lease.expired(now)]
        playing = sum(session_id in self._plays for session_id in expired)
        for session_id in expired:
            self._drop(session_id)
        self._ended = {session_id: ended for session_id, ended in self._ended.items() if not ended.lease.expired(now)}
        return playing

    def live(self, task: str) -> int:
        """How many slots of a task are in use."""
        return self._live[task].total()

    def holds(self) -> tuple[Hold, ...]:
        """For whom the sessions play, of clients that say it."""
        return tuple(
            Hold(task=task, run=holder.run, user=holder.user, sessions=count)
            for task, live in self._live.items()
            for holder, count in live.items()
            if count and holder.run
        )

    def held(self) -> tuple[str, ...]:
        """The ids of the sessions whose steps can still be requested, finished ones included."""
        return tuple(self._sessions)

    def idle(self) -> bool:
        """True if no `play` is running."""
        return not self._plays

    def _drop(self, session_id: str) -> None:
        session = self._sessions.pop(session_id, None)
        if session is None:
            return
        self._ended[session_id] = _Ended(session.lease.renewed(self._now()), session.succession)
        session.lost()
        if play := self._plays.get(session_id):
            play.cancel()

    def _freed(self, request: StartSession, holder: Holder) -> None:
        if session := self._sessions.get(request.session):
            session.lease = Lease.granted(min(FINISHED_S, request.lease_s), self._now())
        del self._plays[request.session]
        live = self._live[request.task]
        live[holder] -= 1
        if not live[holder]:
            del live[holder]
        self._slot_freed(request.task, holder)
        self._changed()
