"""Pure: means with cluster-robust standard errors."""

import math
from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple

from eval_client.core.statistics.distributions import t_two_sided_p

NO_ERROR = 1e-12
"""A standard error below it is one of rounding: the values, or the clusters' sums, are all alike."""


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
