"""Pure: the difference of two agents on the samples of one task, and whether there is any."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from eval_client.core.statistics.distributions import mcnemar_p, paired_interval, wilson_interval
from eval_client.core.statistics.resampling import RandomSource, sign_flips
from eval_client.core.statistics.samples import Interval, SamplePair, Scores
from eval_client.core.statistics.single import NO_ERROR, ClusteredMean, clustered_mean, metric_interval

Test = Literal["mcnemar", "sign_flip_exact", "sign_flip_drawn"]
_TIE = 1e-9
"""Means of a sample that differ by less are equal: they differ by rounding."""


class Difference(NamedTuple):
    """A - B over matched samples."""

    a: ClusteredMean
    b: ClusteredMean
    mean: ClusteredMean
    interval: Interval | None
    """None where there are fewer than two clusters."""
    test: Test
    p: float
    differing: int
    """Clusters whose differences don't cancel out: no p can be below 2^(1 - differing)."""
    wins: int
    """Samples on which A has the higher mean."""
    ties: int
    losses: int

    @property
    def pairing_gain(self) -> float | None:
        """How many times smaller the error is than one that ignores the pairing; None where either is 0 or unknown."""
        errors = (self.a.standard_error, self.b.standard_error, self.mean.standard_error)
        if None in errors or not self.mean.standard_error:
            return None
        return math.hypot(errors[0] or 0.0, errors[1] or 0.0) / self.mean.standard_error


def difference(matched: Sequence[SamplePair], alpha: float, chance: RandomSource) -> Difference:
    """Compare two agents on matched samples, at least one; the interval has level 1 - alpha.

    The test is the exact one of McNemar where each sample is a cluster of its own that both sides passed or failed in
    one epoch, with the interval of Bonett and Price; otherwise sign flips of clusters, with Student's interval.
    """
    clusters = [pair.cluster for pair in matched]
    values = [pair.difference for pair in matched]
    a, b = (clustered_mean(sides, clusters) for sides in zip(*((p.a.mean, p.b.mean) for p in matched), strict=True))
    mean = clustered_mean(values, clusters)
    wins, losses = sum(value > _TIE for value in values), sum(value < -_TIE for value in values)
    counts = (wins, len(values) - wins - losses, losses)
    if mean.clusters == len(matched) and all(_passed_or_failed(side) for pair in matched for side in (pair.a, pair.b)):
        interval = paired_interval(len(matched), wins, losses, alpha) if len(matched) > 1 else None
        return Difference(a, b, mean, interval, "mcnemar", mcnemar_p(wins, losses), wins + losses, *counts)
    flips = sign_flips(cluster_sums(matched), chance)
    test: Test = "sign_flip_exact" if flips.exact else "sign_flip_drawn"
    return Difference(a, b, mean, _interval(mean, alpha), test, flips.p, flips.clusters, *counts)


def _passed_or_failed(side: Scores) -> bool:
    """Whether the sample has one scored epoch, with 0 or 1."""
    return side.scores in ((0,), (1,))


def _interval(mean: ClusteredMean, alpha: float) -> Interval | None:
    """Student's for a mean difference, cut to -1..1; without variance Wilson's of its size, and about 0 that twice."""
    if mean.standard_error is None or mean.standard_error >= NO_ERROR:
        return metric_interval(mean.mean, mean.standard_error, mean.effective_clusters, (-1.0, 1.0), alpha)
    low, high = wilson_interval(min(1.0, abs(mean.mean)), mean.effective_clusters, alpha)
    if abs(mean.mean) < _TIE:
        return -high, high
    return (low, high) if mean.mean > 0 else (-high, -low)


def cluster_sums(matched: Sequence[SamplePair]) -> list[float]:
    """The sum of the differences of each cluster, in the order of first appearance."""
    sums: dict[str, float] = {}
    for pair in matched:
        sums[pair.cluster] = sums.get(pair.cluster, 0.0) + pair.difference
    return list(sums.values())
