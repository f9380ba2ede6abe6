"""No model is asked beyond its endpoint's rates."""

import asyncio
import time

import httpx
import pytest

from eval_client.core.limits.rates import Rates, Slot
from eval_client.core.spend import Price, RunLimits, Spend
from eval_client.endpoints.endpoints import Endpoints
from eval_client.plan.plan import Plan
from proctor.types import Message, Usage
from tests.support import via

PLAN = Plan.model_validate(
    {
        "endpoints": [{"name": "e", "base_url": "http://model/v1"}],
        "agents": [{"name": "a", "endpoint": "e", "model": "m"}],
        "tasks": [{"name": "t", "environment": "ltp"}],
    }
)
BUSY = httpx.Response(503, headers={"Retry-After": "0"})


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "token-of-the-tests")


def answering(*replies: httpx.Response) -> httpx.AsyncClient:
    left = list(replies)
    return httpx.AsyncClient(transport=httpx.MockTransport(lambda _: left.pop(0)))


GOOD = httpx.Response(
    200,
    json={
        "choices": [{"message": {"role": "assistant", "content": "!"}}],
        "usage": {"prompt_tokens": 700, "completion_tokens": 50},
    },
)


async def test_without_a_rate_no_request_asks_for_a_moment_and_with_one_each_does_retries_too() -> None:
    async with answering(GOOD, BUSY, GOOD) as http:
        endpoints = Endpoints(PLAN, via(http), Spend(RunLimits(), {}), None, lambda: None)
        gate, asked = endpoints.gates["e"], []

        def give() -> None:
            asked.append(1)
            gate.take(Rates(rpm=60), (Slot(time.monotonic(), 0.0, "rpm"),))

        gate.on_need = give
        await endpoints.model("a")((Message(role="user", content="?"),), (), {})
        assert asked == []
        gate.take(Rates(rpm=60), ())
        await endpoints.model("a")((Message(role="user", content="?"),), (), {})
        assert asked == [1, 1]


async def test_what_was_cached_is_spent_at_its_own_price() -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 600}, "completion_tokens_details": {"reasoning_tokens": 20}}
    usage = {"prompt_tokens": 700, "completion_tokens": 50, **details}
    cached = httpx.Response(200, json={**GOOD.json(), "usage": usage})
    spend = Spend(RunLimits(), {"a": Price(input=1e6, output=0.0, cached_input=0.0)})
    async with answering(cached) as http:
        endpoints = Endpoints(PLAN, via(http), spend, None, lambda: None)
        await endpoints.model("a")((Message(role="user", content="?"),), (), {})
    assert spend.by_agent == {"a": Usage(700, 50, 600, 20)}
    assert spend.money == 100.0


async def test_a_call_that_is_taken_back_is_spent_by_its_estimate() -> None:
    under_way, spend = asyncio.Event(), Spend(RunLimits(), {})

    async def never(_: httpx.Request) -> httpx.Response:
        under_way.set()
        return await asyncio.Future()

    async with httpx.AsyncClient(transport=httpx.MockTransport(never)) as http:
        endpoints = Endpoints(PLAN, via(http), spend, None, lambda: None)
        call = asyncio.ensure_future(endpoints.model("a")((Message(role="user", content="x" * 35),), (), {}))
        await under_way.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert spend.by_agent == {"a": Usage(prompt_tokens=10, estimated_tokens=10)}


async def test_what_an_answer_took_beyond_its_estimate_is_owed_and_later_estimates_know_it() -> None:
    async with answering(GOOD, GOOD) as http:
        endpoints = Endpoints(PLAN, via(http), Spend(RunLimits(), {}), None, lambda: None)
        gate, expected = endpoints.gates["e"], []

        def give() -> None:
            (tokens,) = gate.ask(time.monotonic()).waiting
            expected.append(tokens)
            gate.take(Rates(tpm=6000), (Slot(time.monotonic(), tokens, "tpm"),))

        gate.on_need = give
        gate.take(Rates(tpm=6000), ())
        await endpoints.model("a")((Message(role="user", content="?" * 400),), (), {})
        assert (expected, gate.debt) == ([600.0], 150.0)
        await endpoints.model("a")((Message(role="user", content="?" * 400),), (), {})
        assert expected[1:] == [750.0]
