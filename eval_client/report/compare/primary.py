"""The difference of the environment's primary metric, which need not be the mean of scores."""

import math
from collections.abc import Mapping
from statistics import fmean

from eval_client.core.statistics.paired import Difference
from eval_client.plan.plan import Plan
from eval_client.report.compare.sides import TaskSide
from eval_client.report.compare.values import PrimaryDifference
from proctor.summary import paired_difference
from proctor.types import Finish, Summary

_SAME = 1e-9


def primary_difference(
    a: TaskSide, b: TaskSide, clusters: Mapping[str, str], found: Difference
) -> PrimaryDifference | None:
    """The primary metric's difference over matched samples; `clusters` has the cluster of each.

    Where the metric is the mean score, it is `found`. Otherwise the environment computes it from the finishes, with a
    paired grouped jackknife. None where a run has no metrics of the environment for the trials that it has now, or the
    two runs have different primary metrics.
    """
    one, other = a.summary, b.summary
    if one is None or other is None or one.primary != other.primary:
        return None
    if one.primary not in one.metrics or other.primary not in other.metrics:
        return None
    if _is_mean(a, one) and _is_mean(b, other):
        return PrimaryDifference(
            name=one.primary,
            a=found.a.mean,
            b=found.b.mean,
            difference=found.mean.mean,
            standard_error=found.mean.standard_error,
            is_mean_score=True,
        )
    return _by_environment(a, b, clusters) or PrimaryDifference(
        name=one.primary, a=one.metrics[one.primary], b=other.metrics[other.primary], is_mean_score=False
    )


def _is_mean(side: TaskSide, summary: Summary) -> bool:
    """Whether it is the mean score: over samples, or over trials as earlier versions took it."""
    means = [fmean(each.scores) for each in side.scores.values() if each.scores]
    trials = [score for each in side.scores.values() for score in each.scores]
    return any(math.isclose(summary.metrics[summary.primary], fmean(each), abs_tol=_SAME) for each in (means, trials))


def _by_environment(a: TaskSide, b: TaskSide, clusters: Mapping[str, str]) -> PrimaryDifference | None:
    """The figures over matched samples; None where the environment, as the run had it, is not installed here.

    An environment's code may raise anything over finishes of another version.
    """
    try:
        definition = next(task for task in Plan.model_validate(a.manifest.plan).definitions() if task.name == a.task)
        environment = definition.build()
        name = environment.summarize([]).primary
        found = paired_difference(environment, _finishes(a, clusters), _finishes(b, clusters))
    except Exception:
        return None
    return PrimaryDifference(
        name=name,
        a=found.a,
        b=found.b,
        difference=found.a - found.b,
        standard_error=found.standard_error,
        is_mean_score=False,
    )


def _finishes(side: TaskSide, clusters: Mapping[str, str]) -> list[tuple[int, int, Finish]]:
    """(number of the cluster, of the sample, finish) of the scored trials of matched samples."""
    samples = {sample: number for number, sample in enumerate(clusters)}
    numbers = {cluster: number for number, cluster in enumerate(sorted(set(clusters.values())))}
    return [
        (numbers[clusters[sample]], samples[sample], finish)
        for sample, _, finish in side.store.finishes(side.agent, side.task)
        if sample in clusters and finish.score is not None
    ]
