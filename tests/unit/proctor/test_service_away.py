"""A session whose service is away in the middle goes on where it was, and its agent is asked each turn once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import retry
from proctor.environment import Agent, Environment, EnvironmentFault, ServiceAway
from proctor.session import play as play_module
from proctor.session.play import play_to_finish
from proctor.types import Action, Finish, FinishReason, Message, Observation
from tests.pace import slowly

TURNS = 4


class Served(Environment):
    """Four turns, each before and after a call to a service, which may be away."""

    def samples(self) -> list[str]:
        return ["only"]

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        said = []
        for turn in range(TURNS):
            call(2 * turn)
            content = f"{turn} {stamp()}"
            said.append((await agent.act(Observation(messages=(Message(role="user", content=content),)))).content)
            call(2 * turn + 1)
        return Finish(reason=FinishReason.COMPLETED, score=1.0, detail={"said": said})


def call(number: int) -> None:
    """A call to the service; the tests put another in its place."""


def stamp() -> int:
    """What an observation holds beside its number."""
    return 0


class Counting(Agent):
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def act(self, observation: Observation) -> Action:
        self.asked.append(observation.messages[0].content)
        return Action(content=f"answer {len(self.asked)}")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play_module, "_RETURNS", retry.RetryPolicy(base_s=0.001, cap_s=0.001))


@given(times=st.lists(st.integers(0, 2), min_size=2 * TURNS, max_size=2 * TURNS))
async def test_whenever_and_however_often_it_is_away_the_session_is_the_same(times: list[int]) -> None:
    left = dict(enumerate(times))

    def away(number: int) -> None:
        if left[number]:
            left[number] -= 1
            raise ServiceAway("gone")

    globals()["call"] = away
    agent = Counting()
    finish = await play_to_finish(Served(), "only", agent, patience_s=slowly(60))
    assert (finish.score, finish.detail["said"]) == (1.0, [f"answer {turn + 1}" for turn in range(TURNS)])
    assert agent.asked == [f"{turn} 0" for turn in range(TURNS)]


@pytest.mark.parametrize("patience_s", [0.0, 0.05])
async def test_a_service_that_stays_away_is_a_fault(monkeypatch: pytest.MonkeyPatch, patience_s: float) -> None:
    def away(number: int) -> None:
        if number == 3:
            raise ServiceAway("gone for good")

    monkeypatch.setitem(globals(), "call", away)
    agent = Counting()
    finish = await play_to_finish(Served(), "only", agent, patience_s=patience_s)
    assert (finish.reason, finish.score) == (FinishReason.TASK_ERROR, None)
    assert "gone for good" in str(finish.detail["cause"])
    assert len(agent.asked) == 2


async def test_other_faults_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(number: int) -> None:
        raise EnvironmentFault("the sample's table can't be made")

    monkeypatch.setitem(globals(), "call", broken)
    finish = await play_to_finish(Served(), "only", Counting(), patience_s=slowly(600))
    assert (finish.reason, finish.score) == (FinishReason.TASK_ERROR, None)


async def test_a_session_that_can_not_be_played_again_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    stamps, left = iter(range(100)), [1]

    def once(number: int) -> None:
        if number == 3 and left:
            left.clear()
            raise ServiceAway("gone")

    monkeypatch.setitem(globals(), "call", once)
    monkeypatch.setitem(globals(), "stamp", lambda: next(stamps))
    finish = await play_to_finish(Served(), "only", Counting(), patience_s=slowly(60))
    assert finish.score is None
    assert "observed something else when it was played again" in str(finish.detail["cause"])
