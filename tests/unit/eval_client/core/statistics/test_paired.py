"""Differences of two agents: what changes with rows, sides, epochs and missing scores, and what must not."""

import random
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_client.core.statistics.missing import difference_bounds, mean_bounds, missing
from eval_client.core.statistics.paired import Difference, cluster_sums, difference
from eval_client.core.statistics.power import detectable_at_worst, samples_needed, variances
from eval_client.core.statistics.samples import SamplePair, Scores
from eval_client.core.statistics.single import all_passes, mean_interval, metric_interval, passes

GRADES = st.sampled_from([0.0, 0.25, 0.3, 0.5, 1.0])
SIDES = st.builds(Scores, st.lists(GRADES, min_size=1, max_size=3).map(tuple))
PASSES = st.builds(Scores, st.tuples(st.sampled_from([0.0, 1.0])))
CLUSTERS = st.sampled_from("abcde")
ROWS = st.lists(st.builds(SamplePair, CLUSTERS, SIDES, SIDES), min_size=2, max_size=14)


def near(value: object) -> Any:
    return pytest.approx(value, abs=1e-12)


def compared(pairs: list[SamplePair]) -> Difference:
    return difference(pairs, 0.05, random.Random(0))


def alone(sides: list[tuple[Scores, Scores]]) -> list[SamplePair]:
    return [SamplePair(str(number), a, b) for number, (a, b) in enumerate(sides)]


@given(ROWS, st.randoms(use_true_random=False))
def test_order_and_names_change_nothing_and_swapped_sides_the_sign(
    pairs: list[SamplePair], chance: random.Random
) -> None:
    one, other = compared(pairs), compared(chance.sample(pairs, len(pairs)))
    assert one.mean == pytest.approx(other.mean, abs=1e-12)
    assert (one.p, one.wins, one.ties, one.losses) == (near(other.p), other.wins, other.ties, other.losses)
    assert compared([pair._replace(cluster=f"<{pair.cluster}>") for pair in pairs]) == one
    swapped = compared([SamplePair(pair.cluster, pair.b, pair.a) for pair in pairs])
    assert (one.mean.mean, one.mean.standard_error) == near((-swapped.mean.mean, swapped.mean.standard_error))
    assert (one.p, one.wins, one.losses) == (near(swapped.p), swapped.losses, swapped.wins)
    if one.interval is not None and swapped.interval is not None:
        assert one.interval == near((-swapped.interval[1], -swapped.interval[0]))
        low, high = one.interval
        assert -1 <= low <= high <= 1
        assert high - low > 0.01
        assert one.test == "mcnemar" or low - 1e-9 <= one.mean.mean <= high + 1e-9, "Bonett and Price shrink"


@given(st.lists(st.tuples(PASSES, PASSES), min_size=2, max_size=16))
def test_doubling_equal_epochs_adds_no_certainty(sides: list[tuple[Scores, Scores]]) -> None:
    """The test becomes one by sign flips, which is McNemar's where each difference is -1, 0 or 1."""
    once = compared(alone(sides))
    twice = compared(alone([(Scores(a.scores * 2), Scores(b.scores * 2)) for a, b in sides]))
    assert (once.test, twice.test) == ("mcnemar", "sign_flip_exact")
    assert twice.mean == once.mean
    assert twice.p == pytest.approx(once.p)


@given(st.lists(st.tuples(GRADES, GRADES), min_size=2, max_size=12))
def test_clusters_whose_samples_repeat_add_no_certainty(grades: list[tuple[float, float]]) -> None:
    one = alone([(Scores((a,)), Scores((b,))) for a, b in grades])
    once, twice = compared(one), compared(one + one)
    assert twice.mean == pytest.approx(once.mean, abs=1e-12)
    assert twice.p == pytest.approx(once.p)


def test_rounding_makes_no_difference() -> None:
    tenths = compared(alone([(Scores((0.1, 0.2)), Scores((0.3, 0.0)))] * 3))
    assert (tenths.wins, tenths.ties, tenths.losses, tenths.p) == (0, 3, 0, 1.0)


def test_one_sample_has_a_difference_and_no_error() -> None:
    found = compared(alone([(Scores((1.0,)), Scores((0.0,)))]))
    assert (found.mean.mean, found.mean.standard_error, found.interval, found.p) == (1.0, None, None, 1.0)
    assert found.pairing_gain is None


def test_pairing_gains_where_the_same_samples_are_hard_for_both() -> None:
    hard, easy = Scores((0.1,)), Scores((0.9,))
    found = compared(alone([(hard, Scores((0.0,))), (easy, Scores((0.8,))), (easy, Scores((0.81,)))]))
    assert found.pairing_gain is not None
    assert found.pairing_gain > 10


def test_sums_of_clusters() -> None:
    one, zero = Scores((1.0,)), Scores((0.0,))
    rows = [SamplePair("x", one, zero), SamplePair("y", zero, one), SamplePair("x", one, zero)]
    assert cluster_sums(rows) == [2.0, -1.0]


PLANNED = st.builds(Scores, st.lists(GRADES, max_size=2).map(tuple), st.integers(0, 2)).filter(
    lambda side: side.scores or side.missing
)


@given(st.lists(st.tuples(PLANNED, PLANNED), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_the_bounds_hold_whatever_the_missing_scores_are(
    sides: list[tuple[Scores, Scores]], chance: random.Random
) -> None:
    low, high = difference_bounds(*(mean_bounds(side) for side in zip(*sides, strict=True)))
    for least, most in ((0.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.4, 0.6)):
        filled = [
            [(*side.scores, *(chance.uniform(least, most) for _ in range(side.missing))) for side in row]
            for row in sides
        ]
        truth = sum(sum(a) / len(a) - sum(b) / len(b) for a, b in filled) / len(filled)
        assert low - 1e-12 <= truth <= high + 1e-12


def test_bounds_are_reached() -> None:
    sides = [(Scores((1.0,), 1), Scores((0.5,))), (Scores((), 1), Scores((), 1))]
    truths = [((1 + w) / 2 + x - 0.5 - y) / 2 for w, x, y in product((0.0, 1.0), repeat=3)]
    assert difference_bounds(*(mean_bounds(side) for side in zip(*sides, strict=True))) == pytest.approx(
        (min(truths), max(truths))
    )
    assert mean_bounds([a for a, _ in sides]) == pytest.approx((0.25, 1.0))
    assert missing(alone(sides))[:4] == (2, 1, 0, 0)


@given(st.lists(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), min_size=1, max_size=8))
def test_passes_of_k_trials(counts: list[tuple[int, int]]) -> None:
    first = passes(counts, 1)
    assert first is not None
    mean = sum(c / n for n, c in counts) / len(counts)
    assert (first.pass_at, first.pass_hat, first.left_out) == (near(mean), near(mean), 0)
    even = [(n, c) for n, c in counts if n == counts[0][0]]
    rows = [row for k in range(1, even[0][0] + 1) if (row := passes(even, k)) is not None]
    assert [row.pass_at for row in rows] == pytest.approx(sorted(row.pass_at for row in rows))
    assert [row.pass_hat for row in rows] == pytest.approx(sorted((row.pass_hat for row in rows), reverse=True))


def test_passes_are_shown_for_powers_of_two_and_for_all_epochs() -> None:
    assert [row.k for row in all_passes([(5, 1), (9, 2)])] == [1, 2, 4, 8, 9]
    assert all_passes([]) == []
    assert passes([(2, 1)], 3) is None


def test_an_interval_of_one_agent() -> None:
    passed = [1.0, 0.0, 0.0]
    wilson = mean_interval(passed, ["a", "b", "c"], 0.05)
    assert wilson is not None
    assert wilson[0] < 0.0615, "three samples say less than Wilson's interval has it"
    assert wilson[1] > 0.7923
    two = mean_interval(passed, ["a", "b", "b"], 0.05)
    assert two is not None
    assert 0 <= two[0] < 0.01, "two clusters say very little"
    assert 0.99 < two[1] <= 1
    assert mean_interval(passed, ["a", "a", "a"], 0.05) is None


@given(st.lists(st.tuples(GRADES, CLUSTERS), min_size=2, max_size=12))
def test_an_interval_of_a_mean_holds_it_within_what_scores_can_be_and_has_a_width(
    rows: list[tuple[float, str]],
) -> None:
    means, clusters = [mean for mean, _ in rows], [cluster for _, cluster in rows]
    found = mean_interval(means, clusters, 0.05)
    assert (found is None) == (len(set(clusters)) < 2)
    if found is not None:
        low, high = found
        assert 0 <= low <= sum(means) / len(means) + 1e-9
        assert sum(means) / len(means) - 1e-9 <= high <= 1
        assert high - low > 0.01


@pytest.mark.parametrize(("n", "reach"), [(2, 0.6576), (500, 0.0076)])
def test_agents_that_are_alike_may_differ_by_what_so_many_samples_leave_open(n: int, reach: float) -> None:
    alike = compared(alone([(Scores((0.5,)), Scores((0.5,)))] * n))
    assert alike.interval == pytest.approx((-reach, reach), abs=1e-4)
    apart = compared(alone([(Scores((0.75,)), Scores((0.25,)))] * n))
    assert apart.interval is not None
    assert apart.interval[0] < 0.5 < apart.interval[1]


@pytest.mark.parametrize(
    ("value", "error", "scale", "interval"),
    [
        (90.0, 20.0, (0.0, 100.0), (44.8, 100.0)),
        (90.0, 20.0, None, (44.8, 135.2)),
        (100.0, 0.0, (0.0, 100.0), (72.2, 100.0)),
        (100.0, 0.0, None, None),
        (90.0, None, (0.0, 100.0), None),
    ],
)
def test_an_interval_of_a_metric_is_cut_to_its_scale(
    value: float, error: float | None, scale: Any, interval: Any
) -> None:
    found = metric_interval(value, error, 10, scale, 0.05)
    assert found == (interval and pytest.approx(interval, abs=0.1))


def test_one_epoch_says_nothing_of_variances() -> None:
    assert variances(alone([(Scores((1.0,)), Scores((0.0,)))] * 5)) is None


def test_more_epochs_need_fewer_samples() -> None:
    epochs = Scores((0.0, 1.0)), Scores((0.0, 1.0))
    components = variances(alone([epochs, (Scores((1.0, 1.0)), Scores((0.0, 0.0))), epochs]))
    assert components is not None
    needed = [samples_needed(components, (k, k), 0.1, 0.05, 0.8) for k in (1, 2, 8)]
    assert needed == sorted(needed, reverse=True)
    assert needed[0] > needed[2]


def test_a_plan_of_100_samples_at_worst() -> None:
    """Shares of 1/2 differ by a variance of 1/2 a sample where agents are independent."""
    assert detectable_at_worst(100, 0.0, 0.05, 0.8) == pytest.approx(2.8016 * 0.5**0.5 / 10, abs=0.01)
    assert detectable_at_worst(100, 0.5, 0.05, 0.8) == pytest.approx(2.8016 * 0.25**0.5 / 10, abs=0.01)
    assert detectable_at_worst(5, 0.0, 0.05, 0.8) is None
