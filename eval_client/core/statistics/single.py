"""Pure: one agent's mean on one task, where each sample counts once."""

from collections.abc import Sequence

from eval_client.core.statistics.binary import wilson_interval
from eval_client.core.statistics.clustered import ClusteredMean, clustered_mean
from eval_client.core.statistics.samples import Interval, Scores


def mean_of_samples(sides: Sequence[Scores], clusters: Sequence[str]) -> ClusteredMean:
    """The mean over samples of the mean over their scored epochs; each has to have one."""
    return clustered_mean([side.mean for side in sides], clusters)


def mean_interval(sides: Sequence[Scores], clusters: Sequence[str], alpha: float) -> Interval | None:
    """The interval of level 1 - alpha for that mean; None where there are fewer than two clusters.

    Wilson's where each sample is a cluster of its own, passed or failed in one epoch; otherwise by Student's t.
    """
    mean = mean_of_samples(sides, clusters)
    if mean.clusters == len(sides) > 1 and all(is_pass_or_fail(side) for side in sides):
        return wilson_interval(sum(side.scores == (1,) for side in sides), len(sides), alpha)
    return mean.interval(alpha)


def is_pass_or_fail(side: Scores) -> bool:
    """Whether the sample has one scored epoch, with 0 or 1."""
    return side.scores in ((0,), (1,))
