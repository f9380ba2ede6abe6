"""A session whose service is away ends as a fault that says so; every other fault does not."""

import pytest

from proctor.environment import Agent, Environment, EnvironmentFault, ServiceAway
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Action, Finish, FinishReason, Message, Observation
from task_server.wire.messages import Finished


class Broken(Environment):
    """One turn, then the error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def samples(self) -> list[str]:
        return ["only"]

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        await agent.act(Observation(messages=(Message(role="user", content="?"),)))
        raise self._error


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (ServiceAway("gone"), True),
        (EnvironmentFault("the sample's table can't be made"), False),
        (ConnectionRefusedError("of something else"), False),
    ],
)
async def test_only_a_service_that_is_away_is_told_as_such(error: Exception, away: bool) -> None:
    finish = await play_to_finish(Broken(error), "only", PolicyAgent(lambda _, __: Action(content="!")))
    told = Finished.model_validate_json(Finished(finish=finish).model_dump_json()).finish
    assert (told.reason, told.score, told.is_away) == (FinishReason.TASK_ERROR, None, away)
    assert told.detail["cause"] == f"{type(error).__name__}: {error}"
