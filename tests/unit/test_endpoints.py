"""No model is asked after a wait before it is sure that no other client plays the same trial."""

import time
from collections.abc import Awaitable, Callable

import httpx
import pytest

from environments.types import Message
from eval_client.core.spend import Spend
from eval_client.endpoints import Endpoints
from eval_client.plan import Plan
from eval_client.store.shards import Fenced
from tests.pace import slowly

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


async def asked(assured: Callable[[Endpoints], Awaitable[None]], cool_s: float = 0.0) -> int:
    """How many requests a busy endpoint that cools for so long gets until the client is fenced."""
    requests = 0

    def answer(_request: httpx.Request) -> httpx.Response:
        nonlocal requests
        requests += 1
        return BUSY

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        endpoints = Endpoints(PLAN, http, Spend.of(PLAN), None, lambda: None, assured=lambda: assured(endpoints))
        if cool_s:
            endpoints.limits["e"].throttled(time.monotonic(), cool_s)
        with pytest.raises(Fenced):
            await endpoints.model("a")((Message(role="user", content="?"),), (), {})
    return requests


async def test_nothing_is_asked_once_the_lease_went_while_the_endpoint_cooled() -> None:
    async def lost(endpoints: Endpoints) -> None:
        assert endpoints.limits["e"].cool_for_s(time.monotonic()) <= 0
        raise Fenced

    assert await asked(lost, cool_s=slowly(0.05)) == 0


async def test_a_request_that_failed_is_not_made_again_once_the_lease_went_meanwhile() -> None:
    sure = [True, False]

    async def lost_later(_endpoints: Endpoints) -> None:
        if not sure.pop(0):
            raise Fenced

    assert await asked(lost_later) == 1
