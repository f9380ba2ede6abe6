"""Worlds played at endpoints of each dialect, which hold every request to the makers' own types and rules."""

import json
from pathlib import Path

import httpx
import pytest

from eval_client.cli.doctor.endpoint import ModelProbe
from proctor.environment import Agent, Policy, policy_of
from proctor.llm.cached_model import CachedModel, Question, Replies
from proctor.llm.config import ChatConfig
from proctor.llm.dialects import PATHS, DialectName
from proctor.llm.model import ChatModel
from proctor.session.play import play_to_finish
from proctor.session.transcript import Transcript
from proctor.tools import Protocol
from proctor.tools.histories import normalised
from proctor.types import Action, Message, Observation, ToolCall
from tests.support import via
from tests.tool_calls import ENGINES, CallingAgent, environment_in
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


@pytest.mark.parametrize("dialect", PATHS)
@pytest.mark.parametrize(
    ("reply", "found"),
    [
        (Action(content="", tool_calls=(ToolCall(id="", name="report_ready", arguments="{}"),)), "agent-tools"),
        (Action(content="ready"), "agent-tools-unused"),
    ],
)
async def test_the_doctor_asks_in_the_dialect(dialect: DialectName, reply: Action, found: str) -> None:
    endpoint = DialectEndpoint()
    endpoint.next = reply
    config = ChatConfig(model="m", base_url="http://host/v1", dialect=dialect)
    async with httpx.AsyncClient(transport=httpx.MockTransport(endpoint)) as client:
        probe = ModelProbe(via(client), "a", config, 10.0)
        findings = [await probe.complete(), *await probe.tools()]
    assert [each.id for each in findings] == ["agent", found, "agent-tools"]
    assert ("cache_control" in json.dumps(endpoint.bodies[0])) == (dialect == "messages")
    cached = "" if dialect == "chat" else ", 60 of them from its cache"
    assert findings[0].what.endswith(f" s (dialect {dialect}); tokens: 100 + 7{cached}")


@pytest.mark.parametrize("dialect", PATHS)
async def test_judges_are_asked_in_the_dialect(dialect: DialectName, tmp_path: Path) -> None:
    endpoint, replies = DialectEndpoint(), Replies(tmp_path / "replies")
    replies.open()
    endpoint.next = Action(content="7")
    config = ChatConfig(model="m", base_url="http://host/v1", dialect=dialect)
    asked = Question((Message(role="user", content="How many?"),), int, None, 1)
    async with httpx.AsyncClient(transport=httpx.MockTransport(endpoint)) as client:
        judge = CachedModel("judge", config, via(client), replies, {"temperature": 0, "max_tokens": 99})
        assert (await judge.ask(asked)).meaning == 7


@pytest.mark.parametrize("dialect", PATHS)
@pytest.mark.parametrize("protocol", ["text", "tools"])
@pytest.mark.parametrize("world", WORLDS)
async def test_worlds_are_played_in_every_dialect(world: str, protocol: Protocol, dialect: DialectName) -> None:
    environment = environment_in(world, protocol, ENGINES.get(world, {}))
    endpoint = DialectEndpoint()
    config = ChatConfig(model="m", base_url="http://host/v1", dialect=dialect, max_tries=1)
    model = ChatModel(config, via(httpx.AsyncClient(transport=httpx.MockTransport(endpoint))))
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
