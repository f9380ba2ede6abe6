"""What plots compute: the Pareto front, and the running mean."""

import random

import pytest

from eval_client.core.statistics.several import pareto_front
from eval_client.report.plots.svg import linear, spanning


def beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one != other and one[0] <= other[0] and one[1] >= other[1]


def test_the_pareto_front_is_what_no_point_beats() -> None:
    chance = random.Random(7)
    for _ in range(500):
        points = [(float(chance.randint(0, 6)), chance.randint(0, 6) / 6) for _ in range(chance.randint(0, 25))]
        brute = [place for place, point in enumerate(points) if not any(beats(other, point) for other in points)]
        front = pareto_front(points)
        assert sorted(front) == brute
        assert [points[place] for place in front] == sorted(points[place] for place in brute)


@pytest.mark.parametrize("values", [[], [0.0], [1e-9], [3.0, 4.0], [0.001, 900.0], [0.0, 900.0], [-0.2, 0.7]])
def test_axes_hold_their_values_and_have_ticks(values: list[float]) -> None:
    for scale in (linear(values, 0, 100), spanning([abs(value) for value in values], 100, 0)):
        assert 2 <= len(scale.ticks()) <= 12
        assert all(0 <= scale.at(each) <= 100 for each in (*values, *scale.ticks()))
    assert spanning([0.001, 900.0], 0, 1).logarithmic
    assert not spanning([0.0, 900.0], 0, 1).logarithmic
    assert linear([-0.2, 0.7], 0, 100).at(-0.2) == 0
