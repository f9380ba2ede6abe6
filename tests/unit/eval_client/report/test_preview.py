"""What a plan would play, and what its samples can show."""

import pytest

from eval_client.core.statistics.power import detectable_at_worst
from eval_client.plan.plan import Plan
from eval_client.plan.preview import planned_tasks, preview

PLAN = Plan.model_validate(
    {
        "agents": [{"name": "naive", "builtin": "naive"}, {"name": "random", "builtin": "random"}],
        "tasks": [{"name": "t", "environment": "ltp"}, {"name": "tables", "environment": "db"}],
        "epochs": 2,
    }
)


def test_trials_and_calls_are_counted_and_the_samples_say_how_small_a_difference_they_show() -> None:
    ltp = planned_tasks(PLAN, None)["t"]
    lines = preview(PLAN, None).splitlines()
    assert lines[0] == f"naive x t: {ltp.samples} samples x 2 epochs, at most 25 turns each"
    worst = detectable_at_worst(ltp.samples, 0.0, 0.05 / 2, 0.8)
    assert f"t: two agents are told apart from a difference of {worst:.2f} on" in lines[4]
    assert f"({ltp.samples} independent samples, power 0.8, alpha 0.05, 2 tests)" in lines[4]
    assert lines[-1].startswith("total: ")


def test_samples_that_share_a_world_are_one_independent_sample() -> None:
    (tables,) = (line for line in preview(PLAN, None).splitlines() if line.startswith("tables: two"))
    counted = int(tables.partition("(")[2].partition(" ")[0])
    assert 1 < counted < planned_tasks(PLAN, None)["tables"].samples


@pytest.mark.parametrize("limit", [1])
def test_one_sample_shows_no_difference(limit: int) -> None:
    assert "told apart" not in preview(PLAN, limit)
