"""An attempt: journal before sending, replay without paying, limits, divergence. The server is the real one's core."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Mapping, Sequence

import pytest
from pydantic import JsonValue

from eval_client.core.events import AttemptOutcome
from eval_client.endpoints.limited_model import BudgetExhausted
from eval_client.plan.entries import TrialLimits
from eval_client.store.records import Trial, Turn
from eval_client.trial.attempt import AttemptEnd
from eval_client.trial.episode import Episode, TrialHistory
from eval_client.trial.episode import Model as AnyModel
from proctor.environment import Agent, AgentRefused, AgentUnavailable, ContextLimitExceeded, Environment, ToolsRefused
from proctor.llm.model import Completion
from proctor.session.kept_replies import KeptReply
from proctor.types import Action, Finish, FinishReason, Message, Observation, Tool, ToolCall, Usage
from task_server.client.client import ReplyLog
from task_server.wire.errors import DigestDiffers, NoCapacity, UnknownSession
from task_server.wire.messages import Act, Started, StartSession, Step, Stop, TurnRequest
from task_server.worker.sessions import Sessions

WORLD_S = 0.05
TRIAL = Trial(id=0, agent="a", task="t", sample="3", epoch=0)


class Counting(Environment):
    """Asks for the numbers 1, 2, ... up to the sample's; `noise` changes what it asks."""

    noise: str = ""

    def samples(self) -> Sequence[str]:
        return ("3",)

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        right = 0
        for number in range(1, int(sample) + 1):
            asked = Observation(messages=(Message(role="user", content=f"{self.noise}{number}, seed {seed}"),))
            right += (await agent.act(asked)).content == str(number)
        return Finish(reason=FinishReason.COMPLETED, score=right / int(sample))


class Server:
    """The real sessions, without HTTP."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self.sessions = Sessions(now=lambda: 0.0, changed=lambda: None)

    async def start(
        self, session: str, task: str, sample: str, seed: int, *, digest: str, log: ReplyLog, begun: bool = False
    ) -> Started:
        request = StartSession(session=session, task=task, sample=sample, seed=seed, digest=digest)
        found = self.sessions.find_started(request) or self.sessions.start(request, self._environment, capacity=4)
        return Started(worker="w", url="http://w", step=(await found.current_step()).step)

    async def turn(self, url: str, session: str, n: int, reply: Act | Stop, log: ReplyLog) -> Step:
        return (await self.sessions.find(session).turn(TurnRequest(turn=n, reply=reply))).step

    async def blocked_s(self, url: str, session: str) -> float:
        return self.sessions.renew([session]).blocked_s


class Model:
    """Answers the number asked for, and counts how often it is asked."""

    def __init__(self, fails_at: int = 0, failure: Exception | None = None) -> None:
        self.calls = 0
        self.histories: list[list[str]] = []
        self._fails_at, self._failure = fails_at, failure

    async def __call__(
        self, messages: Sequence[Message], tools: Sequence[Tool], metadata: Mapping[str, str]
    ) -> Completion:
        self.calls += 1
        if self.calls == self._fails_at and self._failure is not None:
            raise self._failure
        self.histories.append([message.content for message in messages])
        action = Action(content=metadata["turn"])
        usage = Usage(prompt_tokens=10, completion_tokens=1)
        return Completion(action=action, usage=usage, model="m", stop="stop", seconds=0.1, tries=1)


class NoReplies(ReplyLog):
    """Counting asks no model."""

    def __init__(self) -> None:
        self.replies: list[KeptReply] = []

    async def add(self, replies: Sequence[KeptReply]) -> None:
        raise AssertionError(replies)


def score_of(end: AttemptEnd) -> float | None:
    """The score of an attempt that finished."""
    assert end.finish is not None, end.cause
    return end.finish.score


class EpisodeParts:
    """Everything an episode needs, and the journal it writes."""

    def __init__(self, environment: Environment | None = None, trial_history: TrialHistory | None = None) -> None:
        self.server = Server(environment or Counting())
        self.trial_history = trial_history or TrialHistory()
        self.journal: list[Turn] = []

    def episode(
        self, model: AnyModel, session: str = "0" * 32, limits: TrialLimits | None = None, trial: Trial = TRIAL
    ) -> Episode:
        async def write(turn: Turn) -> None:
            self.journal.append(turn)

        return Episode(
            trial=trial,
            seed=7,
            digest="0",
            session=session,
            trial_history=self.trial_history,
            model=model,
            server=self.server,
            limits=limits or TrialLimits(),
            write_turn=write,
            reply_log=NoReplies(),
        )


@pytest.fixture
async def parts() -> AsyncIterator[EpisodeParts]:
    made = EpisodeParts()
    yield made
    await made.server.sessions.end_all()


async def test_every_turn_is_journalled_and_paid_once(parts: EpisodeParts) -> None:
    model = Model()
    end = await parts.episode(model).play()
    assert (score_of(end), model.calls, len(parts.journal)) == (1.0, 3, 3)
    assert model.histories[-1] == ["1, seed 7", "1", "2, seed 7", "2", "3, seed 7"]
    assert (parts.trial_history.cost().turns, parts.trial_history.tokens()) == (3, Usage(30, 3))


class Blocked(Server):
    """Its worker was blocked for a minute, by another session."""

    async def blocked_s(self, url: str, session: str) -> float:
        return 60.0


class Hanging(Model):
    """Does not answer its second call."""

    async def __call__(
        self, messages: Sequence[Message], tools: Sequence[Tool], metadata: Mapping[str, str]
    ) -> Completion:
        if self.calls == 1:
            self.calls += 1
            await asyncio.Event().wait()
        return await super().__call__(messages, tools, metadata)


@pytest.mark.parametrize("stateful", [False, True])
async def test_a_turn_that_was_broken_off_is_asked_again_unless_the_agent_remembers(
    stateful: bool, parts: EpisodeParts
) -> None:
    parts.server = Blocked(Counting())
    episode = parts.episode(Hanging(), limits=TrialLimits(seconds=0.5))
    end = await dataclasses.replace(episode, stateful=stateful).play()
    if not stateful:
        assert score_of(end) == 1.0
        return
    assert end.outcome is AttemptOutcome.DIVERGED
    assert "its worker was blocked" in end.cause


class Slow(Counting):
    """Takes its time before the second observation, and notes what it is answered."""

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        for number in range(1, 3):
            if number == 2:
                await asyncio.sleep(WORLD_S)
            action = await agent.act(Observation(messages=(Message(role="user", content=str(number)),)))
        detail: dict[str, JsonValue] = {"answer": action.model_dump(mode="json")}
        return Finish(reason=FinishReason.COMPLETED, score=1.0, detail=detail)


class Cut(Model):
    """A model behind a gateway: it thinks, its endpoint caches, and its calls are cut by `max_tokens`."""

    async def __call__(
        self, messages: Sequence[Message], tools: Sequence[Tool], metadata: Mapping[str, str]
    ) -> Completion:
        call = ToolCall(id="c", name="run", arguments='{"a', echo={"extra_content": 1})
        action = Action(content="", tool_calls=(call,), reasoning="hm", cut=True)
        usage = Usage(prompt_tokens=10, completion_tokens=4, cached_tokens=6, reasoning_tokens=3)
        metered, model = metadata["turn"] == "1", "m-1\0" + "x" * 300
        return Completion(action=action, usage=usage, metered=metered, model=model, stop="length", seconds=0.1, tries=1)


async def test_a_turn_keeps_what_the_endpoint_told_and_how_long_the_environment_took() -> None:
    parts = EpisodeParts(Slow())
    end = await parts.episode(Cut(), limits=TrialLimits(turns=3)).play()
    first, second = parts.journal
    assert (first.stop, first.model, first.metered, second.metered) == ("length", "m-1" + "x" * 252, True, False)
    for turn in (first, second):
        assert (turn.prompt_tokens, turn.completion_tokens, turn.cached_tokens, turn.reasoning_tokens) == (10, 4, 6, 3)
    assert first.world_seconds is not None
    assert second.world_seconds is not None
    assert first.world_seconds >= 0
    assert second.world_seconds >= WORLD_S
    assert parts.trial_history.tokens() == Usage(20, 8, 12, 6)
    cost = parts.trial_history.cost()
    assert (cost.usage, cost.cut_answers) == (parts.trial_history.tokens(), 2)
    assert end.finish is not None
    answer = end.finish.detail["answer"]
    assert isinstance(answer, dict)
    assert answer["cut"] is True, "the worker is told that the calls were cut"
    assert answer.keys() == {"content", "tool_calls", "cut"}, "and neither echo nor reasoning"
    await parts.server.sessions.end_all()


async def test_a_turn_at_which_the_client_stopped_has_no_endpoints_word(parts: EpisodeParts) -> None:
    await parts.episode(Model(), limits=TrialLimits(turns=1)).play()
    _, last = parts.journal
    assert isinstance(last.reply, Stop)
    assert (last.stop, last.model, last.metered) == (None, None, None)
    assert last.world_seconds is not None


@pytest.mark.parametrize("lost_after", [1, 2, 3])
async def test_a_lost_session_is_replayed_without_asking_again(parts: EpisodeParts, lost_after: int) -> None:
    first = Model(fails_at=lost_after, failure=KeyboardInterrupt())  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        await parts.episode(first).play()
    second = Model()
    assert score_of(await parts.episode(second, session="1" * 32).play()) == 1.0
    assert first.calls - 1 + second.calls == 3
    assert second.histories[-1] == ["1, seed 7", "1", "2, seed 7", "2", "3, seed 7"]


async def test_a_session_that_lives_on_is_continued_where_it_stands(parts: EpisodeParts) -> None:
    first = Model(fails_at=3, failure=KeyboardInterrupt())  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        await parts.episode(first).play()
    second = Model()
    assert score_of(await parts.episode(second).play()) == 1.0
    assert second.calls == 1
    assert second.histories == [["1, seed 7", "1", "2, seed 7", "2", "3, seed 7"]]


async def test_an_answer_journalled_but_never_sent_is_sent_not_asked_again(parts: EpisodeParts) -> None:
    """The client died between the journal and the server."""
    model = Model()
    started = await parts.server.start("0" * 32, "t", "3", 7, digest="0", log=NoReplies())
    assert started.step.kind == "observation"
    observation = started.step.observation
    answered = Turn(
        turn=1,
        digest=observation.digest(),
        observation=observation.model_dump_json(),
        reply=Act(action=Action(content="1")),
    )
    parts.trial_history.turns.append(answered)
    assert score_of(await parts.episode(model).play()) == 1.0
    assert model.calls == 2


async def test_a_replay_that_observes_something_else_diverges_and_starts_anew(parts: EpisodeParts) -> None:
    first = Model(fails_at=3, failure=KeyboardInterrupt())  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        await parts.episode(first).play()
    other = EpisodeParts(Counting(noise="well, "), parts.trial_history)
    end = await other.episode(Model()).play()
    assert end.outcome is AttemptOutcome.DIVERGED
    other.trial_history.start_anew()
    again = await other.episode(Model(), session="2" * 32).play()
    assert again.finish is not None
    assert again.finish.score == 1.0
    assert other.trial_history.tokens() == Usage(50, 5)
    await other.server.sessions.end_all()


async def test_turns_and_tokens_beyond_the_limit_end_the_trial_with_what_was_reached(parts: EpisodeParts) -> None:
    end = await parts.episode(Model(), limits=TrialLimits(turns=2)).play()
    assert end.finish is not None
    assert (end.finish.reason, end.finish.score) == (FinishReason.TURN_LIMIT, 0.0)
    assert parts.trial_history.cost().turns == 2, "the row that only holds the stop is no answer"
    other = EpisodeParts()
    model = Model()
    await other.episode(model, limits=TrialLimits(tokens=11)).play()
    assert model.calls == 1


async def test_a_full_context_is_the_agents_doing(parts: EpisodeParts) -> None:
    end = await parts.episode(Model(fails_at=2, failure=ContextLimitExceeded())).play()
    assert end.finish is not None
    assert end.finish.reason is FinishReason.CONTEXT_LIMIT
    assert end.finish.score == 0.0
    assert parts.trial_history.cost().turns == 1


@pytest.mark.parametrize(
    ("failure", "outcome", "reason"),
    [
        (AgentUnavailable("away"), AttemptOutcome.FINISHED, FinishReason.AGENT_ERROR),
        (AgentRefused("wrong key"), AttemptOutcome.UNAUTHORIZED, None),
        (ToolsRefused("no parser"), AttemptOutcome.TOOLS_REFUSED, None),
        (BudgetExhausted("spent"), AttemptOutcome.BUDGET, None),
        (NoCapacity("full"), AttemptOutcome.PUT_BACK, None),
        (DigestDiffers("other data"), AttemptOutcome.PUT_BACK, None),
        (UnknownSession("gone"), AttemptOutcome.LOST, FinishReason.TASK_ERROR),
    ],
)
async def test_every_failure_is_classified(
    parts: EpisodeParts, failure: Exception, outcome: AttemptOutcome, reason: FinishReason | None
) -> None:
    end = await parts.episode(Model(fails_at=1, failure=failure)).play()
    assert end.outcome is outcome
    assert (end.finish.reason if end.finish else None) is reason
    assert end.finish is None or end.finish.score is None
