"""The jackknife of an environment's own metric, held against scipy."""

import math
from collections.abc import Mapping, Sequence

import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from proctor.environment import Agent, Environment
from proctor.summary import paired_difference, summarize
from proctor.types import Finish, FinishReason, Summary

SCORES = st.lists(st.floats(0, 1), min_size=2, max_size=60)


class Mean(Environment):
    """Only its summary is of use."""

    def samples(self) -> tuple[str, ...]:
        return ("a",)

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        raise AssertionError

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        scores = [finish.score for finish in finishes if finish.score is not None]
        return Summary(primary="mean", metrics={"mean": math.fsum(scores) / len(scores)} if scores else {})


class Misnamed(Mean):
    """Says another name than its metric's."""

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        return super().summarize(finishes).model_copy(update={"primary": "men"})


class Finished(Mean):
    """Its metric counts completed finishes alone."""

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        return super().summarize([each for each in finishes if each.reason is FinishReason.COMPLETED])


def finish(
    score: float, metrics: Mapping[str, float] | None = None, reason: FinishReason = FinishReason.COMPLETED
) -> Finish:
    return Finish(reason=reason, score=score, metrics=dict(metrics or {}))


FAULT = Finish.fault(FinishReason.TASK_ERROR, "gone")
OUT = finish(0.0, reason=FinishReason.CONTEXT_LIMIT)
UNREADABLE = {"no_call": 2.0, "bad_arguments": 1.0, "unknown_function": 3.0, "extra_calls": 9.0, "calls": 20.0}


@pytest.mark.thorough
@given(SCORES)
def test_the_jackknife_of_a_mean_is_its_standard_error(scores: list[float]) -> None:
    summary = summarize(Mean(), [finish(score) for score in scores])
    assert summary.standard_error == pytest.approx(float(scipy.stats.sem(scores)), abs=1e-9)


def test_the_jackknife_takes_clusters_as_its_unit_and_leaves_faults_out() -> None:
    scores = [0.0, 1.0, 1.0, 0.0]
    finishes = [finish(score) for score in scores for _ in range(3)]
    clusters = [number for number in range(4) for _ in range(3)]
    summary = summarize(Mean(), finishes + [FAULT] * 5, clusters + [9] * 5)
    assert summary.standard_error == pytest.approx(float(scipy.stats.sem(scores)))


def test_one_scored_cluster_has_no_error() -> None:
    assert summarize(Mean(), [finish(1.0), finish(0.0)], [7, 7]).standard_error is None


def test_a_metric_that_says_nothing_without_one_of_the_groups_has_no_error() -> None:
    summary = summarize(Finished(), [finish(0.5), OUT])
    assert (summary.metrics, summary.standard_error) == ({"mean": 0.5, "not_understood": 0.0}, None)
    assert summarize(Finished(), [finish(0.5), OUT, finish(0.5)]).standard_error == 0.0


def test_the_primary_metric_is_missing_only_where_nothing_is_completed() -> None:
    assert summarize(Mean(), [FAULT]).metrics == {}
    assert summarize(Misnamed(), [OUT, OUT]).standard_error is None
    with pytest.raises(ValueError, match="'men' is not among the metrics"):
        summarize(Misnamed(), [finish(1.0), FAULT])


class Counts(Mean):
    """Says which of its metrics counts bad replies."""

    bad_replies = "unread"


UNREAD, STOPPED = finish(1.0, {"unread": 3.0}), finish(0.0, {"unread": 1.0}, FinishReason.INVALID_FORMAT)


@pytest.mark.parametrize(
    ("environment", "finishes", "count"),
    [
        (Counts(), [UNREAD, STOPPED, FAULT], 4.0),
        (Mean(), [UNREAD, STOPPED, FAULT], 1.0),
        (Mean(), [FAULT], None),
        (Mean(), [finish(1.0, UNREADABLE), finish(0.0, UNREADABLE, FinishReason.INVALID_FORMAT)], 12.0),
    ],
    ids=["a metric", "stops", "nothing scored", "calls, in tools"],
)
def test_replies_that_were_not_understood_are_counted_over_the_scored_finishes(
    environment: Mean, finishes: list[Finish], count: float | None
) -> None:
    assert summarize(environment, finishes).metrics.get("not_understood") == count


class Squared(Mean):
    """Its metric is the square of the mean score."""

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        mean = super().summarize(finishes).metrics.get("mean", 0.0)
        return Summary(primary="squared", metrics={"squared": mean**2})


def test_the_paired_jackknife_of_three_clusters_by_hand() -> None:
    """Means without each cluster: A 1/2, 1/2, 1; B 0, 1/2, 1/2. Squared they differ by 1/4, 0 and 3/4."""
    a = [(0, 0, finish(1.0)), (1, 1, finish(1.0)), (2, 2, finish(0.0))]
    b = [(0, 0, finish(1.0)), (1, 1, finish(0.0)), (2, 2, finish(0.0))]
    found = paired_difference(Squared(), a, b)
    middle = (0.25 + 0.0 + 0.75) / 3
    variance = ((0.25 - middle) ** 2 + middle**2 + (0.75 - middle) ** 2) * 2 / 3
    assert found[:2] == pytest.approx((4 / 9, 1 / 9))
    assert found.standard_error == pytest.approx(variance**0.5)
    assert paired_difference(Squared(), a, a).standard_error == 0.0
    assert paired_difference(Squared(), a[:1], b[:1]).standard_error is None


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=60))
def test_the_paired_jackknife_of_means_is_the_paired_standard_error(rows: list[tuple[float, float]]) -> None:
    a, b = ([(number, number, finish(row[side])) for number, row in enumerate(rows)] for side in (0, 1))
    wanted = float(scipy.stats.sem([one - other for one, other in rows]))
    assert paired_difference(Mean(), a, b).standard_error == pytest.approx(wanted, abs=1e-9)


class Counting(Mean):
    """A mean of a metric, a mean of scores and a count."""

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        scored = [finish for finish in finishes if finish.score is not None]
        moves = [finish.metrics["moves"] for finish in scored]
        metrics = super().summarize(finishes).metrics | {"moves": math.fsum(moves) / len(moves)}
        return Summary(primary="mean", metrics=metrics | {"scored": len(scored), "all": len(finishes)})


@pytest.mark.parametrize("swapped", [False, True])
def test_every_sample_counts_once_however_many_of_its_epochs_are_scored(swapped: bool) -> None:
    """Scores [1, 1, 1] and [-, -, 0]; the counts are of all trials."""
    finishes = [*[finish(1.0, {"moves": 4.0})] * 3, FAULT, FAULT, finish(0.0, {"moves": 8.0})]
    numbers = [0, 0, 0, 1, 1, 1]
    if swapped:
        finishes, numbers = finishes[::-1], numbers[::-1]
    summary = summarize(Counting(), finishes, numbers, numbers)
    assert {name: value for name, value in summary.metrics.items() if name != "not_understood"} == {
        **{"mean": 0.5, "moves": 6.0},
        **{"scored": 4.0, "all": 6.0},
    }
    assert summary.standard_error == pytest.approx(0.5)
    pairs = [(number, number, each) for number, each in zip(numbers, finishes, strict=True) if each is not FAULT]
    assert paired_difference(Mean(), pairs, pairs)[:2] == (0.5, 0.5)


@given(SCORES, st.integers(2, 4))
def test_even_epochs_give_the_figures_of_all_trials(scores: list[float], epochs: int) -> None:
    finishes = [finish(score) for score in scores for _ in range(epochs)]
    numbers = [number for number in range(len(scores)) for _ in range(epochs)]
    assert summarize(Mean(), finishes, numbers, numbers) == summarize(Mean(), finishes, numbers)


def test_a_side_without_a_primary_metric_has_no_difference() -> None:
    with pytest.raises(ValueError, match="no primary metric"):
        paired_difference(Finished(), [(0, 0, finish(1.0))], [(0, 0, OUT)])
