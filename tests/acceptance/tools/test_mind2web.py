"""The acceptance list of function calling, for Mind2Web: one test a line under its number."""

from pathlib import Path

import pytest

from environments.mind2web.environment import Mind2Web
from proctor.config.task import TaskDefinition
from proctor.conformance.check import check
from proctor.environment import PolicyAgent, play_to_finish
from proctor.types import Action, FinishReason
from tests.random_calls import fuzz, unread
from tests.tool_calls import calls, replying


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(params=["compat", "strict"])
def pages(cache: Path, request: pytest.FixtureRequest) -> Mind2Web:
    return Mind2Web.model_validate({"cache": cache, "protocol": "tools", "profile": request.param})


async def test_3_the_reference_scores_the_same_in_both_protocols_on_every_step(pages: Mind2Web) -> None:
    text = Mind2Web(cache=pages.cache, profile=pages.profile)
    samples = pages.samples()
    assert len(samples) == 302
    for sample in samples if pages.profile == "compat" else samples[::10]:
        in_text, in_tools = [
            await play_to_finish(each, sample, PolicyAgent(each.reference(sample))) for each in (text, pages)
        ]
        assert (in_tools.score, in_tools.reason, in_tools.detail) == (in_text.score, in_text.reason, in_text.detail)


async def test_4_check_passes(pages: Mind2Web) -> None:
    results = [result async for result in check(pages)]
    assert [f"{result.name}: {result.detail}" for result in results if result.state != "ok"] == []


def test_5_digest_and_shape_differ_between_the_protocols(cache: Path) -> None:
    text, tools = (
        TaskDefinition(name="pages", environment="mind2web", parameters={"protocol": protocol})
        for protocol in ("text", "tools")
    )
    assert text.shape() != tools.shape()
    assert Mind2Web(cache=cache, protocol="text").digest() != Mind2Web(cache=cache, protocol="tools").digest()


async def test_20_sessions_without_calls_and_of_unknown_functions(pages: Mind2Web) -> None:
    sample = next(sample for sample in pages.samples() if pages.contest(sample).positives)
    silent = await play_to_finish(pages, sample, replying(Action(content="Answer: B.")))
    assert (silent.reason, silent.score) == (FinishReason.INVALID_FORMAT, 0.0)
    assert silent.metrics["no_call"] == silent.metrics["unparsed"] == silent.metrics["calls"] > 0
    unknown = await play_to_finish(pages, sample, replying(calls(("pick", "{}"))))
    named = FinishReason.INVALID_ACTION if pages.profile == "strict" else FinishReason.INVALID_FORMAT
    assert (unknown.reason, unknown.score) == (named, 0.0)
    assert unknown.metrics["unknown_function"] == unknown.metrics["unparsed"] == unknown.metrics["calls"] > 0


async def test_22_random_and_mutated_calls(pages: Mind2Web) -> None:
    samples = pages.samples()
    finishes = [(await fuzz(pages, sample, seed))[0] for seed, sample in enumerate(samples)]
    assert sum(finish.metrics["calls"] for finish in finishes) > 500
    assert min(unread(finishes).values()) > 25
    assert {finish.reason for finish in finishes} >= {FinishReason.COMPLETED, FinishReason.INVALID_FORMAT}
