"""The agents that tests of function calls use fail a test, whatever the environment does about exceptions."""

import pytest

from proctor.environment import Agent, Environment
from proctor.session.play import play_to_finish
from proctor.types import Action, Finish, FinishReason, Message, Observation, Tool
from tests.random_calls import fuzz
from tests.tool_calls import CallingAgent, calls, replying


class Careless(Environment):
    """Asks some times, and answers the first calls of a reply alone."""

    instructed: bool = True
    tools: tuple[Tool, ...] = (Tool(name="look", parameters={"type": "object", "properties": {}}),)
    turns: int = 2
    answers: int = 1

    @property
    def max_turns(self) -> int:
        return 2

    def samples(self) -> tuple[str, ...]:
        return ("one",)

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        messages: tuple[Message, ...] = (Message(role="system" if self.instructed else "user", content="Look."),)
        for _ in range(self.turns):
            action = await agent.act(Observation(messages=messages, tools=self.tools))
            answered = [Message(role="tool", content="-", tool_call_id=each.id) for each in action.tool_calls]
            messages = tuple(answered[: self.answers]) or (Message(role="user", content="-"),)
        return Finish(reason=FinishReason.COMPLETED, score=1.0)


async def test_a_call_without_an_answer_fails_the_test() -> None:
    finish = await play_to_finish(Careless(), "one", replying(calls(("look", {}))))
    assert finish.score == 1
    agent = CallingAgent(lambda _conversation, _history: calls(("look", {}), ("look", {})), "here")
    with pytest.raises(pytest.fail.Exception, match=r"^here, turn 2: the last calls have no answer"):
        await play_to_finish(Careless(), "one", agent)
    assert len(agent.seen) == 2


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        (Careless(instructed=False), "turn 1: the history begins without instructions"),
        (Careless(tools=()), "turn 1: the observation offers no function"),
        (Careless(turns=3, answers=100), "turn 3: the session has more than 2 turns"),
    ],
)
async def test_a_session_that_breaks_a_rule_fails_the_test_and_is_named(environment: Careless, why: str) -> None:
    with pytest.raises(pytest.fail.Exception, match=rf"Careless.*sample 'one', seed 0, {why}"):
        await fuzz(environment, "one", 0)


async def test_an_environment_that_raises_fails_the_test() -> None:
    class Raising(Careless):
        async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
            await agent.act(Observation(messages=(Message(role="system", content="Look."),), tools=self.tools))
            raise KeyError(sample)

    with pytest.raises(AssertionError, match=r"sample 'one', seed 3: .*KeyError"):
        await fuzz(Raising(), "one", 3)


async def test_equal_seeds_give_equal_calls() -> None:
    told = []

    class Overheard(Careless):
        async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
            action: Action = await agent.act(
                Observation(messages=(Message(role="system", content="Look."),), tools=self.tools)
            )
            told.append(action)
            return Finish(reason=FinishReason.COMPLETED, score=1.0)

    for seed in (1, 1, 2):
        await fuzz(Overheard(), "one", seed)
    assert told[0] == told[1] != told[2]
