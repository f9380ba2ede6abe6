"""The acceptance list of function calling, for WebShop: one test a line under its number."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from environments.webshop.environment import WebShop
from environments.webshop.functions import TOOLSET
from environments.webshop.scoring import Profile
from proctor.config.task import TaskDefinition
from proctor.conformance.check import check
from proctor.environment import PolicyAgent, play_to_finish
from proctor.tools import Protocol
from proctor.types import Action, FinishReason
from tests.random_calls import fuzz, unread
from tests.support import SHARED_DATA
from tests.tool_calls import calls, replying


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(params=["compat", "strict"])
async def shop(cache: Path, request: pytest.FixtureRequest) -> AsyncIterator[WebShop]:
    environment = WebShop.model_validate({"cache": cache, "protocol": "tools", "profile": request.param})
    async with environment.lifespan():
        yield environment


@pytest.mark.shared
def test_2_the_functions_are_the_published_ones() -> None:
    published = json.loads((SHARED_DATA / "interop" / "fc" / "tools.json").read_text(encoding="utf-8"))["webshop"]
    declared = [tool.model_dump() for tool in TOOLSET.tools()]
    expected = [tool["function"] for tool in published["tools"]]
    for function in [*declared, *expected]:
        function.pop("description")
        for parameter in function["parameters"]["properties"].values():
            parameter.pop("description")
    assert declared == expected
    assert WebShop(protocol="tools").max_turns == published["rounds"]


async def test_3_the_reference_scores_the_same_in_both_protocols_on_every_goal(cache: Path) -> None:
    scores: dict[Protocol, list[tuple[float | None, float]]] = {"text": [], "tools": []}
    for protocol, reached in scores.items():
        environment = WebShop(cache=cache, protocol=protocol)
        async with environment.lifespan():
            for sample in environment.samples():
                finish = await play_to_finish(environment, sample, PolicyAgent(environment.reference(sample)))
                reached.append((finish.score, finish.metrics["rounds"]))
    assert scores["text"] == scores["tools"]
    assert len(scores["tools"]) == 200


@pytest.mark.parametrize("profile", ["compat", "strict"])
async def test_4_check_passes(cache: Path, profile: Profile) -> None:
    environment = WebShop(cache=cache, protocol="tools", profile=profile)
    results = [result async for result in check(environment)]
    assert [f"{result.name}: {result.detail}" for result in results if result.state != "ok"] == []


def test_5_digest_and_shape_differ_between_the_protocols(cache: Path) -> None:
    text, tools = (
        TaskDefinition(name="shop", environment="webshop", parameters={"protocol": protocol})
        for protocol in ("text", "tools")
    )
    assert text.shape() != tools.shape()
    assert WebShop(cache=cache, protocol="text").digest() != WebShop(cache=cache, protocol="tools").digest()


async def test_20_sessions_without_calls_and_of_unknown_functions(shop: WebShop) -> None:
    strict = shop.profile == "strict"
    silent = await play_to_finish(shop, "goal-00000", replying(Action(content="Action: click[buy now]")))
    assert silent.reason is (FinishReason.INVALID_FORMAT if strict else FinishReason.TURN_LIMIT)
    assert (silent.score, silent.metrics["no_call"], silent.metrics["rounds"]) == (0.0, 20, 20)
    unknown = await play_to_finish(shop, "goal-00000", replying(calls(("buy", "{}"))))
    assert unknown.reason is (FinishReason.INVALID_ACTION if strict else FinishReason.TURN_LIMIT)
    assert (unknown.score, unknown.metrics["unknown_function"]) == (0.0, 20)


async def test_22_random_and_mutated_calls(shop: WebShop) -> None:
    finishes = [(await fuzz(shop, f"goal-{seed:05d}", seed))[0] for seed in range(60)]
    assert sum(finish.metrics["calls"] for finish in finishes) > 1_000
    assert min(unread(finishes).values()) > 50
    assert sum(finish.metrics["noop_actions"] for finish in finishes) > 50
    assert {finish.reason for finish in finishes} <= {FinishReason.COMPLETED, FinishReason.TURN_LIMIT}
