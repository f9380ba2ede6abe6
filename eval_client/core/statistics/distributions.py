"""Pure: Student's t distribution, and tests and intervals for samples that are passed or failed once."""

import math
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

from eval_client.core.statistics.samples import Interval

_TINY = 1e-300
_PRECISION = 1e-15
_MAX_TERMS = 10_000


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


def t_two_sided_p(t: float, df: float) -> float:
    """The probability that |T| is at least |t|, for Student's T with `df` degrees of freedom, 0 < df <= 100,000.

    It is the regularised incomplete beta function I(x; df / 2, 1 / 2) at x = df / (df + t^2) (DLMF 8.17; Abramowitz and
    Stegun 1964, 26.7.1). Relative error below 1e-10.
    """
    square = t * t
    if square == 0:
        return 1.0
    if math.isinf(square):
        return 0.0
    return incomplete_beta(df / (df + square), square / (df + square), df / 2, 0.5)


@lru_cache(maxsize=1024)
def t_quantile(p: float, df: float) -> float:
    """The t that Student's T with `df` degrees of freedom stays below with probability p, 0 < p < 1; by bisection."""
    if p < 0.5:
        return -t_quantile(1 - p, df)
    outside = 2 * (1 - p)
    low, high = 0.0, 1.0
    while t_two_sided_p(high, df) > outside:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if t_two_sided_p(middle, df) > outside else (low, middle)
    return middle


def incomplete_beta(x: float, y: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I(x; a, b), for y = 1 - x, both above 0."""
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(y))
    if x < (a + 1) / (a + b + 2):
        return front / (a * _continued_fraction(x, a, b))
    return 1 - front / (b * _continued_fraction(y, b, a))


def _continued_fraction(x: float, a: float, b: float) -> float:
    """1 + d1 / (1 + d2 / (1 + ...)) with the coefficients of DLMF 8.17.22, by Lentz's method."""
    value = numerators = 1.0
    denominators = 0.0
    for number in range(1, _MAX_TERMS):
        m, odd = divmod(number, 2)
        if odd:
            d = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            d = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        denominators = 1 / ((1 + d * denominators) or _TINY)
        numerators = (1 + d / numerators) or _TINY
        step = numerators * denominators
        value *= step
        if abs(step - 1) < _PRECISION:
            break
    return value
