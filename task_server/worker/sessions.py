"""The sessions of a worker. `play` runs as an asyncio task and waits in each `act` for the next turn's request."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from proctor.environment import Agent, Environment
from proctor.observability import gen_ai, logging, tracing
from proctor.observability.spans import Span
from proctor.session.kept_replies import SessionReplies, session_replies
from proctor.session.play import play_to_finish
from proctor.types import Action, Finish, FinishReason, Observation, Tool
from task_server.metrics import SessionMetrics
from task_server.wire.errors import BadRequest, InWork, NoCapacity, UnknownSession
from task_server.wire.messages import STEP_WAIT_S, Act, StartSession, Step, TurnRequest, TurnResponse
from task_server.wire.offered_tools import OfferedTools
from task_server.wire.turns import Lease, Reply, Turns, stopped_by

FINISHED_S = 15.0
"""The last step of a finished session is kept this long for repeated requests, each of which extends the time."""
END_S = 10.0
"""Ending a session waits this long for its clean-up. A clean-up that takes longer goes on, and keeps the slot."""

UNKNOWN_TOOL = "unknown"
LONGEST_ID = 128
"""Characters of a call's id in its span."""


class Session(Agent):
    """One session. It is the agent of its `play`: `act` passes the observation to the client and awaits the answer."""

    def __init__(self, request: StartSession, now: Callable[[], float], metrics: SessionMetrics) -> None:
        self.request = request
        self.lease = Lease.granted(request.lease_s, now())
        self._now, self._metrics = now, metrics
        self._asked_at, self._span = now(), tracing.begin("environment step", turn=0)
        self._calls: list[Span] = []
        self._ended = False
        self._turns, self._offered = Turns(), OfferedTools()
        self._next_step: asyncio.Future[Step] = asyncio.get_running_loop().create_future()
        self._reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._acting = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._replies = SessionReplies(request.replies or (), lambda: self._loop.call_soon_threadsafe(self._announce))
        self._reply_news: asyncio.Future[None] = self._loop.create_future()

    async def act(self, observation: Observation) -> Action:
        async with self._acting:
            self._reply = asyncio.get_running_loop().create_future()
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
            awaited: list[asyncio.Future[Any]] = [step] if replies is None else [step, self._reply_news]
            timeout_s = min(STEP_WAIT_S, self.request.lease_s / 2)
            await asyncio.wait(awaited, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        news = self._replies.since(replies) if replies is not None else ()
        if not step.done():
            raise InWork("the environment still works on this step; ask again", replies=news)
        return TurnResponse(step=step.result(), replies=news)

    async def turn(self, request: TurnRequest) -> TurnResponse:
        """Apply the answer to a turn, unless it is a repeat; the next step.

        Raises TurnConflict, InWork, UnknownSession.
        """
        self._turns, new = self._turns.replied(request.turn, request.reply)
        if new:
            self._metrics.turns(self.request.task).inc()
            self._asked_at, self._span = self._now(), tracing.begin("environment step", turn=request.turn)
            self._next_step = asyncio.get_running_loop().create_future()
            if not self._reply.done():  # it is done if the environment cancelled the wait
                self._reply.set_result(request.reply)
        return await self.current_step(request.replies)

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
            f"{gen_ai.EXECUTE_TOOL} {name}",
            "internal",
            **{gen_ai.OPERATION: gen_ai.EXECUTE_TOOL, gen_ai.TOOL: name, gen_ai.TOOL_CALL: call.id[:LONGEST_ID]},
        )
        for call in action.tool_calls
        for name in [call.name if call.name in names else UNKNOWN_TOOL]
    ]


class Sessions:
    """All sessions of a worker. A slot is in use while `play` runs, its clean-up included."""

    def __init__(self, now: Callable[[], float], changed: Callable[[], None]) -> None:
        self.metrics = SessionMetrics()
        self._now = now
        self._changed = changed
        self._sessions: dict[str, Session] = {}
        self._plays: dict[str, asyncio.Task[Finish]] = {}
        self._ended: dict[str, Lease] = {}
        self._live: dict[str, int] = {}

    def start(self, request: StartSession, environment: Environment, capacity: int) -> Session:
        """Start a session; `find` returns it from now on. Raises NoCapacity."""
        if self.live(request.task) >= capacity:
            raise NoCapacity(f"all {capacity} slots of task {request.task!r} are taken", retry_after_s=1.0)
        session = Session(request, self._now, self.metrics)
        self.metrics.started(request.task).inc()
        play = asyncio.create_task(session.run(environment), name=f"session {request.session}")
        self._sessions[request.session] = session
        self._plays[request.session] = play
        self._live[request.task] = self.live(request.task) + 1
        play.add_done_callback(lambda _: self._freed(request))
        self._changed()
        return session

    def find_started(self, request: StartSession) -> Session | None:
        """The session that an equal request started, its lease renewed; None if there was none.

        Raises BadRequest for a different request with the same id, UnknownSession for a session that was ended.
        """
        session = self._sessions.get(request.session)
        if session is None:
            if request.session in self._ended or request.session in self._plays:
                raise UnknownSession("the session was ended")
            return None
        may_differ = {"lease_s": request.lease_s, "digest": request.digest, "replies": request.replies}
        if session.request.model_copy(update=may_differ) != request:
            raise BadRequest(f"session {request.session} was started with another task, sample or seed")
        session.lease = session.lease.renewed(self._now())
        return session

    def find(self, session_id: str) -> Session:
        """A session by its id, its lease renewed. Raises UnknownSession."""
        session = self._sessions.get(session_id)
        if session is None:
            raise UnknownSession(f"session {session_id} was never started here, was ended, or its lease ran out")
        session.lease = session.lease.renewed(self._now())
        return session

    def renew(self, session_ids: Iterable[str]) -> tuple[str, ...]:
        """Renew leases; the ids whose sessions are no longer here."""
        now, lost = self._now(), []
        for session_id in session_ids:
            session = self._sessions.get(session_id)
            if session is None:
                lost.append(session_id)
            else:
                session.lease = session.lease.renewed(now)
        return tuple(lost)

    async def end(self, session_id: str) -> None:
        """End a session and wait, up to END_S, until its resources are freed. Repeatable."""
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
        self._ended = {session_id: lease for session_id, lease in self._ended.items() if not lease.expired(now)}
        return playing

    def live(self, task: str) -> int:
        """How many slots of a task are in use."""
        return self._live.get(task, 0)

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
        self._ended[session_id] = session.lease.renewed(self._now())
        session.lost()
        if play := self._plays.get(session_id):
            play.cancel()

    def _freed(self, request: StartSession) -> None:
        if session := self._sessions.get(request.session):
            session.lease = Lease.granted(min(FINISHED_S, request.lease_s), self._now())
        del self._plays[request.session]
        self._live[request.task] -= 1
        self._changed()
