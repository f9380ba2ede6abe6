"""Pure: how small a difference a comparison finds, and how many samples it takes to find one."""

import math
from collections.abc import Sequence
from functools import partial
from statistics import fmean, variance
from typing import NamedTuple

from eval_client.core.statistics import student
from eval_client.core.statistics.binary import z
from eval_client.core.statistics.samples import SamplePair, Scores


def detectable(standard_error: float, alpha: float, power: float, df: float | None = None) -> float:
    """The difference that a two-sided test at alpha finds with probability `power`.

    (z[1 - alpha / 2] + z[power]) * standard error (Miller 2024, arXiv 2411.00640, section 5), with quantiles of
    Student's t instead where the error has `df` degrees of freedom.
    """
    quantiles = z if df is None else partial(student.quantile, df=df)
    return (quantiles(1 - alpha / 2) + quantiles(power)) * standard_error


class Variances(NamedTuple):
    """Where the differences of two agents vary: within samples, from epoch to epoch, and between samples."""

    within_a: float
    within_b: float
    between: float


def variances(pairs: Sequence[SamplePair]) -> Variances | None:
    """The components of the variance of matched samples; None where a side has no sample with two scored epochs.

    `within` is the mean variance of a sample's epochs; `between` is the variance of the differences beyond the share
    of it that the epochs explain, and at least 0 (Miller 2024, section 3.1).
    """
    if len(pairs) < 2:
        return None
    within_a, within_b = _within([pair.a for pair in pairs]), _within([pair.b for pair in pairs])
    if within_a is None or within_b is None:
        return None
    explained = fmean(within_a / len(pair.a.scores) + within_b / len(pair.b.scores) for pair in pairs)
    between = variance([pair.difference for pair in pairs]) - explained
    return Variances(within_a, within_b, max(0.0, between))


def _within(sides: Sequence[Scores]) -> float | None:
    several = [variance(side.scores) for side in sides if len(side.scores) >= 2]
    return fmean(several) if several else None


def samples_needed(
    components: Variances, epochs: tuple[int, int], difference: float, alpha: float, power: float
) -> int:
    """How many independent samples, played so many epochs by A and by B, find a difference with probability `power`.

    (z + z)^2 (between + within A / epochs A + within B / epochs B) / difference^2 (Miller 2024, section 5), rounded up.
    """
    spread = components.between + components.within_a / epochs[0] + components.within_b / epochs[1]
    return math.ceil(detectable(math.sqrt(spread), alpha, power) ** 2 / difference**2)


def detectable_at_worst(clusters: int, correlation: float, alpha: float, power: float) -> float:
    """The detectable difference of a plan: every sample passed half the time, by agents correlated from 0 to 1.

    The difference then varies by (1 - correlation) / 2 from sample to sample, more than with any other shares.
    """
    return detectable(math.sqrt((1 - correlation) / 2 / clusters), alpha, power)
