"""Pure: how small a difference a comparison finds, and how many samples it takes to find one."""

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from statistics import fmean, variance
from typing import NamedTuple

from eval_client.core.statistics.distributions import mcnemar_power, t_quantile, z
from eval_client.core.statistics.resampling import exact_p, inverted_cdf
from eval_client.core.statistics.samples import SamplePair, Scores

FEW_FLIPS = 7
"""With so many clusters the test is far from Student's: it takes more to be sure."""
_SIMULATED = 400


def detectable(standard_error: float, alpha: float, power: float, df: float | None = None) -> float:
    """The difference that a two-sided test at alpha finds with probability `power`.

    (z[1 - alpha / 2] + z[power]) * standard error (Miller 2024, arXiv 2411.00640, section 5), with quantiles of
    Student's t instead where the error has `df` degrees of freedom.
    """
    quantiles = z if df is None else partial(t_quantile, df=df)
    return (quantiles(1 - alpha / 2) + quantiles(power)) * standard_error


@lru_cache(maxsize=256)
def detectable_by_mcnemar(samples: int, discordant: float, alpha: float, power: float) -> float | None:
    """The difference of two shares that McNemar's exact test finds with probability `power`, by bisection.

    `discordant`: the share of the samples that one side alone passes; a greater difference raises it. None where so few
    samples find none.
    """
    low, high = 0.0, 1.0
    if mcnemar_power(samples, 1.0, 1.0, alpha) < power:
        return None
    while high - low > 1e-4:
        middle = (low + high) / 2
        found = mcnemar_power(samples, max(discordant, middle), middle, alpha) >= power
        low, high = (low, middle) if found else (middle, high)
    return high


def detectable_by_flips(clusters: int, standard_error: float, df: float, alpha: float, power: float) -> float | None:
    """The mean difference that a test by sign flips of clusters finds with probability `power`.

    That of Student's t with `df` degrees of freedom; with few clusters, whose p takes few values, at least what
    simulated sums of clusters need. None where no p of so many clusters is below alpha.
    """
    if least_p(clusters) >= alpha:
        return None
    by_t = detectable(standard_error, alpha, power, df)
    if clusters > FEW_FLIPS:
        return by_t
    return max(by_t, _least_shift(clusters, alpha, power) * math.sqrt(clusters) * standard_error)


@lru_cache(maxsize=256)
def _least_shift(clusters: int, alpha: float, power: float) -> float:
    """How many standard deviations normal sums of clusters must lie from 0 to be told from it."""
    ratio, shifts = 2.0, []
    for _ in range(50):
        ratio = (1 + ratio) ** (1 / (clusters + 1))
    for number in range(1, _SIMULATED + 1):  # spread evenly over all dimensions (Roberts 2018), so without chance
        sums = [z((0.5 + number * ratio**-place) % 1) for place in range(1, clusters + 1)]
        low, high = 0.0, 8.0
        while high - low > 0.01:
            middle = (low + high) / 2
            found = exact_p([each + middle for each in sums]) < alpha
            low, high = (low, middle) if found else (middle, high)
        shifts.append(high)
    return inverted_cdf(sorted(shifts), power)


def least_p(clusters: int) -> float:
    """The least p that a test by signs of so many clusters can give."""
    return min(1.0, 2.0 ** (1 - clusters))


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


def detectable_at_worst(clusters: int, correlation: float, alpha: float, power: float) -> float | None:
    """The detectable difference of a plan: every sample passed half the time, by agents correlated from 0 to 1.

    A share (1 - correlation) / 2 of the samples is then passed by one agent alone, more than with any other shares.
    None where so many clusters can't tell two agents apart.
    """
    return detectable_by_mcnemar(clusters, (1 - correlation) / 2, alpha, power)
