"""Pure: the plots of a run's report."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, Protocol

from eval_client.core.flow import Pair
from eval_client.core.spend import Price
from eval_client.core.statistics.clustered import clustered_mean
from eval_client.report.compare.values import Comparison, TaskComparison
from eval_client.report.html.facts import TrialFacts, costs, ended_trials
from eval_client.report.plots.cost import CostPoint, CostUnit, cost_and_score
from eval_client.report.plots.differences import TaskDifference, differences_plot
from eval_client.report.plots.learning import learning_curve, running_mean
from eval_client.report.plots.matrix import MatrixCell, score_matrix
from eval_client.report.plots.reasons import ReasonShares, reasons_plot
from eval_client.report.plots.svg import Plot
from eval_client.report.plots.turns import TurnCounts, turns_plot
from eval_client.report.report import VALIDITY, PairReport

Facts = Mapping[Pair, Sequence[TrialFacts]]


class Address(Protocol):
    """Where a mark leads to."""

    def __call__(self, agent: str, task: str, **selected: str) -> str:
        """The address of a pair's trials, with further conditions; empty for none."""


def nowhere(agent: str, task: str, **selected: str) -> str:
    """A mark that is no link."""
    return ""


class TaskPlots(NamedTuple):
    """The plots of one task."""

    task: str
    plots: tuple[Plot, ...]


def matrix(pairs: Sequence[PairReport], address: Address = nowhere) -> Plot:
    """Agents by tasks."""
    return score_matrix(
        [
            MatrixCell(
                agent=pair.agent,
                task=pair.task,
                figure=pair.figure,
                score=pair.mean_score,
                coverage=pair.coverage,
                not_comparable=pair.comparable,
                href=address(pair.agent, pair.task),
            )
            for pair in pairs
        ]
    )


def reasons(pairs: Sequence[PairReport], address: Address = nowhere) -> Plot:
    """How the trials of each pair ended."""
    shares = []
    for pair in pairs:
        hrefs = {reason: address(pair.agent, pair.task, reason=reason) for reason in pair.validity}
        faults = address(pair.agent, pair.task, score="none")
        shares.append(
            ReasonShares(pair.agent, pair.task, pair.validity, sum(pair.faults.values()), hrefs=hrefs, href=faults)
        )
    return reasons_plot(shares, VALIDITY)


def task_plots(
    pairs: Sequence[PairReport],
    facts: Facts,
    prices: Mapping[str, Price],
    resumed_at: Sequence[str],
    address: Address = nowhere,
) -> list[TaskPlots]:
    """Costs, turns and learning curves, task by task; `pairs` are ordered by task."""
    return [
        TaskPlots(
            task,
            (
                *_costs(task, of_task, facts, prices, address),
                _turns(task, of_task, facts, address),
                _learning(task, of_task, facts, resumed_at, address),
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


def _costs(
    task: str, pairs: Sequence[PairReport], facts: Facts, prices: Mapping[str, Price], address: Address
) -> list[Plot]:
    """One plot; none where no trial cost anything."""
    priced = all(pair.agent in prices for pair in pairs)
    points = []
    for pair in pairs:
        spent = costs(facts[pair.agent, pair.task], prices[pair.agent] if priced else None)
        if pair.value is not None and spent:
            mean = clustered_mean(spent)
            href = address(pair.agent, task, sort="-completion_tokens")
            points.append(CostPoint(pair.agent, mean.mean, mean.standard_error, pair.value, pair.standard_error, href))
    unit: CostUnit = "money" if priced else "tokens"
    return [cost_and_score(task, pairs[0].primary, unit, points)] if any(point.cost for point in points) else []


def _turns(task: str, pairs: Sequence[PairReport], facts: Facts, address: Address) -> Plot:
    counts = []
    for pair in pairs:
        scored = [(trial.score, trial.turns) for trial in facts[pair.agent, pair.task] if trial.score is not None]
        passed = Counter(turns for score, turns in scored if score >= 1)
        failed = Counter(turns for score, turns in scored if score < 1)
        hrefs = address(pair.agent, task, score="1", sort="turns"), address(pair.agent, task, sort="score")
        counts.append(TurnCounts(pair.agent, passed, failed, *hrefs))
    return turns_plot(task, counts)


def _learning(
    task: str, pairs: Sequence[PairReport], facts: Facts, resumed_at: Sequence[str], address: Address
) -> Plot:
    curves = []
    for pair in pairs:
        ended = ended_trials(facts[pair.agent, pair.task], resumed_at)
        href = address(pair.agent, task, sort="ended_at")
        curves.append(running_mean(pair.agent, ended, planned=pair.planned, href=href))
    return learning_curve(task, curves)
