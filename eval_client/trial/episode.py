"""One attempt at a trial, turn by turn: observe, ask the model, journal the answer, send it, until the finish."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Protocol

from pydantic_core import to_json

from eval_client.plan.entries import TrialLimits
from eval_client.store.journal import Cost
from eval_client.store.records import MODEL_CHARS, STOP_CHARS, Trial, Turn, answers, storable
from eval_client.store.tables import turn_table
from eval_client.store.values import parsed
from eval_client.trial.attempt import FAILURES, AttemptEnd, Diverged, OutOfTime
from proctor.environment import AgentStopped, AgentUnavailable, ConversationLost
from proctor.event_loop import played_clock
from proctor.llm.model import Completion
from proctor.llm.outage import EndpointDown, paid_by
from proctor.observability import tracing
from proctor.observability.tracing import Attribute
from proctor.session.kept_replies import KeptReply
from proctor.session.time_limit import TimeLimit, Untimed
from proctor.session.transcript import Transcript
from proctor.tools.histories import normalised
from proctor.types import NO_USAGE, FinishReason, Message, Observation, Tool, Usage
from task_server.client.client import ReplyLog
from task_server.wire.messages import Act, Observed, Started, Step, Stop
from task_server.wire.offered_tools import OfferedTools
from task_server.wire.turns import refused, stop_of, told


class Model(Protocol):
    """An agent's model, behind the limits of its endpoint."""

    async def __call__(
        self, messages: Sequence[Message], tools: Sequence[Tool], metadata: Mapping[str, str]
    ) -> Completion:
        """The answer to the messages. Raises AgentStopped, AgentUnavailable, BudgetExhausted."""
        ...


class SessionServer(Protocol):
    """The calls of an attempt to a task server."""

    async def start(
        self, session: str, task: str, sample: str, seed: int, *, digest: str, log: ReplyLog, begun: bool
    ) -> Started:
        """Start the session on a task with this digest; its current step if it lives already.

        With `begun`, an earlier client may have started the session. It is not started a second time then: this raises
        UnknownSession if no worker has it.
        """
        ...

    async def turn(self, url: str, session: str, n: int, reply: Act | Stop, log: ReplyLog) -> Step:
        """Answer turn `n`; the next step."""
        ...

    async def blocked_s(self, url: str, session: str) -> float:
        """How long the worker of a session answered nobody since the session started."""
        ...


@dataclass
class TrialHistory:
    """What a trial has paid for, over all its attempts and journals."""

    journal: int = 0
    """The number of the current journal; a replay that diverged began a new one."""
    turns: list[Turn] = field(default_factory=list)
    paid_before: Usage = NO_USAGE
    """Those of earlier journals."""
    calls: list[Turn] = field(default_factory=list)
    """The model calls that a function has made in the turn after these."""
    seconds: float = 0.0
    replies: list[KeptReply] = field(default_factory=list)
    """The replies of environment models, which serve every journal of the trial."""

    def tokens(self) -> Usage:
        """The tokens that the agent's answers in this trial cost."""
        return Usage(*map(sum, zip(self.paid_before, *map(Usage.of, (*self.turns, *self.calls)), strict=True)))

    def start_anew(self) -> None:
        """Begin a new journal, as the old one can't be replayed; its tokens stay counted."""
        self.paid_before = self.tokens()
        self.journal += 1
        self.turns, self.calls = [], []

    def cost(self) -> Cost:
        """The trial's cost so far."""
        return Cost(answers(self.turns), self.tokens(), self.seconds, sum(turn.is_cut for turn in self.turns))


@dataclass(frozen=True)
class Episode:
    """One attempt. It replays the turns in the journal, so no answer is paid for twice."""

    trial: Trial
    seed: int
    digest: str
    """The task's digest that the run began with."""
    session: str
    trial_history: TrialHistory
    model: Model
    server: SessionServer
    limits: TrialLimits
    write_turn: Callable[[Turn], Awaitable[None]]
    reply_log: ReplyLog
    stateful: bool = False
    """Whether the agent remembers the conversation, and can't be asked a turn again."""
    begun: bool = False
    """Whether an earlier client may have started the session."""
    scores_refusals: bool = True
    """Whether a trial whose input was refused has a score."""
    on_started: Callable[[Started], None] = lambda _: None
    on_turn_over: Callable[[], None] | None = None
    """Called when the environment has answered a turn, or failed to."""
    on_observation: Callable[[Observation], None] | None = None
    """Called with each observation that the model is to answer."""
    on_progress: Callable[[], None] = lambda: None
    """Called when the environment has carried out an answer that no attempt got beyond before."""
    _transcript: Transcript = field(default_factory=Transcript)
    _offered: OfferedTools = field(default_factory=OfferedTools)

    def play(self) -> Coroutine[Any, Any, AttemptEnd]:
        """Play to the finish or the first failure. Raises what is no failure of the attempt, such as Fenced.

        The time in which the environment of another session blocked the worker does not count.
        """
        return self._played(self.limits.seconds)

    async def _played(self, seconds: float | None, forgiven_s: float = 0.0) -> AttemptEnd:
        """The end. Out of time, the attempt goes on for as long as its worker was blocked, less what was forgiven."""
        begun = played_clock()
        limit = TimeLimit(seconds)
        try:
            with tracing.begin(f"{tracing.INVOKE_AGENT} {self.trial.agent}", "internal", **self._attributes()):
                with tracing.begin("session start"):
                    started = await self._start()
                self.on_started(started)
                async with limit:
                    step, sent_at = started.step, begun
                    if isinstance(step, Observed):
                        self._catch_up(step.turn)
                    while isinstance(step, Observed):
                        turn = self._turn(started.url, step, played_clock() - sent_at)
                        traced = tracing.within("turn", turn, turn=step.turn) if tracing.recorders else turn
                        try:
                            step, sent_at = await traced
                        finally:
                            if self.on_turn_over is not None:
                                self.on_turn_over()
                last = self.trial_history.turns[-1].reply if self.trial_history.turns else None
                return AttemptEnd.at(refused(step.finish, last, scored=self.scores_refusals))
        except TimeoutError:
            if not limit.expired:
                raise
            try:
                blocked_s = await self.server.blocked_s(started.url, self.session)
            except FAILURES as failure:
                return AttemptEnd.of(failure)
            if blocked_s > forgiven_s and self.stateful:
                return AttemptEnd.of(ConversationLost("a turn was broken off: its worker was blocked"))
            if blocked_s <= forgiven_s:
                return AttemptEnd.of(OutOfTime(f"limits.trial.seconds: not finished within {self.limits.seconds} s"))
        except FAILURES as failure:
            return AttemptEnd.of(failure)
        finally:
            self.trial_history.seconds += played_clock() - begun - limit.waited_s
        going_on = dataclasses.replace(self, begun=True, _transcript=Transcript(), _offered=OfferedTools())
        return await going_on._played(blocked_s - forgiven_s, blocked_s)

    def _attributes(self) -> dict[str, Attribute]:
        return {
            tracing.OPERATION: tracing.INVOKE_AGENT,
            tracing.AGENT: self.trial.agent,
            tracing.CONVERSATION: self.session,
            "number": self.trial.attempts,
        }

    async def _start(self) -> Started:
        trial = self.trial
        return await self.server.start(
            self.session,
            trial.task,
            trial.sample,
            self.seed,
            digest=self.digest,
            log=self.reply_log,
            begun=self.begun,
        )

    def _catch_up(self, turn: int) -> None:
        """Rebuild the transcript up to `turn` from the journal, for a session that outlived its client."""
        if turn > len(self.trial_history.turns) + 1:
            raise Diverged(f"the session is at turn {turn}, the journal ends at {len(self.trial_history.turns)}")
        for past in self.trial_history.turns[: turn - 1]:
            observation = parsed(turn_table.c.observation, Observation.model_validate_json, past.observation)
            self._offered.note(observation)
            self._transcript.observe(observation)
            self._remember(observation, past.reply)

    async def _turn(self, url: str, step: Observed, world_s: float) -> tuple[Step, float]:
        """Answer a turn, from the journal if it has the answer; the next step, and when the answer was sent."""
        observation, journalled = step.observation, self.trial_history.turns
        tools = self._offered.tools(step) if step.tools_as_before or observation.tools else ()
        history = self._transcript.observe(observation)
        encoded = to_json(observation)
        digest = observation.digest(encoded)
        if step.turn <= len(journalled):
            turn = journalled[step.turn - 1]
            if turn.digest != digest:
                raise Diverged(f"turn {step.turn} of the replay observed something else")
        else:
            answer: Completion | Stop | None = self._stopped(step.turn)
            paid: Completion | None = None
            if answer is None:
                if self.on_observation is not None:
                    self.on_observation(observation)
                metadata = {**self._metadata, "conversation": observation.conversation, "turn": str(step.turn)}
                try:
                    answer = await self.model(history, tools, metadata)
                except (AgentStopped, AgentUnavailable, EndpointDown, asyncio.CancelledError) as failed:
                    if (lost := paid_by(failed)) is not None:
                        self.trial_history.paid_before = self.trial_history.paid_before.plus(lost)
                    if not isinstance(failed, AgentStopped):
                        raise
                    answer = stop_of(failed)
                    paid = getattr(failed, "completion", None)
            if step.tools_as_before:
                encoded = to_json(observation, exclude={"tools"})
            asked = {"turn": step.turn, "digest": digest, "observation": encoded.decode(), "world_seconds": world_s}
            turn = Turn(**asked, **answered(answer, history, paid))
            with Untimed():  # what is written is known here too
                await self.write_turn(turn)
                journalled.append(turn)
                self.trial_history.calls.clear()
        reply = self._remember(observation, turn.reply)
        sent_at = played_clock()
        after = await self.server.turn(url, self.session, step.turn, reply, self.reply_log)
        if step.turn == len(journalled) and (isinstance(after, Observed) or not after.finish.reason.is_fault):
            self.on_progress()
        return after, sent_at

    def _remember(self, observation: Observation, reply: Act | Stop) -> Act | Stop:
        """Add an answer to the transcript; the answer as environments get it."""
        if isinstance(reply, Stop):
            return told(reply)
        self._transcript.answer(observation, reply.action)
        bare = reply.action.without_echo()
        return reply if bare is reply.action and reply.reading is None else Act(action=bare)

    def _stopped(self, turn: int) -> Stop | None:
        """The client's own answer where the agent was refused before, or a limit of the trial is reached."""
        limits, answered = self.limits, self.trial_history.turns
        last = answered[-1].reply if answered else None
        if isinstance(last, Stop) and last.reason is FinishReason.REFUSED:
            return last
        over = limits.turns is not None and turn > limits.turns
        if not over and limits.tokens is not None:
            over = sum(each.prompt_tokens + each.completion_tokens for each in answered) >= limits.tokens
        return Stop(reason=FinishReason.TURN_LIMIT) if over else None

    @cached_property
    def _metadata(self) -> dict[str, str]:
        """The metadata that all requests of the episode have."""
        trial = self.trial
        told = {"task": trial.task, "sample": trial.sample, "seed": str(self.seed), "epoch": str(trial.epoch)}
        return {**told, "session": self.session}


_storable = lru_cache(maxsize=1024)(storable)
"""Endpoints repeat the same few names."""


def answered(answer: Completion | Stop, history: Sequence[Message], paid: Completion | None = None) -> dict[str, Any]:
    """What the journal keeps of an answer; `paid` is what a refusal cost."""
    if not isinstance(answer, Stop):
        action, paid = answer.action, answer
        reply: Act | Stop = Act(action=normalised(action, history) if action.tool_calls else action)
    elif paid is None:
        return {"reply": answer}
    else:
        reply = answer
    return {
        **paid.usage._asdict(),
        "reply": reply,
        "model_seconds": paid.seconds,
        "tries": paid.tries,
        "stop": paid.stop and _storable(paid.stop, STOP_CHARS),
        "model": _storable(paid.model, MODEL_CHARS),
        "metered": paid.metered,
        "replica": paid.replica and _storable(paid.replica, MODEL_CHARS),
    }
