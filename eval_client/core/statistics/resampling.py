"""Pure: a test by sign flips and an interval by resampling, both of whole clusters.

The caller gives the source of chance, such as `random.Random(seed)`.
"""

import math
import struct
from collections.abc import Sequence
from operator import add, getitem
from typing import NamedTuple, Protocol

from eval_client.core.statistics.samples import Interval

EXACT_CLUSTERS = 16
"""With so many clusters all flips are counted; with more they are drawn."""
DRAWS = 9_999
BATCH_BYTES = 4 << 20
"""How much chance is held at once."""
_LEVELS = 255
_ADDENDS = 257
"""So many bytes add up to 16 bits at most."""
_TIE = 1e-9
"""Sums of differences of scores in 0..1 that differ by less are equal: they differ by rounding."""


class RandomSource(Protocol):
    """What these functions need of `random.Random`."""

    def getrandbits(self, k: int, /) -> int:
        """A number of k random bits."""

    def choices(self, population: Sequence[int], *, k: int) -> list[int]:
        """k elements, drawn with replacement."""


class SignFlips(NamedTuple):
    """The result of a test by sign flips."""

    p: float
    exact: bool
    """Whether all flips were counted; otherwise they were drawn."""
    clusters: int
    """Clusters whose differences don't cancel out."""


def sign_flips(sums: Sequence[float], chance: RandomSource, draws: int = DRAWS) -> SignFlips:
    """The two-sided test that differences are symmetric about 0; `sums` has the sum of them for each cluster.

    p is the share of all 2^m signs of the m clusters whose |total| is at least the observed one (Fisher 1935); clusters
    with a sum of 0 are left out. Above EXACT_CLUSTERS clusters `draws` signs are drawn, and p is
    (1 + hits) / (1 + draws) (Phipson and Smyth 2010, arXiv 1603.05766).
    """
    differing = [abs(total) for total in sums if abs(total) > _TIE]
    least = abs(math.fsum(sums)) - _TIE
    if len(differing) <= EXACT_CLUSTERS:
        return SignFlips(exact_p(sums), True, len(differing))
    hits = _hits(differing, least, chance, draws)
    return SignFlips((1 + hits) / (1 + draws), False, len(differing))


def exact_p(sums: Sequence[float]) -> float:
    """The p of that test by all signs: a few clusters only, since there are 2^(m - 1) totals."""
    totals, least = _all_totals([abs(total) for total in sums if abs(total) > _TIE]), abs(math.fsum(sums)) - _TIE
    return sum(abs(total) >= least for total in totals) / len(totals)


def _all_totals(values: Sequence[float]) -> list[float]:
    """The totals by all signs of the values but the first, whose sign does not change |total|."""
    totals = [values[0] if values else 0.0]
    for value in values[1:]:
        totals = [total + value for total in totals] + [total - value for total in totals]
    return totals


def _hits(values: Sequence[float], least: float, chance: RandomSource, draws: int) -> int:
    """How many of the drawn signs give a total of at least `least` on either side.

    A byte of random bits chooses among the 256 totals of eight values, which are computed once. Rough totals decide
    most draws, exact ones the rest.
    """
    tables = [_subset_totals(values[start : start + 8]) for start in range(0, len(values), 8)]
    size = len(tables)
    most = max(table[0] for table in tables)
    step = 2 * most / _LEVELS
    scale, middle = 1 / step, _LEVELS / 2
    levels = [bytes(map(int, [total * scale + middle + 0.5 for total in table])) for table in tables]
    slack = size * step / 2 + _TIE
    sure, possible = (least + slack) / step, (least - slack) / step
    hits = 0
    for batch in _batches(draws, max(1, BATCH_BYTES // size)):
        signs = b"".join([chance.getrandbits(8 * size).to_bytes(size, "little") for _ in range(batch)])
        distances = [abs(total - size * middle) for total in _column_totals(levels, signs)]
        hits += sum([distance >= sure for distance in distances])
        for draw in [n for n, distance in enumerate(distances) if possible <= distance < sure]:
            hits += abs(sum(map(getitem, tables, signs[draw * size : (draw + 1) * size]))) >= least
    return hits


def _batches(draws: int, most: int) -> list[int]:
    return [min(most, draws - start) for start in range(0, draws, most)]


def _column_totals(levels: Sequence[bytes], rows: bytes) -> list[int]:
    """For each row of bytes the total of what `levels` has for them, by the column.

    A column is added as one whole number, in which each row has 16 bits.
    """
    size, count = len(levels), len(rows) // len(levels)
    totals = [0] * count
    low_bytes = int.from_bytes(b"\xff\0" * (count // 2 + 1), "little")
    for start in range(0, size, _ADDENDS):
        even = odd = 0
        for column in range(start, min(start + _ADDENDS, size)):
            packed = int.from_bytes(rows[column::size].translate(levels[column]), "little")
            even += packed & low_bytes
            odd += packed >> 8 & low_bytes
        for first, sums in ((0, even), (1, odd)):
            length = len(totals[first::2])
            added = struct.unpack(f"<{length}H", sums.to_bytes(2 * length, "little"))
            totals[first::2] = map(add, totals[first::2], added)
    return totals


def _subset_totals(values: Sequence[float]) -> list[float]:
    """For each byte the total of up to eight values, where a bit that is set makes its value negative."""
    totals = [0.0]
    for value in (*values, *(0.0,) * (8 - len(values))):
        totals = [total + value for total in totals] + [total - value for total in totals]
    return totals


def bootstrap_interval(
    sums: Sequence[float], counts: Sequence[int], alpha: float, chance: RandomSource, draws: int
) -> Interval:
    """The percentile interval of level 1 - alpha for a mean over samples, by clusters drawn with replacement.

    `sums` and `counts` have the sum and the number of values of each cluster, at least one; each draw's mean is the
    ratio of their totals (Efron 1979). Its ends are values that were drawn (the inverse of their distribution).
    """
    clusters = range(len(sums))
    means = []
    for _ in range(draws):
        drawn = chance.choices(clusters, k=len(sums))
        means.append(math.fsum(map(sums.__getitem__, drawn)) / sum(map(counts.__getitem__, drawn)))
    means.sort()
    return inverted_cdf(means, alpha / 2), inverted_cdf(means, 1 - alpha / 2)


def inverted_cdf(ordered: Sequence[float], p: float) -> float:
    """The least of the ordered values that a share p of them does not exceed (Hyndman and Fan 1996, type 1)."""
    return ordered[max(0, math.ceil(p * len(ordered) - _TIE) - 1)]
