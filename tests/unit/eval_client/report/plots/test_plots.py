"""Every plot is well-formed, titled and within its frame, and stands beside a table of the same figures."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from eval_client.report.compare.values import ComparedAgent, Comparison, MissingTrials, TaskComparison
from eval_client.report.pair_report import VALIDITY, PairReport
from eval_client.report.plots.cost import CostPoint, cost_and_score
from eval_client.report.plots.differences import differences
from eval_client.report.plots.pairs import matrix, reasons
from eval_client.report.plots.svg import Plot
from proctor.tables.table import Figure
from tests.unit.eval_client.report.pairs import pair
from tests.unit.eval_client.report.plots.drawings import checked

SIZES = [(1, 1), (2, 3), (50, 20), (0, 0)]
NAMES = [
    "gpt",
    "an-agent-with-a-name-that-is-as-long-as-names-may-be-64-charact",
    "代理",
    "<b>&\"'\x1b\u202e\uffff",
]


def names(count: int, kind: str) -> list[str]:
    return [NAMES[place] if place < len(NAMES) else f"{kind}-{place}" for place in range(count)]


def figures(plot: Plot, column: int) -> list[object]:
    return [row.cells[column] for row in plot.table.rows]


def drawn(agents: int, tasks: int) -> list[PairReport]:
    """Pairs with a share of each of three reasons, some with faults, and some not comparable."""
    chance, pairs = random.Random(1), []
    for task in names(tasks, "task"):
        for agent in names(agents, "agent"):
            weights = {reason: 0.1 + chance.random() for reason in chance.sample(VALIDITY, 3)}
            shares = {reason: weight / sum(weights.values()) for reason, weight in weights.items()}
            score, scored = chance.random(), chance.choice([4, 10])
            told: dict[str, Any] = {
                "value": score,
                "mean_score": score,
                "comparable": chance.choice([None, "other data"]),
            }
            faults = {"gone": 10 - scored} if scored < 10 else {}
            pairs.append(
                pair(agent=agent, task=task, planned=10, scored=scored, validity=shares, faults=faults, **told)
            )
    return pairs


@pytest.mark.parametrize(("agents", "tasks"), SIZES)
def test_a_matrix_and_reasons_have_a_mark_for_each_pair_share_and_fault(agents: int, tasks: int) -> None:
    pairs = drawn(agents, tasks)
    scores, ends = matrix(pairs), reasons(pairs)
    assert len(checked(scores)) == agents * tasks
    in_table = [entry.value for row in scores.table.rows for entry in row.cells if isinstance(entry, Figure)]
    assert in_table == [each.value for each in pairs]
    assert len(checked(ends)) == 3 * len(pairs) + sum(bool(each.faults) for each in pairs)
    assert figures(ends, len(ends.table.columns) - 1) == [each.unscored for each in pairs]


def test_labels_of_a_matrix_are_not_cut_beside_empty_space() -> None:
    agent, task = "an-agent-whose-name-is-longer-than-most-are", "a-task-with-a-long-name-too"
    assert "…" not in matrix([pair(agent=agent, task=task)]).svg
    assert "…" in matrix([pair(agent=agent, task=f"{task}-{number}") for number in range(8)]).svg


def leads_to(agent: str, task: str, **_selected: str) -> str:
    return f"/runs/r/trials?agent={agent}&task={task}" if agent == "naive" else ""


def test_a_matrix_tells_of_missing_trials_of_unlike_tasks_and_of_pairs_without_a_score() -> None:
    unlike: dict[str, Any] = {
        "standard_error": 0.02,
        "mean_score": 0.5,
        "planned": 10,
        "scored": 9,
        "comparable": "another split",
    }
    pairs = [
        pair(agent="gpt", task="os", **unlike),
        pair(agent="gpt", task="db", scored=0, value=None),
        pair(agent="naive", task="db", value=1.0, mean_score=1.0, interval=(0.34, 1.0)),
    ]
    plot = matrix(pairs, leads_to)
    expected = "gpt, os: 0.500 ±0.020, 90% of the trials. Not comparable with published scores: another split"
    assert checked(plot) == [expected, "gpt, db: no score, 0% of the trials", "naive, db: 1.000 [0.340, 1.000]"]
    assert plot.svg.count("url(#hatch-matrix)") == 1
    assert 'href="/runs/r/trials?agent=naive&amp;task=db"' in plot.svg
    assert plot.table.rows[1].cells[3] == Figure(1.0, interval=(0.34, 1.0), coverage=1.0)


@pytest.mark.parametrize("count", [0, 1, 2, 50])
@pytest.mark.parametrize("spread", [1.0, 1000.0])
def test_costs_have_a_mark_for_each_agent(count: int, spread: float) -> None:
    chance = random.Random(2)
    points = [
        CostPoint(f"{name}\ud800", spread ** chance.random(), chance.choice([None, spread]), chance.random(), 0.4)
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


def test_faults_are_in_no_share() -> None:
    plot = reasons([pair(agent="gpt", task="os", validity={"completed": 0.75, "turn_limit": 0.25}, faults={"x": 7})])
    assert checked(plot) == ["gpt, os: completed 75.0%", "gpt, os: turn limit 25.0%", "gpt, os: 7 faults"]
    assert 'class="reason reason-1"' in plot.svg
    place = VALIDITY.index("invalid_format")
    later = reasons([pair(agent="gpt", task="os", validity={"invalid_format": 1.0})])
    assert later.svg.count(f'class="reason reason-{place}"') == 2, "the colour is the reason's own, whichever occur"
    assert checked(reasons([pair(agent="gpt", task="os", faults={"x": 2})])) == ["gpt, os: 2 faults"]


def compared(rows: Sequence[tuple[str, float, tuple[float, float] | None, bool]]) -> Comparison:
    """A comparison with these differences, intervals, and whether trials are missing."""
    tasks = []
    for name, difference, interval, missing in rows:
        told: dict[str, Any] = {"difference": difference, "interval": interval, "bounds": (-1.0, 1.0)}
        told |= {"p_holm": 0.01 if difference > 0.5 else 0.5, "missing": MissingTrials(a=int(missing), b=0, p=1.0)}
        tasks.append(TaskComparison.model_construct(task=name, task_b=name, **told))
    a, b = (ComparedAgent(run="r", agent=name, version="1") for name in (NAMES[1], NAMES[3]))
    found = Comparison(a=a, b=b, alike=(), across=(), alpha=0.05, power=0.8, tests=1, tasks=())
    return found.model_copy(update={"tasks": tuple(tasks)})


@pytest.mark.parametrize("tasks", [0, 1, 20])
def test_differences_have_a_mark_for_each_task(tasks: int) -> None:
    chance = random.Random(6)
    values = [(task, chance.uniform(-1, 1)) for task in names(tasks, "task")]
    plot = differences(compared([(name, value, (value - 0.1, value + 0.2), value < 0) for name, value in values]))
    assert len(checked(plot)) == len(plot.table.rows) == tasks


def test_a_difference_without_interval_is_a_dot() -> None:
    assert checked(differences(compared([("os", 0.0, None, False)]))) == ["os: +0.000; not shown to differ"]
