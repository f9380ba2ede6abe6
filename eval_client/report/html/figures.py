"""Pure: the plots of a run's report."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from eval_client.core.spend import Price
from eval_client.core.statistics.clustered import clustered_mean
from eval_client.report.compare.values import Comparison, TaskComparison
from eval_client.report.html.facts import Pair, TrialFacts, costs, ended_trials, mean_score
from eval_client.report.plots.cost import CostPoint, CostUnit, cost_and_score
from eval_client.report.plots.differences import TaskDifference, differences_plot
from eval_client.report.plots.learning import learning_curve, running_mean
from eval_client.report.plots.matrix import MatrixCell, score_matrix
from eval_client.report.plots.reasons import ReasonShares, reasons_plot
from eval_client.report.plots.svg import Plot
from eval_client.report.plots.turns import TurnCounts, turns_plot
from eval_client.report.report import VALIDITY, PairReport

Facts = Mapping[Pair, Sequence[TrialFacts]]


class TaskPlots(NamedTuple):
    """The plots of one task."""

    task: str
    plots: tuple[Plot, ...]


def matrix(pairs: Sequence[PairReport], facts: Facts) -> Plot:
    """Agents by tasks."""
    return score_matrix(
        [
            MatrixCell(
                agent=pair.agent,
                task=pair.task,
                value=pair.value,
                standard_error=pair.standard_error,
                score=mean_score(facts[pair.agent, pair.task]),
                coverage=pair.coverage,
                not_comparable=pair.comparable,
            )
            for pair in pairs
        ]
    )


def reasons(pairs: Sequence[PairReport]) -> Plot:
    """How the trials of each pair ended."""
    return reasons_plot(
        [ReasonShares(pair.agent, pair.task, pair.validity, sum(pair.faults.values())) for pair in pairs], VALIDITY
    )


def task_plots(
    pairs: Sequence[PairReport], facts: Facts, prices: Mapping[str, Price], resumed_at: Sequence[str]
) -> list[TaskPlots]:
    """Costs, turns and learning curves, task by task; `pairs` are ordered by task."""
    return [
        TaskPlots(
            task,
            (
                *_costs(task, of_task, facts, prices),
                _turns(task, of_task, facts),
                _learning(task, of_task, facts, resumed_at),
            ),
        )
        for task, of_task in ((task, list(group)) for task, group in groupby(pairs, lambda pair: pair.task))
        if any(pair.scored for pair in of_task)
    ]


def differences(comparison: Comparison, address: Callable[[TaskComparison], str] = lambda _: "") -> Plot:
    """A comparison's differences, task by task, each a link to its address where it has one."""
    return differences_plot(
        comparison.a.agent,
        comparison.b.agent,
        [
            TaskDifference(
                task=row.name,
                difference=row.difference,
                interval=row.interval,
                bounds=row.bounds if row.missing.a + row.missing.b else None,
                told_apart=row.p_holm < comparison.alpha,
                href=address(row),
            )
            for row in comparison.tasks
        ],
        comparison.alpha,
    )


def _costs(task: str, pairs: Sequence[PairReport], facts: Facts, prices: Mapping[str, Price]) -> list[Plot]:
    """One plot; none where no trial cost anything."""
    priced = all(pair.agent in prices for pair in pairs)
    points = []
    for pair in pairs:
        spent = costs(facts[pair.agent, pair.task], prices[pair.agent] if priced else None)
        if pair.value is not None and spent:
            mean = clustered_mean(spent)
            points.append(CostPoint(pair.agent, mean.mean, mean.standard_error, pair.value, pair.standard_error))
    unit: CostUnit = "money" if priced else "tokens"
    return [cost_and_score(task, pairs[0].primary, unit, points)] if any(point.cost for point in points) else []


def _turns(task: str, pairs: Sequence[PairReport], facts: Facts) -> Plot:
    counts = []
    for pair in pairs:
        passed: dict[int, int] = {}
        failed: dict[int, int] = {}
        for trial in facts[pair.agent, pair.task]:
            if trial.score is not None:
                side = passed if trial.score >= 1 else failed
                side[trial.turns] = side.get(trial.turns, 0) + 1
        counts.append(TurnCounts(pair.agent, passed, failed))
    return turns_plot(task, counts)


def _learning(task: str, pairs: Sequence[PairReport], facts: Facts, resumed_at: Sequence[str]) -> Plot:
    return learning_curve(
        task,
        [
            running_mean(pair.agent, ended_trials(facts[pair.agent, pair.task], resumed_at), planned=pair.planned)
            for pair in pairs
        ],
    )
