"""Agents that do not differ: how often a test says they do, and how often an interval holds the truth."""

import random

import pytest

from eval_client.core.statistics.resampling import sign_flips
from eval_client.core.statistics.single import ClusteredMean, clustered_mean, metric_interval

TIMES, CLUSTERS, SIZE = 2_000, 40, 5
FEWER = 400
"""Times without clusters, where the figures are far from their limits."""
DRAWS = 199
"""Few draws make a test of the same level: 5 % of 200 is a whole number."""


def differences(chance: random.Random) -> tuple[list[float], list[int]]:
    """Differences about 0 in clusters with an intra-cluster correlation of 0.5, and the cluster of each."""
    values, clusters = [], []
    for cluster in range(CLUSTERS):
        shared = chance.gauss(0, 1)
        values += [shared + chance.gauss(0, 1) for _ in range(SIZE)]
        clusters += [cluster] * SIZE
    return values, clusters


@pytest.mark.thorough
def test_equal_agents_are_told_apart_as_often_as_alpha_says_and_far_more_often_without_clusters() -> None:
    chance = random.Random(16)
    rejected = rejected_without = covered = covered_without = 0
    for number in range(TIMES):
        values, clusters = differences(chance)
        sums = [sum(values[start : start + SIZE]) for start in range(0, len(values), SIZE)]
        rejected += sign_flips(sums, chance, DRAWS).p <= 0.05
        covered += covers(clustered_mean(values, clusters))
        if number < FEWER:
            rejected_without += sign_flips(values, chance, DRAWS).p <= 0.05
            covered_without += covers(clustered_mean(values))
    assert 0.035 <= rejected / TIMES <= 0.065
    assert 0.93 <= covered / TIMES <= 0.97
    assert rejected_without / FEWER > 0.15
    assert covered_without / FEWER < 0.85


def covers(found: ClusteredMean) -> bool:
    interval = metric_interval(found.mean, found.standard_error, found.effective_clusters, None, 0.05)
    return interval is not None and interval[0] <= 0 <= interval[1]


@pytest.mark.parametrize("clusters", [5, 40])
def test_graded_scores_of_independent_samples(clusters: int) -> None:
    """With few clusters the exact test is conservative, never the opposite."""
    chance = random.Random(17)
    sums = ([chance.choice([-1.0, -0.5, 0.5, 1.0]) for _ in range(clusters)] for _ in range(TIMES))
    assert sum(sign_flips(each, chance, DRAWS).p <= 0.05 for each in sums) / TIMES <= 0.065
