"""Pure: means with cluster-robust standard errors."""

import math
from collections.abc import Sequence


def clustered_mean(clusters: Sequence[tuple[int, float]]) -> tuple[float, float | None]:
    """The mean over all scores, and its standard error with whole clusters (epochs of one sample) as the unit.

    A cluster is (how many scores, their sum). The mean is 0 without scores; the error is None below two clusters.
    Cluster-robust, with the n/(n-1) correction (Miller 2024, arXiv 2411.00640, section 2.2).
    """
    scores = sum(count for count, _ in clusters)
    if not scores:
        return 0.0, None
    mean = math.fsum(total for _, total in clusters) / scores
    n = len(clusters)
    if n < 2:
        return mean, None
    between = math.fsum((total - count * mean) ** 2 for count, total in clusters)
    return mean, math.sqrt(between * n / (n - 1)) / scores
