"""Each statistic agrees with scipy's or numpy's on 1,000 random inputs."""

import random
from itertools import chain, combinations, product
from statistics import variance

import numpy as np
import pytest
import scipy

from eval_client.core.statistics.distributions import (
    mcnemar_p,
    paired_interval,
    t_quantile,
    t_two_sided_p,
    wilson_interval,
)
from eval_client.core.statistics.power import detectable
from eval_client.core.statistics.resampling import bootstrap_interval, inverted_cdf, sign_flips
from eval_client.core.statistics.several import holm
from eval_client.core.statistics.single import clustered_mean, metric_interval

INPUTS = 1_000


@pytest.mark.thorough
def test_students_t() -> None:
    chance = random.Random(1)
    for _ in range(INPUTS):
        df, t, p = int(10 ** chance.uniform(0, 5)), chance.gauss(0, 4), chance.uniform(0.001, 0.999)
        assert t_two_sided_p(t, df) == pytest.approx(2 * scipy.stats.t.sf(abs(t), df), rel=1e-9)
        assert t_quantile(p, df) == pytest.approx(scipy.stats.t.ppf(p, df), rel=1e-8, abs=1e-12)


@pytest.mark.parametrize(("t", "p"), [(0.0, 1.0), (1e-200, 1.0), (1e200, 0.0), (-1e200, 0.0)])
def test_the_ends_of_students_t(t: float, p: float) -> None:
    assert t_two_sided_p(t, 7) == p


@pytest.mark.thorough
def test_passes_and_fails() -> None:
    chance = random.Random(2)
    for _ in range(INPUTS):
        b, c, ties = (int(10 ** chance.uniform(0, 2.3)) - 1 for _ in range(3))
        wanted = scipy.stats.binomtest(b, b + c).pvalue if b + c else 1.0
        assert mcnemar_p(b, c) == pytest.approx(wanted, rel=1e-9)
        n, passed = b + c + ties + 1, b
        wilson = scipy.stats.binomtest(passed, n).proportion_ci(0.9, method="wilson")
        assert wilson_interval(passed / n, n, 0.1) == pytest.approx((wilson.low, wilson.high), abs=1e-12)
        low, high = paired_interval(n, b, c, 0.01)
        assert -1 <= low <= high <= 1
        assert paired_interval(n, c, b, 0.01) == pytest.approx((-high, -low))


def test_thousands_of_discordant_samples() -> None:
    assert mcnemar_p(5_200, 4_800) == pytest.approx(scipy.stats.binomtest(5_200, 10_000).pvalue, rel=1e-9)


def test_clustered_errors_are_those_of_a_regression_on_a_constant() -> None:
    """The sandwich: inverse of X'X, the outer products of each cluster's scores, the factor G / (G - 1)."""
    chance = random.Random(3)
    for _ in range(INPUTS):
        n = chance.randint(2, 60)
        clusters = [chance.randrange(chance.randint(2, n)) for _ in range(n)]
        values = [chance.random() + cluster % 3 for cluster in clusters]
        found = clustered_mean(values, clusters)
        x, groups = np.ones((n, 1)), sorted(set(clusters))
        residuals = np.array(values) - np.mean(values)
        sums = [x[np.array(clusters) == group].T @ residuals[np.array(clusters) == group] for group in groups]
        bread = np.linalg.inv(x.T @ x)
        assert found.mean == pytest.approx(np.mean(values))
        assert found.clusters == len(groups)
        if len(groups) < 2:
            assert found.standard_error is None
            continue
        meat = sum(np.outer(each, each) for each in sums) * len(groups) / (len(groups) - 1)
        assert found.standard_error == pytest.approx(np.sqrt((bread @ meat @ bread)[0, 0]), abs=1e-12)
        if len(groups) == n:
            assert found.standard_error == pytest.approx(scipy.stats.sem(values))
            assert found.p() == pytest.approx(scipy.stats.ttest_1samp(values, 0).pvalue, abs=1e-12)
            wanted = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.95)
            interval = metric_interval(found.mean, found.standard_error, found.effective_clusters, None, 0.05)
            assert interval == pytest.approx((wanted.low, wanted.high))


def test_all_sign_flips() -> None:
    """For distinct and for tied values, against numpy's product of all signs and, now and then, scipy's own test."""
    chance = random.Random(4)
    for number in range(INPUTS):
        values = [chance.choice([chance.gauss(0.3, 1), -0.1, 0.2, 0.3, 0.0]) for _ in range(chance.randint(1, 10))]
        nonzero = np.array([value for value in values if value])
        totals = np.abs(np.array(list(product((1, -1), repeat=len(nonzero)))) @ nonzero)
        found = sign_flips(values, random.Random(0))
        assert found.p == pytest.approx(np.mean(totals >= abs(sum(values)) - 1e-12))
        assert (found.exact, found.clusters) == (True, len(nonzero))
        if number % 100 == 0 and len(nonzero) > 2:
            test = scipy.stats.permutation_test((nonzero,), np.sum, permutation_type="samples", n_resamples=np.inf)
            assert found.p == pytest.approx(test.pvalue)


def test_drawn_flips_differ_from_all_by_less_than_four_standard_errors() -> None:
    """All flips of 16 values are counted. A 17th value that changes nothing makes the same flips be drawn."""
    chance = random.Random(5)
    for _ in range(20):
        values = [chance.gauss(0.2, 1) for _ in range(16)]
        exact = sign_flips(values, chance)
        assert (exact.exact, exact.clusters) == (True, 16)
        drawn = sign_flips([*values, 1e-6], chance)
        assert not drawn.exact
        assert abs(drawn.p - exact.p) < 4 * (exact.p * (1 - exact.p) / 9_999) ** 0.5 + 2e-4


def test_holm_is_the_closure_of_bonferroni() -> None:
    """An adjusted p is the greatest, over all sets of hypotheses with this one, of the set's size times its least p."""
    chance = random.Random(6)
    for _ in range(INPUTS):
        ps = [chance.choice([chance.random() ** 3, 0.01, 0.05]) for _ in range(chance.randint(1, 6))]
        sets = list(chain.from_iterable(combinations(range(len(ps)), size) for size in range(1, len(ps) + 1)))
        wanted = [
            min(1.0, max(len(each) * min(ps[k] for k in each) for each in sets if index in each))
            for index in range(len(ps))
        ]
        assert holm(ps) == pytest.approx(wanted)


def test_power() -> None:
    chance = random.Random(7)
    for _ in range(INPUTS):
        error, alpha, power = chance.random(), chance.uniform(0.001, 0.2), chance.uniform(0.5, 0.99)
        wanted = (scipy.stats.norm.ppf(1 - alpha / 2) + scipy.stats.norm.ppf(power)) * error
        assert detectable(error, alpha, power) == pytest.approx(wanted)


def test_the_inverted_cdf() -> None:
    chance = random.Random(8)
    for _ in range(INPUTS):
        values, p = sorted(chance.random() for _ in range(chance.randint(1, 40))), chance.choice([0.025, 0.5, 0.975])
        assert inverted_cdf(values, p) == np.quantile(values, p, method="inverted_cdf")


def test_a_bootstrap_of_many_clusters_is_about_the_interval_of_the_mean() -> None:
    chance = random.Random(9)
    values = [chance.random() for _ in range(400)]
    low, high = bootstrap_interval(values, [1] * 400, 0.05, chance, 2_000)
    margin = 1.96 * (variance(values) / 400) ** 0.5
    assert (low, high) == pytest.approx((np.mean(values) - margin, np.mean(values) + margin), abs=0.1 * margin)
