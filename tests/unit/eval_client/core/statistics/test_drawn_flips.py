"""Drawn sign flips find the hits that adding every total one by one finds."""

import math
import random
from collections.abc import Sequence

import pytest

from eval_client.core.statistics import resampling
from eval_client.core.statistics.resampling import sign_flips

DRAWS = 999


def one_by_one(sums: Sequence[float], chance: random.Random, draws: int) -> float:
    """p by the definition: bit i of a draw makes value i negative; the bits are drawn in whole bytes."""
    values = [abs(total) for total in sums if abs(total) > 1e-9]
    least = abs(math.fsum(sums)) - 1e-9
    hits = 0
    for _ in range(draws):
        bits = chance.getrandbits(-(-len(values) // 8) * 8)
        total = math.fsum(-value if bits >> place & 1 else value for place, value in enumerate(values))
        hits += abs(total) >= least
    return (1 + hits) / (1 + draws)


def made(kind: str, count: int, chance: random.Random) -> list[float]:
    match kind:
        case "continuous":
            return [chance.random() - chance.random() for _ in range(count)]
        case "shifted":
            return [chance.random() - chance.random() + 1.5 / math.sqrt(count) for _ in range(count)]
        case "equal":
            return [chance.choice((-1.0, 1.0)) for _ in range(count)]
        case "thirds":
            return [chance.choice((-1.0, -2 / 3, -1 / 3, 1 / 3, 1.0)) for _ in range(count)]
        case _:  # a few large ones, beside which the others are below one level of the rough totals
            return [(chance.random() - 0.5) * (1_000 if place % 40 == 0 else 0.01) for place in range(count)]


@pytest.mark.parametrize("count", [17, 24, 25, 160, 1_001])
@pytest.mark.parametrize("kind", ["continuous", "shifted", "equal", "thirds", "outliers"])
def test_p_is_that_of_totals_added_one_by_one(kind: str, count: int) -> None:
    sums = [0.0, *made(kind, count, random.Random(f"{kind} {count}")), 0.0]
    p = one_by_one(sums, random.Random(count), DRAWS)
    assert sign_flips(sums, random.Random(count), DRAWS) == (p, False, count)


def test_more_clusters_than_sixteen_bits_hold_and_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = made("continuous", 4_600, random.Random(5))
    expected = one_by_one(sums, random.Random(7), 200)
    assert 0.01 < expected < 0.9
    for batch_bytes in (resampling.BATCH_BYTES, 40_000, 1):  # all draws at once; 69, the last time 62; one
        monkeypatch.setattr(resampling, "BATCH_BYTES", batch_bytes)
        assert sign_flips(sums, random.Random(7), 200).p == expected


@pytest.mark.parametrize(
    ("kind", "count", "p"),
    [
        ("continuous", 40, 0.1892),
        ("continuous", 500, 0.1337),
        ("shifted", 40, 0.0002),
        ("shifted", 500, 0.0001),
        ("equal", 40, 0.8739),
        ("equal", 500, 0.5024),
        ("thirds", 40, 0.6259),
        ("thirds", 500, 0.0175),
        ("outliers", 40, 0.7515),
        ("outliers", 500, 0.182),
    ],
)
def test_p_is_what_earlier_versions_found(kind: str, count: int, p: float) -> None:
    """Of 9,999 draws by the seed 0, as found where every draw was added one by one."""
    assert sign_flips(made(kind, count, random.Random(3)), random.Random(0)).p == p
