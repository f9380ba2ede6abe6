"""Protocol `tools` of WebShop: what the acceptance list's lines say of it alone, under their numbers."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from environments.webshop.environment import WebShop
from proctor.types import FinishReason
from tests.random_calls import fuzz, unread


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(params=["compat", "strict"])
async def shop(cache: Path, request: pytest.FixtureRequest) -> AsyncIterator[WebShop]:
    environment = WebShop.model_validate({"cache": cache, "protocol": "tools", "profile": request.param})
    async with environment.lifespan():
        yield environment


async def test_22_random_and_mutated_calls(shop: WebShop) -> None:
    finishes = [(await fuzz(shop, f"goal-{seed:05d}", seed))[0] for seed in range(20)]
    assert sum(finish.metrics["calls"] for finish in finishes) > 300
    assert min(unread(finishes).values()) > 10
    assert sum(finish.metrics["noop_actions"] for finish in finishes) > 16
    assert {finish.reason for finish in finishes} <= {FinishReason.COMPLETED, FinishReason.TURN_LIMIT}
