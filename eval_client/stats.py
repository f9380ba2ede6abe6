"""Pure statistics over scores."""

import math
from collections.abc import Sequence


def clustered_mean(clusters: Sequence[Sequence[float]]) -> tuple[float, float | None]:
    """The mean over all scores, and its standard error with whole clusters (epochs of one sample) as the unit.

    The mean is 0 without scores; the error is None below two clusters. Cluster-robust, with the n/(n-1) correction
    (Miller 2024, arXiv 2411.00640, section 2.2).
    """
    scores = [score for cluster in clusters for score in cluster]
    if not scores:
        return 0.0, None
    mean = math.fsum(scores) / len(scores)
    n = len(clusters)
    if n < 2:
        return mean, None
    between = math.fsum(math.fsum(score - mean for score in cluster) ** 2 for cluster in clusters)
    return mean, math.sqrt(between * n / (n - 1)) / len(scores)
