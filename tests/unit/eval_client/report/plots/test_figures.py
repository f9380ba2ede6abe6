"""What plots compute: the Pareto front, and the running mean."""

import random

import pytest

from eval_client.core.statistics.clustered import clustered_mean
from eval_client.report.plots.cost import pareto_front
from eval_client.report.plots.learning import EndedTrial, learning_curve, running_mean
from eval_client.report.plots.scale import linear, spanning
from tests.unit.eval_client.report.plots.drawings import checked


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


def test_a_running_mean_is_that_of_the_samples_so_far_with_its_clustered_error() -> None:
    chance = random.Random(8)
    trials = [
        EndedTrial(sample, f"c{int(sample) % 7}", chance.random())
        for sample in (str(chance.randint(0, 30)) for _ in range(90))
    ]
    curve = running_mean("gpt", trials, planned=90)
    for point in curve.points:
        scores: dict[str, list[float]] = {}
        for trial in trials[: point.trials]:
            scores.setdefault(trial.sample, []).append(trial.score)
        means = [sum(each) / len(each) for each in scores.values()]
        expected = clustered_mean(means, [f"c{int(sample) % 7}" for sample in scores])
        assert point.mean == pytest.approx(expected.mean, abs=1e-12)
        assert point.standard_error == pytest.approx(expected.standard_error, abs=1e-9)
    assert curve.points[-1].trials == 90


def test_a_resume_is_marked_where_trials_ended_before_and_after_it() -> None:
    resumed = [0, 0, 0, 1, 1, 3]
    trials = [EndedTrial(str(place), str(place), 1.0, times) for place, times in enumerate(resumed)]
    curve = running_mean("gpt", trials, planned=6)
    assert [point.trials for point in curve.resumes] == [3, 5]
    plot = learning_curve("os", [curve, running_mean("late", [trials[-1]], planned=6)])
    assert checked(plot) == [
        "gpt: mean score 1.000 ±0.000 after 6 scored trials",
        "gpt: the run was resumed after 3 scored trials",
        "gpt: the run was resumed after 5 scored trials",
        "late: mean score 1.000 after 1 scored trials",
    ]
    assert [row.cells[0] for row in plot.table.rows if row.cells[-1] == "gpt"] == [3, 5]


@pytest.mark.parametrize("values", [[], [0.0], [1e-9], [3.0, 4.0], [0.001, 900.0], [0.0, 900.0], [-0.2, 0.7]])
def test_axes_hold_their_values_and_have_ticks(values: list[float]) -> None:
    for scale in (linear(values, 0, 100), spanning([abs(value) for value in values], 100, 0)):
        assert 2 <= len(scale.ticks()) <= 12
        assert all(0 <= scale.at(each) <= 100 for each in (*values, *scale.ticks()))
    assert spanning([0.001, 900.0], 0, 1).logarithmic
    assert not spanning([0.0, 900.0], 0, 1).logarithmic
    assert linear([-0.2, 0.7], 0, 100).at(-0.2) == 0
