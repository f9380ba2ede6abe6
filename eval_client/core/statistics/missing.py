"""Pure: what missing scores could change."""

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from eval_client.core.statistics.binary import mcnemar_p
from eval_client.core.statistics.samples import Interval, SamplePair, Scores


class Missing(NamedTuple):
    """What is missing of a comparison, and whether the two sides miss different samples."""

    a: int
    """Planned trials of A without a score."""
    b: int
    only_a: int
    """Samples that A has no score of, and B has."""
    only_b: int
    p: float
    """Exact McNemar's p that both sides miss samples by the same chance."""


def missing(pairs: Sequence[SamplePair]) -> Missing:
    """What is missing among the planned samples of a comparison."""
    only_a = sum(not pair.a.scores and bool(pair.b.scores) for pair in pairs)
    only_b = sum(not pair.b.scores and bool(pair.a.scores) for pair in pairs)
    trials_a, trials_b = sum(pair.a.missing for pair in pairs), sum(pair.b.missing for pair in pairs)
    return Missing(trials_a, trials_b, only_a, only_b, mcnemar_p(only_a, only_b))


def mean_bounds(sides: Sequence[Scores]) -> Interval:
    """The mean over all planned samples, at least one, if all missing scores were 0, and if they were 1."""
    low = [side.mean_with(0) for side in sides]
    high = [side.mean_with(1) if side.missing else mean for side, mean in zip(sides, low, strict=True)]
    return fmean(low), fmean(high)


def difference_bounds(a: Interval, b: Interval) -> Interval:
    """The least and the greatest A - B that the missing scores allow, by the bounds of both means."""
    return a[0] - b[1], a[1] - b[0]
