"""An environment's summary with the standard error of its primary metric, and the difference of two summaries."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, get_args

from proctor.environment import Environment
from proctor.tools.readers import UnreadableKind
from proctor.types import NOT_UNDERSTOOD, THOUGHTS, Finish, FinishReason, Summary

MAX_GROUPS = 100
MISSING_CALL: UnreadableKind = "no_call"
"""A metric that finishes of protocol `tools` have."""


def summarize(
    environment: Environment, finishes: Sequence[Finish], clusters: Sequence[int] = (), samples: Sequence[int] = ()
) -> Summary:
    """The environment's metrics over finishes, with a standard error.

    `clusters` and `samples` have the cluster and the sample of each finish (the epochs of one sample are of one
    cluster); by default each finish is a sample and a cluster of its own. Every sample counts once: where some have
    more scored epochs than others, the metrics that are no counts are over the mean finish of each sample.

    The error is the delete-a-group jackknife (Efron and Stein 1981) over at most 100 groups of whole clusters: for a
    plain mean it is the usual standard error of the mean. It is None where fewer than two clusters are scored, or where
    the metric is undefined without one of the groups.

    Raises ValueError where a metric is not finite or the primary one is missing although a finish is completed, and
    what the environment raises for finishes that it can't read.
    """
    summary = _summary_with_primary(environment, finishes)
    numbers = range(len(finishes))
    scored = [
        each for each in zip(clusters or numbers, samples or numbers, finishes, strict=True) if _has_score(each[2])
    ]
    of_samples = mean_finishes(scored)
    if len(of_samples) < len(scored) and not _even(scored):
        faults = [finish for finish in finishes if not _has_score(finish)]
        once = environment.summarize([*(finish for _, finish in of_samples), *faults])
        twice = environment.summarize([*finishes, *finishes])
        alike = {name for name, value in summary.metrics.items() if math.isclose(twice.metrics.get(name, -1), value)}
        means = {name: value for name, value in once.metrics.items() if name in alike}
        summary = summary.model_copy(update={"metrics": summary.metrics | means})
    if scored:
        played = [finish for *_, finish in scored]
        counted = {NOT_UNDERSTOOD: _not_understood(environment, played), **_thoughts_read(environment, played)}
        summary = summary.model_copy(update={"metrics": {**summary.metrics, **counted}})
    odd = [name for name, value in summary.metrics.items() if not math.isfinite(value)]
    if odd:
        raise ValueError(f"{', '.join(odd)} over these finishes is not a finite number")
    return summary.model_copy(update={"standard_error": _jackknife(_left_out(environment, of_samples))})


def mean_finishes(scored: Sequence[tuple[int, int, Finish]]) -> list[tuple[int, Finish]]:
    """(cluster, mean finish) of each sample, from its (cluster, sample, scored finish).

    All finishes as they are where every sample has as many. A mean finish has the mean score, the mean of each metric
    over the epochs that have it, and all else of the first epoch.
    """
    if _even(scored):
        return [(cluster, finish) for cluster, _, finish in scored]
    by_sample: dict[tuple[int, int], list[Finish]] = {}
    for cluster, sample, finish in scored:
        by_sample.setdefault((cluster, sample), []).append(finish)
    return [(cluster, _mean_finish(epochs)) for (cluster, _), epochs in by_sample.items()]


def _even(scored: Sequence[tuple[int, int, Finish]]) -> bool:
    return len(set(Counter(sample for _, sample, _ in scored).values())) < 2


def _has_score(finish: Finish) -> bool:
    return finish.score is not None


def _mean_finish(epochs: Sequence[Finish]) -> Finish:
    values: dict[str, list[float]] = {}
    for finish in epochs:
        for name, value in finish.metrics.items():
            values.setdefault(name, []).append(value)
    score = mean([finish.score for finish in epochs if finish.score is not None])
    return epochs[0].model_copy(update={"score": score, "metrics": means(values)})


def mean(values: Sequence[float]) -> float:
    """The mean of at least one value."""
    return sum(values) / len(values)


def means(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The mean of each sequence; empty ones are left out."""
    return {name: mean(each) for name, each in values.items() if each}


class PrimaryPair(NamedTuple):
    """The primary metric of two agents over the same clusters."""

    a: float
    b: float
    standard_error: float | None
    """Of a - b. None as in `summarize`."""


def paired_difference(
    environment: Environment, a: Sequence[tuple[int, int, Finish]], b: Sequence[tuple[int, int, Finish]]
) -> PrimaryPair:
    """Compare the primary metric of two agents over their (cluster, sample, scored finish) of the same clusters.

    The error is the delete-a-group jackknife of `summarize`, where both sides leave the same clusters out. Raises
    ValueError where a side has no primary metric, and what the environment raises.
    """
    sides = [mean_finishes(side) for side in (a, b)]
    values = [_primary(environment, [finish for _, finish in side]) for side in sides]
    if values[0] is None or values[1] is None:
        raise ValueError("the environment gives no primary metric over these finishes")
    pairs = zip(*(_left_out(environment, side) for side in sides), strict=True)
    differences = [None if one is None or other is None else one - other for one, other in pairs]
    return PrimaryPair(values[0], values[1], _jackknife(differences))


def _left_out(environment: Environment, scored: Sequence[tuple[int, Finish]]) -> list[float | None]:
    """The primary metric without each of at most 100 groups of whole clusters; empty below two clusters."""
    names = sorted({cluster for cluster, _ in scored})
    groups = min(MAX_GROUPS, len(names))
    if groups < 2:
        return []
    group_of = {name: index % groups for index, name in enumerate(names)}
    return [
        _primary(environment, [finish for cluster, finish in scored if group_of[cluster] != group])
        for group in range(groups)
    ]


def _primary(environment: Environment, finishes: Sequence[Finish]) -> float | None:
    summary = _summary_with_primary(environment, finishes)
    return summary.metrics.get(summary.primary)


def _jackknife(left_out: Sequence[float | None]) -> float | None:
    """The standard error by the values without each group; None where there are none, or one is undefined."""
    values = [value for value in left_out if value is not None]
    groups = len(left_out)
    if not values or len(values) < groups:
        return None
    mean = math.fsum(values) / groups
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) * (groups - 1) / groups)


def _not_understood(environment: Environment, scored: Sequence[Finish]) -> float:
    """In `tools` replies without a call and calls that can't be read; in `text` what the environment counts."""
    if any(MISSING_CALL in finish.metrics for finish in scored):
        return math.fsum(finish.metrics.get(kind, 0.0) for finish in scored for kind in get_args(UnreadableKind))
    if environment.bad_replies is None:
        return float(sum(finish.reason is FinishReason.INVALID_FORMAT for finish in scored))
    return math.fsum(finish.metrics.get(environment.bad_replies, 0.0) for finish in scored)


def _thoughts_read(environment: Environment, scored: Sequence[Finish]) -> dict[str, float]:
    if environment.drops_thoughts:
        return {}
    counts = {name: [finish.detail.get(name) for finish in scored] for name in THOUGHTS}
    sums = {name: math.fsum(count for count in each if isinstance(count, int)) for name, each in counts.items()}
    return {name: total for name, total in sums.items() if total}


def _summary_with_primary(environment: Environment, finishes: Sequence[Finish]) -> Summary:
    """The environment's summary. Raises ValueError where a finish is completed and the primary metric is missing."""
    summary = environment.summarize(finishes)
    if summary.primary not in summary.metrics and any(finish.reason is FinishReason.COMPLETED for finish in finishes):
        raise ValueError(f"primary metric {summary.primary!r} is not among the metrics")
    return summary
