"""Pure: what repeated trials of the same samples pass."""

from collections.abc import Sequence
from math import comb
from statistics import fmean
from typing import NamedTuple


class Passes(NamedTuple):
    """The shares of samples that are passed in k trials."""

    k: int
    pass_at: float
    """Passed at least once in k trials: pass@k."""
    pass_hat: float
    """Passed in each of k trials: pass^k."""
    samples: int
    left_out: int
    """Samples with fewer than k scored epochs."""


def shares(counts: Sequence[tuple[int, int]], k: int) -> tuple[list[float], list[float]]:
    """pass@k and pass^k of each sample with at least k scored epochs."""
    enough = [(n, c) for n, c in counts if n >= k]
    return [1 - comb(n - c, k) / comb(n, k) for n, c in enough], [comb(c, k) / comb(n, k) for n, c in enough]


def passes(counts: Sequence[tuple[int, int]], k: int) -> Passes | None:
    """The shares for k trials; `counts` has (scored epochs, passed epochs) for each sample.

    pass@k is the mean of 1 - C(n - c, k) / C(n, k) (Chen and others 2021, arXiv 2107.03374, section 2.1), pass^k that
    of C(c, k) / C(n, k) (Yao and others 2024, arXiv 2406.12045, section 3). None where no sample has k scored epochs.
    """
    at, hat = shares(counts, k)
    return Passes(k, fmean(at), fmean(hat), len(at), len(counts) - len(at)) if at else None


def steps(most: int) -> list[int]:
    """The k that are shown for so many epochs: 1, 2, 4, 8, ... and the epochs themselves."""
    return sorted({most, *(2**power for power in range(most.bit_length()))} - {0})


def all_passes(counts: Sequence[tuple[int, int]]) -> list[Passes]:
    """`passes` for the `steps` up to the most scored epochs of a sample."""
    found = (passes(counts, k) for k in steps(max((n for n, _ in counts), default=0)))
    return [each for each in found if each is not None]
