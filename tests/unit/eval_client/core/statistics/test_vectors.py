"""The statistics agree with the values that scipy and statsmodels gave, to 1e-6."""

import json
import random
from typing import Any

import pytest

from eval_client.core.statistics.distributions import (
    mcnemar_p,
    paired_interval,
    t_quantile,
    t_two_sided_p,
    wilson_interval,
)
from eval_client.core.statistics.missing import difference_bounds, mean_bounds, missing
from eval_client.core.statistics.paired import Difference, difference
from eval_client.core.statistics.power import Variances, detectable, samples_needed, variances
from eval_client.core.statistics.resampling import bootstrap_interval
from eval_client.core.statistics.samples import SamplePair, Scores
from eval_client.core.statistics.several import holm
from eval_client.core.statistics.single import clustered_mean, mean_interval, passes
from tests.support import SHARED_DATA

pytestmark = pytest.mark.shared


def cases(group: str) -> list[tuple[dict[str, Any], Any]]:
    vectors = json.loads((SHARED_DATA / "statistics/vectors.json").read_text(encoding="utf-8"))["vectors"]
    return [(case["input"], case["expect"]) for case in vectors[group]]


def near(value: object) -> Any:
    return pytest.approx(value, abs=1e-6)


def compared(a: list[list[float]], b: list[list[float]], clusters: list[int] | None = None) -> Difference:
    return difference(matched(a, b, clusters), 0.05, random.Random(0))


def matched(a: list[list[float]], b: list[list[float]], clusters: list[int] | None = None) -> list[SamplePair]:
    names = [str(cluster) for cluster in clusters or range(len(a))]
    return [SamplePair(*row) for row in zip(names, map(scores, a), map(scores, b), strict=True)]


def scores(epochs: list[float]) -> Scores:
    return Scores(tuple(epochs))


def each(values: list[float]) -> list[list[float]]:
    return [[value] for value in values]


def test_passes_and_fails() -> None:
    found = cases("mcnemar_exact_and_bonett_price")
    assert len(found) == 4
    for given, expected in found:
        n, only_a, only_b = given["samples"], given["only_a"], given["only_b"]
        assert mcnemar_p(only_a, only_b) == near(expected["p"])
        assert paired_interval(n, only_a, only_b, 0.05) == near((expected["low"], expected["high"]))
        a = [1.0] * only_a + [0.0] * (n - only_a)
        b = [0.0] * only_a + [1.0] * only_b + [0.0] * (n - only_a - only_b)
        whole = compared(each(a), each(b))
        assert (whole.test, whole.wins, whole.losses) == ("mcnemar", only_a, only_b)
        assert (whole.p, whole.mean.mean) == near((expected["p"], expected["difference"]))
        assert whole.interval == near((expected["low"], expected["high"]))


def test_graded_scores_in_clusters() -> None:
    [(given, expected)] = cases("clustered_paired")
    found = compared(each(given["a"]), each(given["b"]), given["cluster"])
    effective = expected["effective_clusters"]
    assert found.mean == near((expected["mean"], expected["standard_error"], expected["clusters"], effective))
    assert found.interval == near((expected["low"], expected["high"]))
    assert found.mean.p() == near(expected["t_p"])
    assert (found.test, found.p, found.differing) == ("sign_flip_exact", near(expected["sign_flip_p"]), 8)
    assert detectable(expected["standard_error"], 0.05, 0.8, found.mean.degrees_of_freedom) == near(expected["mde_80"])
    naive = clustered_mean([a - b for a, b in zip(given["a"], given["b"], strict=True)])
    assert naive.standard_error == near(expected["naive_standard_error"])


def test_graded_scores_of_independent_samples() -> None:
    [(given, expected)] = cases("paired_graded")
    found = compared(each(given["a"]), each(given["b"]))
    assert found.mean[:2] == near((expected["difference"], expected["standard_error"]))
    assert found.interval == near((expected["low"], expected["high"]))
    assert (found.mean.p(), found.p) == near((expected["t_p"], expected["sign_flip_p"]))


def test_epochs() -> None:
    [(given, expected)] = cases("epochs")
    found = compared(given["a"], given["b"])
    assert found.mean[:2] == near((expected["difference"], expected["standard_error"]))
    assert found.interval == near((expected["low"], expected["high"]))
    assert found.p == near(expected["sign_flip_p"])
    components = variances(matched(given["a"], given["b"]))
    wanted = (expected["variance_within_a"], expected["variance_within_b"], expected["variance_between"])
    assert components == near(wanted)


def test_several_tests() -> None:
    [(given, expected)] = cases("holm")
    assert holm(given["p"]) == near(expected["adjusted"])


def test_power() -> None:
    found = cases("power")
    assert len(found) == 4
    for given, expected in found:
        level = {"alpha": given["alpha"], "power": given["power"]}
        if "standard_error" in given:
            assert detectable(given["standard_error"], **level) == near(expected["mde"])
            continue
        components = Variances(given["variance_within_a"], given["variance_within_b"], given["variance_between"])
        epochs = given["epochs_a"], given["epochs_b"]
        assert samples_needed(components, epochs, given["difference"], **level) == expected["samples"]


def test_repeated_trials() -> None:
    [(given, expected)] = cases("pass_k")
    for row in expected:
        found = passes([(n, c) for n, c in given["scored_and_passed"]], row["k"])
        assert found == near((row["k"], row["pass_at"], row["pass_hat"], row["samples"], row["left_out"]))


def test_missing_scores() -> None:
    [(given, expected)] = cases("bounds")

    def planned(values: list[float | None]) -> list[Scores]:
        return [Scores((), 1) if value is None else Scores((value,)) for value in values]

    sides = zip(planned(given["a"]), planned(given["b"]), strict=True)
    pairs = [SamplePair(str(number), a, b) for number, (a, b) in enumerate(sides)]
    both = [pair for pair in pairs if pair.matched]
    assert (len(both), difference(both, 0.05, random.Random(0)).mean.mean) == (
        expected["matched"],
        near(expected["difference"]),
    )
    bounds_a, bounds_b = mean_bounds([pair.a for pair in pairs]), mean_bounds([pair.b for pair in pairs])
    assert difference_bounds(bounds_a, bounds_b) == near((expected["lowest"], expected["highest"]))
    assert bounds_a == near((expected["a_low"], expected["a_high"]))
    gone = missing(pairs)
    assert (gone.only_a, gone.only_b) == (expected["missing_only_a"], expected["missing_only_b"])
    assert gone.p == near(expected["missing_p"])


def test_shares() -> None:
    found = cases("wilson")
    assert len(found) == 3
    for given, expected in found:
        low_and_high = near((expected["low"], expected["high"]))
        n, passed = given["samples"], given["passed"]
        assert wilson_interval(passed / n, n, 0.05) == low_and_high
        assert mean_interval([1.0] * passed + [0.0] * (n - passed), [], 0.05) == low_and_high


def test_shares_in_clusters() -> None:
    [(given, expected)] = cases("wilson_clustered")
    passed = given["passed_of_five_by_cluster"]
    means = [float(number < count) for count in passed for number in range(5)]
    clusters = [cluster for cluster in range(len(passed)) for _ in range(5)]
    assert mean_interval(means, clusters, 0.05) == near((expected["low"], expected["high"]))


def test_a_bootstrap_is_within_002_of_all_resamples() -> None:
    [(given, expected)] = cases("cluster_bootstrap_exact")
    sums, counts = [sum(each) for each in given["clusters"]], [len(each) for each in given["clusters"]]
    found = bootstrap_interval(sums, counts, 0.05, random.Random(0), 20_000)
    assert found == pytest.approx((expected["low"], expected["high"]), abs=0.02)


def test_students_t() -> None:
    found = cases("student_t")
    assert len(found) == 6
    for given, expected in found:
        if "p" in given:
            assert t_quantile(given["p"], given["df"]) == near(expected["quantile"])
        else:
            assert t_two_sided_p(given["t"], given["df"]) == near(expected["two_sided_p"])
