"""Pure: one agent on one task: its mean, where each sample counts once, its clustered error, and what trials pass."""

import math
from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from math import comb
from statistics import fmean, variance
from typing import NamedTuple

from eval_client.core.statistics.distributions import t_quantile, t_two_sided_p, wilson_interval
from eval_client.core.statistics.samples import Interval

NO_ERROR = 1e-12
"""A standard error below it is one of rounding: the values, or the clusters' sums, are all alike."""
FEW_EFFECTIVE = 8
"""Below so many effective clusters the error of passes and failures is so rough that their interval is widened."""


class ClusteredMean(NamedTuple):
    """A mean over samples, with whole clusters as the units of its error."""

    mean: float
    standard_error: float | None
    """None where there are fewer than two clusters."""
    clusters: int
    effective_clusters: float
    """(sum n_c)^2 / sum n_c^2 for clusters of n_c samples: their number where all have as many, else less."""

    @property
    def degrees_of_freedom(self) -> float:
        """One less than the effective number of clusters, at least 1: one large cluster tells little of the others."""
        return max(1.0, self.effective_clusters - 1)

    def p(self) -> float | None:
        """The two-sided p of a mean of 0, by Student's t; None where there are fewer than two clusters.

        It is 1 where mean and error are 0, and 0 where the error alone is.
        """
        if self.standard_error is None:
            return None
        if self.standard_error < NO_ERROR:
            return float(abs(self.mean) < NO_ERROR)
        return t_two_sided_p(self.mean / self.standard_error, self.degrees_of_freedom)


def clustered_mean(values: Sequence[float], clusters: Sequence[Hashable] = ()) -> ClusteredMean:
    """The mean of one value for each sample, and its standard error; `clusters` has the cluster of each value.

    By default each value is a cluster of its own. The mean is 0 without values. With G clusters and n values the error
    is sqrt(G / (G - 1) * sum over clusters of (sum of value - mean)^2) / n: Miller 2024 (arXiv 2411.00640, section 2.2)
    with the factor for few clusters, as regressions on a constant with errors by cluster have it.
    """
    if not values:
        return ClusteredMean(0.0, None, 0, 0.0)
    n = len(values)
    mean = math.fsum(values) / n
    deviations = _by_cluster(values, mean, clusters) if clusters else [value - mean for value in values]
    groups = len(deviations)
    sizes = Counter(clusters).values() if clusters else [1] * n
    effective = n * n / sum(size * size for size in sizes)
    if groups < 2:
        return ClusteredMean(mean, None, groups, effective)
    squares = math.fsum([deviation * deviation for deviation in deviations])
    return ClusteredMean(mean, math.sqrt(squares * groups / (groups - 1)) / n, groups, effective)


def _by_cluster(values: Sequence[float], mean: float, clusters: Sequence[Hashable]) -> Collection[float]:
    deviations: dict[Hashable, float] = {}
    for value, cluster in zip(values, clusters, strict=True):
        deviations[cluster] = deviations.get(cluster, 0.0) + value - mean
    return deviations.values()


def mean_interval(means: Sequence[float], clusters: Sequence[Hashable], alpha: float) -> Interval | None:
    """The interval of level 1 - alpha for the mean of samples' means in 0..1; None below two clusters.

    `clusters` has the cluster of each sample; empty where each is its own. Where all means are 0 or 1 it is Wilson's
    with n / max(1, deff) for n samples, where deff is the clustered variance of the mean by the simple one; below
    FEW_EFFECTIVE effective clusters that number is cut by the square of Student's quantiles at FEW_EFFECTIVE - 1 and at
    its own degrees of freedom (after Korn and Graubard 1998), since Wilson's with the normal quantile covers 74 to 90 %
    there. Otherwise it is that of `metric_interval`.
    """
    mean = clustered_mean(means, clusters)
    if mean.standard_error is None or mean.standard_error < NO_ERROR or not set(means) <= {0, 1}:
        return metric_interval(mean.mean, mean.standard_error, mean.effective_clusters, (0.0, 1.0), alpha)
    design = mean.standard_error**2 * len(means) / variance(means)
    known = t_quantile(1 - alpha / 2, FEW_EFFECTIVE - 1) / t_quantile(1 - alpha / 2, mean.degrees_of_freedom)
    return wilson_interval(mean.mean, len(means) / max(1.0, design) * min(1.0, known) ** 2, alpha)


def metric_interval(
    value: float, error: float | None, effective: float, scale: Interval | None, alpha: float
) -> Interval | None:
    """The interval of level 1 - alpha by Student's t, for a metric with a standard error over `effective` clusters.

    `scale` has the least and the greatest value of the metric; the interval is cut to it. Without variance it is
    Wilson's of the value's place on the scale with `effective` samples. None without an error, and without variance
    where the scale is unknown: an interval is never of zero width.
    """
    if error is None:
        return None
    low, high = scale or (-math.inf, math.inf)
    if error < NO_ERROR:
        width = high - low
        ends = wilson_interval(min(1.0, max(0.0, (value - low) / width)), effective, alpha) if scale else None
        return ends and (low + width * ends[0], low + width * ends[1])
    margin = t_quantile(1 - alpha / 2, max(1.0, effective - 1)) * error
    return max(low, value - margin), min(high, value + margin)


class Passes(NamedTuple):
    """The shares of samples that are passed in k trials."""

    k: int
    pass_at: float
    """Passed at least once in k trials: pass@k."""
    pass_hat: float
    """Passed in each of k trials: pass^k."""
    samples: int
    left_out: int
    """Samples with fewer than k scored epochs."""


def shares(counts: Sequence[tuple[int, int]], k: int) -> tuple[list[float], list[float]]:
    """pass@k and pass^k of each sample with at least k scored epochs."""
    enough = [(n, c) for n, c in counts if n >= k]
    return [1 - comb(n - c, k) / comb(n, k) for n, c in enough], [comb(c, k) / comb(n, k) for n, c in enough]


def passes(counts: Sequence[tuple[int, int]], k: int) -> Passes | None:
    """The shares for k trials; `counts` has (scored epochs, passed epochs) for each sample.

    pass@k is the mean of 1 - C(n - c, k) / C(n, k) (Chen and others 2021, arXiv 2107.03374, section 2.1), pass^k that
    of C(c, k) / C(n, k) (Yao and others 2024, arXiv 2406.12045, section 3). None where no sample has k scored epochs.
    """
    at, hat = shares(counts, k)
    return Passes(k, fmean(at), fmean(hat), len(at), len(counts) - len(at)) if at else None


def steps(most: int) -> list[int]:
    """The k that are shown for so many epochs: 1, 2, 4, 8, ... and the epochs themselves."""
    return sorted({most, *(2**power for power in range(most.bit_length()))} - {0})


def all_passes(counts: Sequence[tuple[int, int]]) -> list[Passes]:
    """`passes` for the `steps` up to the most scored epochs of a sample."""
    found = (passes(counts, k) for k in steps(max((n for n, _ in counts), default=0)))
    return [each for each in found if each is not None]
