"""How often intervals hold the truth, and how often a difference of the printed size is found: simulated."""

import random
from collections.abc import Callable, Sequence
from math import sqrt
from statistics import fmean

import pytest

from eval_client.core.statistics.distributions import mcnemar_p
from eval_client.core.statistics.power import detectable_by_flips, detectable_by_mcnemar
from eval_client.core.statistics.resampling import sign_flips
from eval_client.core.statistics.single import clustered_mean, mean_interval

pytestmark = pytest.mark.thorough
TIMES = 200
SHARES = [0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95]
Draw = Callable[[random.Random, float], float]


def passed(chance: random.Random, share: float) -> float:
    return float(chance.random() < share)


def graded(chance: random.Random, share: float) -> float:
    return (passed(chance, share) + passed(chance, share)) / 2


def clustered(draw: Draw, sizes: Sequence[int], tie: float, chance: random.Random, mean: float) -> list[float]:
    """Scores whose clusters have shares of their own, with an intra-cluster correlation of `tie`."""
    spread = 1 / tie - 1 if tie else 0
    shares = (chance.betavariate(mean * spread, (1 - mean) * spread) if tie else mean for _ in sizes)
    return [
        draw(chance, min(0.999, max(0.001, share)))
        for share, size in zip(shares, sizes, strict=True)
        for _ in range(size)
    ]


def coverage(draw: Draw, sizes: Sequence[int], tie: float, means: Sequence[float] = SHARES) -> float:
    """The share of intervals that hold the mean, over means from .05 to .95."""
    chance = random.Random(37)
    clusters = [cluster for cluster, size in enumerate(sizes) for _ in range(size)]
    held = []
    for mean in means:
        for _ in range(TIMES):
            found = mean_interval(clustered(draw, sizes, tie, chance, mean), clusters, 0.05)
            assert found is not None
            held.append(found[0] <= mean <= found[1])
    return fmean(held)


@pytest.mark.parametrize("n", [5, 10, 30, 100, 500])
def test_intervals_of_independent_passes_hold_the_truth(n: int) -> None:
    assert 0.93 <= coverage(passed, [1] * n, 0) <= (0.97 if n >= 8 else 1)


@pytest.mark.parametrize("n", [10, 30, 100, 500])
def test_intervals_of_independent_grades_hold_the_truth(n: int) -> None:
    assert 0.93 <= coverage(graded, [1] * n, 0) <= 0.975


@pytest.mark.parametrize("tie", [0.1, 0.3])
@pytest.mark.parametrize(
    "sizes", [[10] * 2, [10] * 3, [5] * 5, [5] * 8, [5] * 16, [5] * 40, [50, *[5] * 10], [30, *[1] * 30]]
)
def test_intervals_of_passes_in_clusters_hold_the_truth(sizes: list[int], tie: float) -> None:
    """Two to forty clusters, and one that has half of the samples; below 8 effective clusters conservative."""
    assert coverage(passed, sizes, tie) >= 0.92
    effective = clustered_mean([0.0] * sum(sizes), [c for c, size in enumerate(sizes) for _ in range(size)])
    assert effective.effective_clusters < 8 or coverage(passed, sizes, tie) <= 0.97


@pytest.mark.parametrize("sizes", [[10] * 3, [5] * 5, [5] * 8, [5] * 40, [50, *[5] * 10]])
def test_intervals_of_grades_in_clusters_hold_the_truth(sizes: list[int]) -> None:
    """Grades near the middle: at the ends and in few clusters Student's interval covers less."""
    assert coverage(graded, sizes, 0.1, SHARES[1:-1]) >= 0.92


@pytest.mark.parametrize("discordant", [0.0, 0.2, 0.5])
@pytest.mark.parametrize("n", [30, 100, 300])
def test_the_printed_difference_of_passes_is_found_as_often_as_it_says(n: int, discordant: float) -> None:
    difference = detectable_by_mcnemar(n, discordant, 0.05, 0.8)
    assert difference is not None
    chance, either = random.Random(38), max(discordant, difference)
    found = 0
    for _ in range(TIMES):
        throws = [chance.random() for _ in range(n)]
        only_a = sum(throw < (either + difference) / 2 for throw in throws)
        only_b = sum((either + difference) / 2 <= throw < either for throw in throws)
        found += mcnemar_p(only_a, only_b) < 0.05
    assert 0.72 <= found / TIMES <= 0.9


@pytest.mark.parametrize("clusters", [6, 8, 10, 16, 40])
def test_the_printed_difference_of_clusters_is_found_as_often_as_it_says(clusters: int) -> None:
    difference = detectable_by_flips(clusters, 1.0, clusters - 1, 0.05, 0.8)
    assert difference is not None
    chance, shift = random.Random(39), difference / sqrt(clusters)
    drawn = ([chance.gauss(shift, 1) for _ in range(clusters)] for _ in range(TIMES))
    assert 0.72 <= sum(sign_flips(each, chance, 199).p < 0.05 for each in drawn) / TIMES <= 0.9


def test_where_no_p_is_below_alpha_no_difference_is_promised() -> None:
    assert detectable_by_flips(5, 0.01, 4, 0.05, 0.8) is None
    assert detectable_by_flips(6, 0.01, 5, 0.05 / 2, 0.8) is None
    assert detectable_by_mcnemar(5, 0.5, 0.05, 0.8) is None
