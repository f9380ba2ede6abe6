"""Worlds played at endpoints of each dialect, which hold every request to the makers' own types and rules."""

import httpx
import pytest

from proctor.environment import Agent, Policy, policy_of
from proctor.llm.config import ChatConfig
from proctor.llm.dialects import DIALECTS, DialectName
from proctor.llm.model import ChatModel
from proctor.llm.tool_calls import normalised
from proctor.session.play import play_to_finish
from proctor.session.transcript import Transcript
from proctor.tools import Protocol
from proctor.types import Action, Observation
from tests.tool_calls import CallingAgent
from tests.tool_environments import ENGINES, environment_in
from tests.unit.proctor.llm.dialects.endpoint import DialectEndpoint

WORLDS = ("alfworld", "card_game", "db", "kg", "webshop")


class DialectAgent(Agent):
    """Follows a policy, whose replies come from an endpoint."""

    def __init__(self, policy: Policy, endpoint: DialectEndpoint, model: ChatModel) -> None:
        self._policy, self._endpoint, self._model = policy, endpoint, model
        self._transcript = Transcript()

    async def act(self, observation: Observation) -> Action:
        history = self._transcript.observe(observation)
        self._endpoint.next = self._policy(observation.conversation, history)
        completion = await self._model.complete(history, observation.tools)
        action = normalised(completion.action, history)
        self._transcript.answer(observation, action)
        return action.without_echo()


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("protocol", ["text", "tools"])
@pytest.mark.parametrize("world", WORLDS)
async def test_worlds_are_played_in_every_dialect(world: str, protocol: Protocol, dialect: DialectName) -> None:
    environment = environment_in(world, protocol, ENGINES.get(world, {}))
    endpoint = DialectEndpoint()
    config = ChatConfig(model="m", base_url="http://host/v1", dialect=dialect, max_tries=1)
    model = ChatModel(config, httpx.AsyncClient(transport=httpx.MockTransport(endpoint)))
    async with environment.lifespan():
        for sample in environment.samples()[:2]:
            policies = [policy_of(environment, "reference", sample, seed=1) for _ in range(2)]
            assert policies[0] is not None
            assert policies[1] is not None
            told = CallingAgent(policies[0])
            expected = await play_to_finish(environment, sample, told, seed=1)
            played = await play_to_finish(environment, sample, DialectAgent(policies[1], endpoint, model), seed=1)
            assert played == expected
            assert played.score
