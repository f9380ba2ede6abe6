"""An environment's summary with the standard error of its primary metric."""

import math
from collections.abc import Sequence

from proctor.environment import Environment
from proctor.types import Finish, FinishReason, Summary

MAX_GROUPS = 100
NOT_UNDERSTOOD = "not_understood"
"""The metric added to each summary of scored finishes: the number of replies that could not be parsed."""


def summarize(environment: Environment, finishes: Sequence[Finish], clusters: Sequence[int] = ()) -> Summary:
    """The environment's metrics over finishes, with a standard error.

    `clusters` has the cluster of each finish (the epochs of one sample are one cluster); by default each finish is a
    cluster of its own. The error is the delete-a-group jackknife (Efron and Stein 1981) over at most 100 groups of
    whole clusters: for a plain mean it is the usual standard error of the mean. It is None where fewer than two
    clusters are scored, or where the metric is undefined without one of the groups.

    Raises ValueError where a metric is not finite or the primary one is missing although a finish is completed, and
    what the environment raises for finishes that it can't read.
    """
    summary = _summary_with_primary(environment, finishes)
    scored = [
        (cluster, finish)
        for cluster, finish in zip(clusters or range(len(finishes)), finishes, strict=True)
        if finish.score is not None
    ]
    if scored:
        counted = {**summary.metrics, NOT_UNDERSTOOD: _not_understood(environment, [finish for _, finish in scored])}
        summary = summary.model_copy(update={"metrics": counted})
    if not all(map(math.isfinite, summary.metrics.values())):
        raise ValueError("a metric over these finishes is not a finite number")
    names = sorted({cluster for cluster, _ in scored})
    groups = min(MAX_GROUPS, len(names))
    if groups < 2:
        return summary
    group_of = {name: index % groups for index, name in enumerate(names)}
    left_out = [
        _summary_with_primary(environment, [finish for cluster, finish in scored if group_of[cluster] != group])
        for group in range(groups)
    ]
    values = [each.metrics[each.primary] for each in left_out if each.primary in each.metrics]
    if len(values) < groups:
        return summary
    mean = math.fsum(values) / groups
    variance = math.fsum((value - mean) ** 2 for value in values) * (groups - 1) / groups
    return summary.model_copy(update={"standard_error": math.sqrt(variance)})


def _not_understood(environment: Environment, scored: Sequence[Finish]) -> float:
    if environment.bad_replies is None:
        return float(sum(finish.reason is FinishReason.INVALID_FORMAT for finish in scored))
    return math.fsum(finish.metrics.get(environment.bad_replies, 0.0) for finish in scored)


def _summary_with_primary(environment: Environment, finishes: Sequence[Finish]) -> Summary:
    """The environment's summary. Raises ValueError where a finish is completed and the primary metric is missing."""
    summary = environment.summarize(finishes)
    if summary.primary not in summary.metrics and any(finish.reason is FinishReason.COMPLETED for finish in finishes):
        raise ValueError(f"primary metric {summary.primary!r} is not among the metrics")
    return summary
