"""Protocol `tools` of Mind2Web: what the acceptance list's lines say of it alone, under their numbers."""

from pathlib import Path

import pytest

from environments.mind2web.environment import Mind2Web
from proctor.types import FinishReason
from tests.random_calls import fuzz, unread


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(params=["compat", "strict"])
def pages(cache: Path, request: pytest.FixtureRequest) -> Mind2Web:
    return Mind2Web.model_validate({"cache": cache, "protocol": "tools", "profile": request.param})


async def test_22_random_and_mutated_calls(pages: Mind2Web) -> None:
    samples = pages.samples()
    assert len(samples) == 302
    finishes = [(await fuzz(pages, sample, seed))[0] for seed, sample in enumerate(samples[::4])]
    assert sum(finish.metrics["calls"] for finish in finishes) > 125
    assert min(unread(finishes).values()) > 5
    assert {finish.reason for finish in finishes} >= {FinishReason.COMPLETED, FinishReason.INVALID_FORMAT}
