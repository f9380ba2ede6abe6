"""Pure: the plots of a run, and the figures over the trials of a pair that reports alone have not."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Protocol

from eval_client.core.flow import Pair
from eval_client.core.spend import Price
from eval_client.core.statistics.clustered import clustered_mean
from eval_client.core.statistics.missing import mean_bounds
from eval_client.core.statistics.samples import Interval, Scores
from eval_client.report.compare.values import Comparison, TaskComparison
from eval_client.report.plots.cost import CostPoint, CostUnit, cost_and_score
from eval_client.report.plots.differences import TaskDifference, differences_plot
from eval_client.report.plots.matrix import MatrixCell, score_matrix
from eval_client.report.plots.reasons import ReasonShares, reasons_plot
from eval_client.report.plots.svg import Plot
from eval_client.report.report import VALIDITY, PairReport
from eval_client.store.trials.scores import TrialFacts

Facts = Mapping[Pair, Sequence[TrialFacts]]


class Address(Protocol):
    """Where a mark leads to."""

    def __call__(self, agent: str, task: str, **selected: str) -> str:
        """The address of a pair's trials, with further conditions; empty for none."""


def nowhere(agent: str, task: str, **selected: str) -> str:
    """A mark that is no link."""
    return ""


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


def cost_plots(
    pairs: Sequence[PairReport], facts: Facts, prices: Mapping[str, Price], address: Address = nowhere
) -> list[Plot]:
    """Costs and scores, a plot for each task whose trials cost anything; `pairs` are ordered by task."""
    tasks = [(task, list(group)) for task, group in groupby(pairs, lambda pair: pair.task)]
    return [plot for task, of_task in tasks for plot in _costs(task, of_task, facts, prices, address)]


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


def sample_scores(trials: Sequence[TrialFacts]) -> dict[str, Scores]:
    """sample -> the scores of its epochs, and how many are missing."""
    held: dict[str, list[float | None]] = {}
    for trial in trials:
        held.setdefault(trial.sample, []).append(trial.score)
    return {
        sample: Scores(tuple([score for score in scores if score is not None]), scores.count(None))
        for sample, scores in held.items()
    }


def score_bounds(trials: Sequence[TrialFacts]) -> Interval | None:
    """The mean score with all missing ones 0, and with all 1; None where none is missing."""
    if all(trial.score is not None for trial in trials):
        return None
    return mean_bounds(list(sample_scores(trials).values()))


def costs(trials: Sequence[TrialFacts], price: Price | None) -> list[float]:
    """What each trial that is over cost: money where there is a price, else tokens."""
    over = [trial.tokens for trial in trials if trial.reason is not None]
    return [float(tokens.total) if price is None else price.of(tokens) for tokens in over]
