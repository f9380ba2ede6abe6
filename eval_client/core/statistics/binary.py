"""Pure: tests and intervals for samples that are passed or failed once."""

import math
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

from eval_client.core.statistics.samples import Interval
from eval_client.core.statistics.student import incomplete_beta


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


def mcnemar_power(samples: int, discordant: float, difference: float, alpha: float) -> float:
    """The probability that McNemar's test finds a difference of two shares, p being below alpha.

    `discordant`: the share of the samples that one side alone passes, at least the difference. Their number is
    binomial, and so is the number of them that the better side passes; of many numbers every so-manieth is looked at.
    """
    spread = 6 * math.sqrt(samples * discordant * (1 - discordant)) + 1
    low, high = (
        max(0, math.floor(samples * discordant - spread)),
        min(samples, math.ceil(samples * discordant + spread)),
    )
    counts = range(low, high + 1, 1 + (high - low) // 64)
    better = (discordant + difference) / (2 * discordant)
    weights = [_binomial(samples, count, discordant) for count in counts]
    found = (
        weight * binomial_tail(count, _least_wins(count, alpha), better)
        for count, weight in zip(counts, weights, strict=True)
        if weight
    )
    return math.fsum(found) / math.fsum(weights)


@lru_cache(maxsize=4096)
def _least_wins(discordant: int, alpha: float) -> int:
    """How many of the discordant samples one side has to win for a p below alpha; more than there are if none do."""
    low, high = discordant // 2, discordant + 1
    while high - low > 1:
        wins = (low + high) // 2
        low, high = (low, wins) if 2 * binomial_tail(discordant, wins, 0.5) < alpha else (wins, high)
    return high


def binomial_tail(n: int, k: int, p: float) -> float:
    """The probability of at least k of n, each with probability p."""
    if k <= 0 or k > n:
        return float(k <= 0)
    return incomplete_beta(p, 1 - p, k, n - k + 1) if 0 < p < 1 else p


def _binomial(n: int, k: int, p: float) -> float:
    """The probability of exactly k of n."""
    if p in (0, 1):
        return float(k == n * p)
    ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(ways + k * math.log(p) + (n - k) * math.log1p(-p))


def paired_interval(samples: int, only_a: int, only_b: int, alpha: float) -> Interval:
    """The interval of level 1 - alpha for the difference of two paired shares, cut to -1..1.

    Bonett and Price 2012 (Statistical Methods in Medical Research 21, 479), an adjusted Wald interval: with
    x = (only_a + 1) / (samples + 2) and y = (only_b + 1) / (samples + 2) it is
    x - y -+ z sqrt((x + y - (x - y)^2) / (samples + 2)).
    """
    x, y = (only_a + 1) / (samples + 2), (only_b + 1) / (samples + 2)
    margin = z(1 - alpha / 2) * math.sqrt((x + y - (x - y) ** 2) / (samples + 2))
    return max(-1.0, x - y - margin), min(1.0, x - y + margin)


def wilson_interval(share: float, samples: float, alpha: float) -> Interval:
    """The interval of level 1 - alpha for a share of so many independent samples (Wilson 1927)."""
    square = z(1 - alpha / 2) ** 2
    middle = (share + square / (2 * samples)) / (1 + square / samples)
    spread = math.sqrt(share * (1 - share) / samples + square / (4 * samples * samples))
    margin = math.sqrt(square) * spread / (1 + square / samples)
    return max(0.0, middle - margin), min(1.0, middle + margin)


def z(p: float) -> float:
    """The quantile of the standard normal distribution, 0 < p < 1."""
    return NormalDist().inv_cdf(p)
