"""The reference on the published samples, on Docker, in each profile and protocol.

The numbers are those of the lists for this environment and for function calls. Equal plays are played once.
"""

import asyncio
from typing import NamedTuple

import pytest

from environments.operating_system.environment import OperatingSystem
from proctor.environment import Agent
from proctor.session.play import PolicyAgent
from proctor.types import Finish
from tests.acceptance.os.test_acceptance import dev, failed, play_all, sample
from tests.pace import slowly

pytestmark = [pytest.mark.docker, pytest.mark.shared]


class Gold(NamedTuple):
    """All samples, played by the reference."""

    environment: OperatingSystem
    finishes: dict[str, Finish]
    seconds: float


_PLAYED: dict[tuple[str, str], Gold] = {}


async def gold(profile: str, protocol: str = "text") -> Gold:
    """What the reference gets; played at the first call."""
    if (profile, protocol) not in _PLAYED:
        _PLAYED[profile, protocol] = await _play(dev(profile=profile, protocol=protocol))
    return _PLAYED[profile, protocol]


async def _play(environment: OperatingSystem) -> Gold:
    loop = asyncio.get_running_loop()
    started = loop.time()
    agents: dict[str, Agent] = {s: PolicyAgent(environment.reference(s)) for s in environment.samples()}
    finishes = await play_all(environment, agents)
    return Gold(environment, finishes, loop.time() - started)


async def test_04_and_11_gold_scores_25_in_compat_within_a_minute() -> None:
    environment, finishes, seconds = await gold("compat")
    assert failed(finishes) == [sample(8)]
    assert finishes[sample(8)].metrics["passed_errata"] == 1.0
    summary = environment.summarize(list(finishes.values()))
    assert (summary.primary, summary.metrics["acc"], summary.metrics["coverage"]) == ("acc", 25 / 26, 1.0)
    assert seconds < slowly(60)


async def test_04_gold_scores_26_in_errata() -> None:
    finishes = (await gold("errata")).finishes
    assert failed(finishes) == []
    assert [s for s, finish in finishes.items() if not finish.metrics["passed_compat"]] == [sample(6), sample(8)]


async def test_gold_is_never_flagged() -> None:
    finishes = (await gold("strict")).finishes
    assert failed(finishes) == [sample(8)]
    assert [finish.detail["tampered"] for finish in finishes.values()] == [[]] * 26


@pytest.mark.parametrize("profile", ["compat", "errata", "strict"])
async def test_03_the_reference_scores_on_the_published_samples_as_in_text(profile: str) -> None:
    tools, text = [(await gold(profile, protocol)).finishes for protocol in ("tools", "text")]
    assert len(tools) == 26
    assert {sample: (finish.reason, finish.score) for sample, finish in tools.items()} == {
        sample: (finish.reason, finish.score) for sample, finish in text.items()
    }
