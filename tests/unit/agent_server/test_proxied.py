"""A proxied agent keeps the limits for the endpoint behind it."""

import asyncio
import json

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_server.agents.base import AgentRequest
from agent_server.agents.proxied import ProxiedAgent, TokenBucket
from agent_server.errors import RequestRefused
from proctor.llm.config import ChatConfig
from proctor.llm.model import ChatModel
from proctor.types import Message, Usage
from tests.support import via


def test_a_slow_rate_lets_one_through_and_spaces_the_rest() -> None:
    bucket = TokenBucket(per_minute=6)
    assert [bucket.take(0.0) for _ in range(3)] == [0, 10, 20]
    assert bucket.take(100.0) == 0


def test_a_fast_rate_lets_a_seconds_worth_through_at_once() -> None:
    bucket = TokenBucket(per_minute=240)
    assert [bucket.take(0.0) for _ in range(6)] == [0, 0, 0, 0, 0.25, 0.5]


@given(per_minute=st.floats(1, 6000), gaps=st.lists(st.floats(0, 5), min_size=1, max_size=60))
def test_no_window_of_a_minute_holds_more_than_the_rate_and_its_burst(per_minute: float, gaps: list[float]) -> None:
    bucket, now, starts = TokenBucket(per_minute), 0.0, []
    for gap in gaps:
        now += gap
        starts.append(now + bucket.take(now))
    burst = max(1.0, per_minute / 60)
    for start in starts:
        assert sum(start <= other < start + 60 for other in starts) <= per_minute + burst + 1


class Endpoint:
    """Answers with the number of requests in progress, once released."""

    def __init__(self) -> None:
        self.under_way = self.most = 0
        self.bodies: list[dict[str, object]] = []
        self.go, self.two = asyncio.Event(), asyncio.Event()

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(json.loads(request.content))
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        if self.under_way == 2:
            self.two.set()
        await self.go.wait()
        self.under_way -= 1
        choice = {"message": {"content": "hi"}, "finish_reason": "length"}
        return httpx.Response(200, json={"choices": [choice], "usage": {"prompt_tokens": 5}})

    def model(self) -> ChatModel:
        client = httpx.AsyncClient(transport=httpx.MockTransport(self))
        return ChatModel(ChatConfig(model="m", base_url="http://host/v1", sampling={"top_p": 1}), via(client))


ASK = AgentRequest((Message(role="user", content="?"),), sampling={"temperature": 0})


async def test_a_request_is_forwarded_with_its_sampling_and_its_cost_comes_back() -> None:
    endpoint = Endpoint()
    endpoint.go.set()
    answer = await ProxiedAgent(endpoint.model()).answer(ASK)
    assert (answer.action.content, answer.usage, answer.finish_reason()) == ("hi", Usage(prompt_tokens=5), "length")
    assert endpoint.bodies == [
        {"model": "m", "top_p": 1, "temperature": 0, "messages": [{"role": "user", "content": "?"}]}
    ]


async def test_no_more_than_the_limit_are_at_the_endpoint_at_once() -> None:
    endpoint = Endpoint()
    agent = ProxiedAgent(endpoint.model(), max_in_flight=2)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(agent.answer(ASK)) for _ in range(5)]
        await endpoint.two.wait()
        endpoint.go.set()
    assert endpoint.most == 2
    assert len([task.result() for task in tasks]) == 5


async def test_requests_wait_for_the_rate_and_are_refused_where_the_wait_is_long() -> None:
    endpoint, slept = Endpoint(), list[float]()
    endpoint.go.set()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    agent = ProxiedAgent(endpoint.model(), requests_per_minute=4, clock=lambda: 0.0, sleep=sleep)
    for _ in range(3):
        await agent.answer(ASK)
    assert slept == [15, 30]
    with pytest.raises(RequestRefused) as caught:
        await agent.answer(ASK)
    assert (caught.value.status, caught.value.headers) == (429, {"Retry-After": "15"})
    assert len(endpoint.bodies) == 3


async def test_a_seed_of_a_request_is_sent_as_it_is_and_one_of_the_server_grows_with_the_epoch() -> None:
    endpoint = Endpoint()
    endpoint.go.set()
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
