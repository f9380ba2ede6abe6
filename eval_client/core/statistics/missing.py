"""Pure: what missing scores could change."""

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from eval_client.core.statistics.distributions import mcnemar_p
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


Group = tuple[int, float]
"""Scored trials of a group, and their mean from 0 to 1."""


def group_mean_bounds(groups: Sequence[Group], missing: int) -> tuple[float, float]:
    """The bounds of a mean over groups, each the mean of its scores, where no one knows the missing trials' groups.

    A group without trials does not count, unless a missing trial belongs to it. At least one group has a trial.
    """
    lowest = _lowest(groups, missing)
    return lowest, 1 - _lowest([(scored, 1 - mean) for scored, mean in groups], missing)


def _lowest(groups: Sequence[Group], missing: int) -> float:
    """The lowest mean over groups with every missing score 0: one in each of some empty groups, the others apart."""
    present = [group for group in groups if group[0]]
    empty = len(groups) - len(present)
    return min(
        _placed(present, missing - opened) / (len(present) + opened) for opened in range(min(empty, missing) + 1)
    )


def _placed(groups: Sequence[Group], missing: int) -> float:
    """The lowest sum of means after `missing` zeros: each goes where it lowers a mean most, as means are convex."""
    added = [0] * len(groups)

    def mean(place: int, zeros: int) -> float:
        scored, value = groups[place]
        return scored * value / (scored + zeros)

    for _ in range(missing):
        best = max(range(len(groups)), key=lambda place: mean(place, added[place]) - mean(place, added[place] + 1))
        added[best] += 1
    return sum(mean(place, zeros) for place, zeros in enumerate(added))
