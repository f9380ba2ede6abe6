"""Pure: tests and intervals for samples that are passed or failed once."""

import math
from fractions import Fraction
from statistics import NormalDist

from eval_client.core.statistics.samples import Interval


def mcnemar_p(only_a: int, only_b: int) -> float:
    """The exact two-sided p of McNemar's test: `only_a` samples passed by A alone, `only_b` by B alone.

    Twice the binomial probability at 1/2 of the rarer kind being this rare, at most 1 (McNemar 1947; Fagerland and
    others 2013). It is 1 where there are none of either kind.
    """
    discordant = only_a + only_b
    ways = tail = 1
    for k in range(min(only_a, only_b)):
        ways = ways * (discordant - k) // (k + 1)
        tail += ways
    return float(min(Fraction(1), Fraction(2 * tail, 2**discordant)))


def paired_interval(samples: int, only_a: int, only_b: int, alpha: float) -> Interval:
    """The interval of level 1 - alpha for the difference of two paired shares, cut to -1..1.

    Bonett and Price 2012 (Statistical Methods in Medical Research 21, 479), an adjusted Wald interval: with
    x = (only_a + 1) / (samples + 2) and y = (only_b + 1) / (samples + 2) it is
    x - y -+ z sqrt((x + y - (x - y)^2) / (samples + 2)).
    """
    x, y = (only_a + 1) / (samples + 2), (only_b + 1) / (samples + 2)
    margin = z(1 - alpha / 2) * math.sqrt((x + y - (x - y) ** 2) / (samples + 2))
    return max(-1.0, x - y - margin), min(1.0, x - y + margin)


def wilson_interval(passed: int, samples: int, alpha: float) -> Interval:
    """The interval of level 1 - alpha for a share of independent samples, at least one (Wilson 1927)."""
    share, square = passed / samples, z(1 - alpha / 2) ** 2
    middle = (share + square / (2 * samples)) / (1 + square / samples)
    spread = math.sqrt(share * (1 - share) / samples + square / (4 * samples * samples))
    margin = math.sqrt(square) * spread / (1 + square / samples)
    return max(0.0, middle - margin), min(1.0, middle + margin)


def z(p: float) -> float:
    """The quantile of the standard normal distribution, 0 < p < 1."""
    return NormalDist().inv_cdf(p)
