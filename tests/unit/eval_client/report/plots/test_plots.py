"""Every plot is well-formed, titled and within its frame, and stands beside a table of the same figures."""

import random
from collections.abc import Sequence

import pytest

from eval_client.report.plots.cost import CostPoint, cost_and_score
from eval_client.report.plots.differences import TaskDifference, differences_plot
from eval_client.report.plots.matrix import MatrixCell, score_matrix
from eval_client.report.plots.reasons import ReasonShares, reasons_plot
from eval_client.report.plots.svg import Plot
from proctor.tables.table import Figure
from tests.unit.eval_client.report.plots.drawings import checked

REASONS = ("completed", "turn_limit", "invalid_format", "invalid_action", "context_limit")
SIZES = [(1, 1), (2, 3), (50, 20), (0, 0)]
NAMES = [
    "gpt",
    "an-agent-with-a-name-that-is-as-long-as-names-may-be-64-charact",
    "代理",
    "<b>&\"'\x1b\u202e\ud800\uffff",
]


def names(count: int, kind: str) -> list[str]:
    return [NAMES[place] if place < len(NAMES) else f"{kind}-{place}" for place in range(count)]


def figures(plot: Plot, column: int) -> list[object]:
    return [row.cells[column] for row in plot.table.rows]


def cells(agents: Sequence[str], tasks: Sequence[str], chance: random.Random) -> list[MatrixCell]:
    return [
        MatrixCell(agent, task, figure, figure.value, chance.choice([1.0, 0.4]), chance.choice([None, "other data"]))
        for agent in agents
        for task in tasks
        for figure in [Figure(chance.random(), standard_error=0.1)]
    ]


@pytest.mark.parametrize(("agents", "tasks"), SIZES)
def test_a_matrix_has_a_mark_for_each_pair(agents: int, tasks: int) -> None:
    given = cells(names(agents, "agent"), names(tasks, "task"), random.Random(1))
    plot = score_matrix(given)
    assert len(checked(plot)) == agents * tasks
    in_table = [entry.value for row in plot.table.rows for entry in row.cells if isinstance(entry, Figure)]
    assert in_table == [cell.figure.value for cell in given]


def test_a_matrix_tells_of_missing_trials_of_unlike_tasks_and_of_pairs_without_a_score() -> None:
    unlike = MatrixCell("gpt", "os", Figure(0.5, standard_error=0.02), 0.5, 0.9, "another split")
    unscored = MatrixCell("gpt", "db", Figure(None), None, 0.0)
    alone = MatrixCell(
        "naive", "db", Figure(1.0, interval=(0.34, 1.0)), 1.0, 1.0, href="/runs/r/trials?agent=naive&task=db"
    )
    plot = score_matrix([unlike, unscored, alone])
    expected = "gpt, os: 0.500 ±0.020, 90% of the trials. Not comparable with published scores: another split"
    assert checked(plot) == [expected, "gpt, db: no score, 0% of the trials", "naive, db: 1.000 [0.340, 1.000]"]
    assert plot.svg.count("url(#hatch-matrix)") == 1
    assert plot.svg.count("<polygon") == 2
    assert 'href="/runs/r/trials?agent=naive&amp;task=db"' in plot.svg
    assert plot.table.rows[1].cells == ("naive", None, Figure(1.0, interval=(0.34, 1.0), coverage=1.0))


@pytest.mark.parametrize("count", [0, 1, 2, 50])
@pytest.mark.parametrize("spread", [1.0, 1000.0])
def test_costs_have_a_mark_for_each_agent(count: int, spread: float) -> None:
    chance = random.Random(2)
    points = [
        CostPoint(name, spread ** chance.random(), chance.choice([None, spread]), chance.random(), 0.4)
        for name in names(count, "agent")
    ]
    plot = cost_and_score("os", "accuracy", "tokens", points)
    assert len(checked(plot)) == count
    assert [entry.value for entry in figures(plot, 2) if isinstance(entry, Figure)] == [each.cost for each in points]
    costs = [point.cost for point in points] or [1.0]
    assert ("logarithmic" in plot.svg) == (max(costs) > 20 * min(costs))


def test_agents_that_cost_nothing_have_a_place_on_the_axis() -> None:
    free, dear = CostPoint("naive", 0.0, 0.0, 0.0, 0.0), CostPoint("gpt", 3.0, None, 58.3, 2.4)
    titles = checked(cost_and_score("mind2web", "step_sr", "money", [free, dear]))
    assert titles[0] == "naive: step_sr 0 ±0, 0 ±0 money per trial; on the Pareto front"
    assert titles[1] == "gpt: step_sr 58.3 ±2.4, 3 money per trial; on the Pareto front"


@pytest.mark.parametrize(("agents", "tasks"), SIZES)
def test_reasons_have_a_mark_for_each_share_and_for_faults(agents: int, tasks: int) -> None:
    chance = random.Random(4)
    pairs = []
    for agent in names(agents, "agent"):
        for task in names(tasks, "task"):
            weights = {reason: chance.random() for reason in chance.sample(REASONS, 3)}
            shares = {reason: weight / sum(weights.values()) for reason, weight in weights.items()}
            pairs.append(ReasonShares(agent, task, shares, chance.randint(0, 1)))
    plot = reasons_plot(pairs, REASONS)
    assert len(checked(plot)) == 3 * len(pairs) + sum(pair.faults > 0 for pair in pairs)
    assert figures(plot, len(plot.table.columns) - 1) == [pair.faults for pair in pairs]


def test_faults_are_in_no_share() -> None:
    plot = reasons_plot([ReasonShares("gpt", "os", {"completed": 0.75, "turn_limit": 0.25}, 7)], REASONS)
    assert checked(plot) == ["gpt, os: completed 75.0%", "gpt, os: turn limit 25.0%", "gpt, os: 7 faults"]
    assert 'class="reason reason-1"' in plot.svg
    later = reasons_plot([ReasonShares("gpt", "os", {"invalid_format": 1.0}, 0)], REASONS)
    assert later.svg.count('class="reason reason-2"') == 2, "the colour of a reason is its own, whichever occur"
    assert checked(reasons_plot([ReasonShares("gpt", "os", {}, 2)], REASONS)) == ["gpt, os: 2 faults"]


@pytest.mark.parametrize("tasks", [0, 1, 20])
def test_differences_have_a_mark_for_each_task(tasks: int) -> None:
    chance = random.Random(6)
    rows = [
        TaskDifference(task, value, (value - 0.1, value + 0.2), chance.choice([None, (-1.0, 1.0)]), value > 0.5)
        for task in names(tasks, "task")
        for value in [chance.uniform(-1, 1)]
    ]
    plot = differences_plot(NAMES[1], NAMES[3], rows)
    assert len(checked(plot)) == len(plot.table.rows) == tasks


def test_a_difference_without_interval_is_a_dot() -> None:
    plot = differences_plot("gpt", "naive", [TaskDifference("os", 0.0, None, None, told_apart=False)])
    assert checked(plot) == ["os: +0.000; not shown to differ"]
