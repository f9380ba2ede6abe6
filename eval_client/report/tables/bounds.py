"""Pure: between which values a metric lies, whatever scores its missing trials get."""

from collections.abc import Sequence

Group = tuple[int, float]
"""Scored trials of a group, and their mean from 0 to 1."""


def mean_bounds(scored: int, mean: float, missing: int) -> tuple[float, float]:
    """The bounds of a mean of scores from 0 to 1: with all missing ones 0, and with all 1."""
    total = scored + missing
    return scored * mean / total, (scored * mean + missing) / total


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
