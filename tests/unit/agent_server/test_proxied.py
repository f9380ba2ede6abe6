"""A proxied agent passes requests on, and what the endpoint behind it answers."""

import json

import httpx
import pytest

from agent_server.agents.base import AgentRequest
from agent_server.agents.proxied import ProxiedAgent
from agent_server.errors import RequestRefused
from proctor.llm.config import ChatConfig
from proctor.llm.model import ChatModel
from proctor.types import Message, Usage
from tests.support import via


class Endpoint:
    """Answers, and keeps what it was asked."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, object]] = []

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(json.loads(request.content))
        choice = {"message": {"content": "hi"}, "finish_reason": "length"}
        return httpx.Response(200, json={"choices": [choice], "usage": {"prompt_tokens": 5}})

    def model(self) -> ChatModel:
        client = httpx.AsyncClient(transport=httpx.MockTransport(self))
        return ChatModel(ChatConfig(model="m", base_url="http://host/v1", sampling={"top_p": 1}), via(client))


ASK = AgentRequest((Message(role="user", content="?"),), sampling={"temperature": 0})


async def test_a_request_is_forwarded_with_its_sampling_and_its_cost_comes_back() -> None:
    endpoint = Endpoint()
    answer = await ProxiedAgent(endpoint.model()).answer(ASK)
    assert (answer.action.content, answer.usage, answer.finish_reason()) == ("hi", Usage(prompt_tokens=5), "length")
    assert endpoint.bodies == [
        {"model": "m", "top_p": 1, "temperature": 0, "messages": [{"role": "user", "content": "?"}]}
    ]


async def test_a_seed_of_a_request_is_sent_as_it_is_and_one_of_the_server_grows_with_the_epoch() -> None:
    endpoint = Endpoint()
    config = ChatConfig(model="m", base_url="http://host/v1", sampling={"seed": 10})
    agent = ProxiedAgent(ChatModel(config, via(httpx.AsyncClient(transport=httpx.MockTransport(endpoint)))))
    for sampling in ({}, {"seed": 7}):
        await agent.answer(AgentRequest(ASK.messages, metadata={"epoch": "2"}, sampling=sampling))
    assert [body["seed"] for body in endpoint.bodies] == [12, 7]
    assert all("metadata" not in body for body in endpoint.bodies)


async def test_a_cause_is_logged_once_and_again_when_it_comes_back_after_minutes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now, counted = [0.0], iter(range(100, 999))

    def fails(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(500, text=f"oops (request req_{next(counted)})")

    model = ChatModel(
        ChatConfig(model="m", base_url="http://host/v1"),
        via(httpx.AsyncClient(transport=httpx.MockTransport(fails))),
    )
    agent = ProxiedAgent(model, clock=lambda: now[0])
    for wait_s, lines in [(0, 1), (200, 1), (200, 1), (200, 1), (301, 2)]:
        now[0] += wait_s
        with pytest.raises(RequestRefused):
            await agent.answer(ASK)
        assert caplog.text.count("oops") == lines
    assert await agent.failing() is not None
    assert "status 500 for its list of models" in caplog.text
