"""Measures the difference of two sides on one task: of scores, and of the primary metric, which may be no mean."""

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean

from pydantic import Field

from eval_client.core.statistics.agreement import JudgeAgreement, agreements
from eval_client.core.statistics.missing import difference_bounds, mean_bounds, missing
from eval_client.core.statistics.paired import Difference, cluster_sums, difference
from eval_client.core.statistics.power import (
    detectable,
    detectable_by_flips,
    detectable_by_mcnemar,
    samples_needed,
    variances,
)
from eval_client.core.statistics.resampling import bootstrap_interval
from eval_client.core.statistics.samples import Interval, SamplePair, Scores
from eval_client.core.statistics.single import all_passes, mean_interval
from eval_client.report.compare.sides import NotComparable, TaskSide, unlike
from eval_client.report.compare.values import (
    MissingTrials,
    PrimaryDifference,
    RepeatedPasses,
    SamplesNeeded,
    TaskComparison,
)
from eval_client.report.task_environment import scoring_environment
from eval_client.store.trials.scores import PairScores
from proctor.summary import paired_difference
from proctor.types import Finish, Summary, Value

_SAME = 1e-9


class Settings(Value):
    """How to compare."""

    alpha: float = Field(default=0.05, gt=0, lt=1)
    power: float = Field(default=0.8, gt=0, lt=1)
    pass_at: float = Field(default=1.0, ge=0, le=1)
    """The least score of a trial that is passed."""
    bootstrap: int = Field(default=0, ge=0)
    """Draws of a bootstrap; 0 for none."""
    seed: int = 0
    across: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    """Tasks to compare; all that both sides have where this is empty."""


def measure(a: TaskSide, b: TaskSide, settings: Settings, tests: int) -> TaskComparison:
    """One task of `tests`, before Holm's correction and without notes. Raises NotComparable if no sample is matched."""
    pairs = planned_pairs(a.scores, b.scores)
    planned = list(pairs.values())
    matched = [pair for pair in planned if pair.matched]
    if not matched:
        raise NotComparable(
            f"task {a.task}: {a.label} and {b.label} have no scored sample in common; resume the runs, or leave the "
            "task out: --task names those to compare"
        )
    clusters = {sample: pair.cluster for sample, pair in pairs.items() if pair.matched}
    found = difference(matched, settings.alpha, random.Random(settings.seed))
    bounds_of_means = mean_bounds([pair.a for pair in planned]), mean_bounds([pair.b for pair in planned])
    bounds, gone = difference_bounds(*bounds_of_means), missing(planned)
    return TaskComparison(
        task=a.task,
        task_b=b.task,
        environment=a.record.environment,
        unlike=tuple(each.text for each in unlike(a, b)),
        samples=len(matched),
        planned=len(planned),
        planned_on_one_side=len(a.scores) + len(b.scores) - 2 * len(planned),
        clusters=found.mean.clusters,
        effective_clusters=found.mean.effective_clusters,
        epochs=(_most_epochs([pair.a for pair in planned]), _most_epochs([pair.b for pair in planned])),
        mean=(found.a.mean, found.b.mean),
        mean_interval=_mean_intervals(matched, settings.alpha),
        mean_bounds=bounds_of_means,
        difference=found.mean.mean,
        standard_error=found.mean.standard_error,
        interval=found.interval,
        pairing_gain=found.pairing_gain,
        test=found.test,
        p=found.p,
        p_holm=found.p,
        t_p=found.mean.p(),
        differing=found.differing,
        wins=found.wins,
        ties=found.ties,
        losses=found.losses,
        detectable=_detectable(found, len(matched), settings, tests),
        needed=_needed(matched, found, settings, tests),
        bootstrap=_bootstrap(matched, settings),
        bounds=bounds,
        holds=min(bounds[0], found.mean.mean) > 0 or max(bounds[1], found.mean.mean) < 0,
        missing=MissingTrials(a=gone.a, b=gone.b, p=gone.p),
        primary=primary_difference(a, b, clusters, found),
        passes=_passes(matched, settings.pass_at),
        agreement=(_agreement(a), _agreement(b)),
    )


def _agreement(side: TaskSide) -> tuple[JudgeAgreement, ...]:
    return agreements(side.store.judgements(side.manifest, side.agent, side.task))


def planned_pairs(a: PairScores, b: PairScores) -> dict[str, SamplePair]:
    """sample -> both sides' scores, for the samples that both were to play."""
    return {
        sample: SamplePair(mine.cluster or its.cluster or sample, mine, its)
        for sample, mine in a.items()
        if (its := b.get(sample)) is not None
    }


def _most_epochs(sides: Sequence[Scores]) -> int:
    return max(len(side.scores) + side.missing for side in sides)


def _mean_intervals(matched: Sequence[SamplePair], alpha: float) -> tuple[Interval | None, Interval | None]:
    clusters = [pair.cluster for pair in matched]
    a, b = [pair.a.mean for pair in matched], [pair.b.mean for pair in matched]
    return mean_interval(a, clusters, alpha), mean_interval(b, clusters, alpha)


def _detectable(found: Difference, samples: int, settings: Settings, tests: int) -> float | None:
    """By the test that was made, at the level of Holm's first step."""
    alpha, power, mean = settings.alpha / tests, settings.power, found.mean
    if not mean.standard_error:
        return None
    if found.test == "mcnemar":
        return detectable_by_mcnemar(samples, (found.wins + found.losses) / samples, alpha, power)
    least = detectable_by_flips(mean.clusters, mean.standard_error, mean.degrees_of_freedom, alpha, power)
    return None if least is None or least > 1 else least


def _needed(matched: Sequence[SamplePair], found: Difference, settings: Settings, tests: int) -> SamplesNeeded | None:
    """The variance of a mean falls with the number of samples, so their number follows from the difference."""
    error, size, alpha = found.mean.standard_error, abs(found.mean.mean), settings.alpha / tests
    if not error or size < 1e-9:
        return None
    least = detectable(error, alpha, settings.power)
    components = variances(matched) if found.mean.clusters == len(matched) else None
    epochs = 2 * _most_epochs([pair.a for pair in matched]), 2 * _most_epochs([pair.b for pair in matched])
    return SamplesNeeded(
        as_played=math.ceil(len(matched) * (least / size) ** 2),
        twice_the_epochs=components and samples_needed(components, epochs, size, alpha, settings.power),
    )


def _bootstrap(matched: Sequence[SamplePair], settings: Settings) -> Interval | None:
    if not settings.bootstrap:
        return None
    counts = Counter(pair.cluster for pair in matched)
    chance = random.Random(settings.seed)
    return bootstrap_interval(cluster_sums(matched), [*counts.values()], settings.alpha, chance, settings.bootstrap)


def _passes(matched: Sequence[SamplePair], pass_at: float) -> tuple[RepeatedPasses, ...]:
    """Of epochs, which are passed with a score of at least `pass_at`; none where each sample has one."""
    sides = [pair.a.scores for pair in matched], [pair.b.scores for pair in matched]
    if all(len(scores) == 1 for side in sides for scores in side):
        return ()
    a, b = (all_passes([(len(of), sum(score >= pass_at for score in of)) for of in side]) for side in sides)
    return tuple(
        RepeatedPasses(
            k=one.k,
            pass_at=(one.pass_at, other.pass_at),
            pass_hat=(one.pass_hat, other.pass_hat),
            left_out=(one.left_out, other.left_out),
        )
        for one, other in zip(a, b, strict=False)
        if len(a) > 1 or len(b) > 1
    )


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
    """The figures over matched samples; None where the environment can't make them here.

    An environment's code may raise anything over finishes of another version.
    """
    environment = scoring_environment([a.store], a.task)
    if environment is None:
        return None
    try:
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
