"""The reference on the published samples, on Docker, in each profile and protocol.

The numbers are those of the lists for this environment and for function calls. Equal plays are played once: errata
plays what its overlay corrects, since it plays and judges all else as compat does, which tells the score in both.
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
    floors = [note for note in summary.notes if "always answers 0" in note]
    assert floors == ["An agent that always answers 0 passes 1 of the 26 samples of dev."], (
        "of no split that was not played"
    )
    assert seconds < slowly(60)


def corrected() -> list[str]:
    """The samples that the overlay corrects."""
    errata = dev(profile="errata")
    return [name for name, record in errata.dataset.records.items() if errata.errata.corrected(record) != record]


async def test_04_gold_scores_26_in_errata() -> None:
    played = (await gold(dev(profile="errata"), *corrected())).finishes
    assert failed(played) == []
    assert [s for s, finish in played.items() if not finish.metrics["passed_compat"]] == [sample(6), sample(8)]
    others = {s: finish for s, finish in (await gold(dev())).finishes.items() if s not in played}
    assert len(others) + len(played) == 26
    assert failed(others) == [s for s, finish in others.items() if not finish.metrics["passed_errata"]] == []


async def test_gold_is_never_flagged() -> None:
    finishes = (await gold(dev(profile="strict"))).finishes
    assert failed(finishes) == [sample(8)]
    assert [finish.detail["tampered"] for finish in finishes.values()] == [[]] * 26


@pytest.mark.parametrize("profile", ["compat", "errata", "strict"])
async def test_03_the_reference_scores_on_the_published_samples_as_in_text(profile: str) -> None:
    """What errata does not correct, it reads as strict does and judges as compat does."""
    samples = corrected() if profile == "errata" else []
    tools, text = [(await gold(dev(profile=profile, protocol=name), *samples)).finishes for name in ("tools", "text")]
    assert len(tools) == (len(samples) or 26)
    assert {sample: (finish.reason, finish.score) for sample, finish in tools.items()} == {
        sample: (finish.reason, finish.score) for sample, finish in text.items()
    }
