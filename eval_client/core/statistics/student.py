"""Pure: Student's t distribution."""

import math
from functools import lru_cache

_TINY = 1e-300
_PRECISION = 1e-15
_MAX_TERMS = 10_000


def two_sided_p(t: float, df: float) -> float:
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
def quantile(p: float, df: float) -> float:
    """The t that Student's T with `df` degrees of freedom stays below with probability p, 0 < p < 1; by bisection."""
    if p < 0.5:
        return -quantile(1 - p, df)
    outside = 2 * (1 - p)
    low, high = 0.0, 1.0
    while two_sided_p(high, df) > outside:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if two_sided_p(middle, df) > outside else (low, middle)
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
