"""The reference on the published samples, on Docker, in each profile and protocol.

The numbers are those of the lists for this environment and for function calls. Equal plays are played once. Protocols
are compared where a session costs least, and on Docker in profile strict, which plays nowhere else.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

import pytest

from environments.operating_system.environment import OperatingSystem
from proctor.environment import Agent
from proctor.session.play import PolicyAgent
from proctor.types import Finish
from tests.acceptance.os.test_acceptance import dev, failed, light, play_all, sample
from tests.pace import slowly

pytestmark = [pytest.mark.docker, pytest.mark.shared]


class Gold(NamedTuple):
    """Samples, played by the reference."""

    environment: OperatingSystem
    finishes: dict[str, Finish]
    seconds: float


_PLAYED: dict[str, Gold] = {}


async def gold(environment: OperatingSystem, *samples: str) -> Gold:
    """What the reference gets on some samples, or on all; played at the first call."""
    key = f"{environment!r} {samples}"
    if key not in _PLAYED:
        loop = asyncio.get_running_loop()
        started = loop.time()
        names = samples or environment.samples()
        agents: dict[str, Agent] = {s: PolicyAgent(environment.reference(s)) for s in names}
        finishes = await play_all(environment, agents)
        _PLAYED[key] = Gold(environment, finishes, loop.time() - started)
    return _PLAYED[key]


async def test_04_and_11_gold_scores_25_in_compat_within_a_minute() -> None:
    environment, finishes, seconds = await gold(dev())
    assert failed(finishes) == [sample(8)]
    assert finishes[sample(8)].metrics["passed_errata"] == 1.0
    summary = environment.summarize(list(finishes.values()))
    assert (summary.primary, summary.metrics["acc"], summary.metrics["coverage"]) == ("acc", 25 / 26, 1.0)
    assert seconds < slowly(60)


async def test_04_gold_scores_26_in_errata() -> None:
    """Sessions of samples that the overlay leaves as they are, are those of compat."""
    compat, errata = (await gold(dev())).finishes, dev(profile="errata")
    corrected = [s for s in errata.samples() if errata._played(s) != dev()._played(s)]
    played = (await gold(errata, *corrected)).finishes
    assert failed(played) == []
    assert [s for s, finish in played.items() if not finish.metrics["passed_compat"]] == [sample(6), sample(8)]
    same = [finish for s, finish in compat.items() if s not in corrected]
    assert len(same) + len(played) == 26
    assert all(finish.metrics["passed_errata"] == finish.metrics["passed_compat"] == 1.0 for finish in same)


async def test_gold_is_never_flagged() -> None:
    finishes = (await gold(dev(profile="strict"))).finishes
    assert failed(finishes) == [sample(8)]
    assert [finish.detail["tampered"] for finish in finishes.values()] == [[]] * 26


@pytest.mark.parametrize(
    ("make", "profile"), [(light, "compat"), (light, "errata"), (dev, "strict")], ids=["compat", "errata", "strict"]
)
async def test_03_the_reference_scores_on_the_published_samples_as_in_text(
    make: Callable[..., OperatingSystem], profile: str
) -> None:
    text, tools = [(await gold(make(profile=profile, protocol=name))).finishes for name in ("text", "tools")]
    assert len(tools) == 26
    assert {sample: (finish.reason, finish.score) for sample, finish in tools.items()} == {
        sample: (finish.reason, finish.score) for sample, finish in text.items()
    }
