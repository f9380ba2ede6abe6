"""Metrics over finishes."""

import pytest

from environments.database.dataset import SELECT_KINDS
from environments.database.summary import WORDING, summarize
from proctor.types import Finish, FinishReason


def finish(kind: str, score: float, **metrics: float) -> Finish:
    category = kind if kind in ("INSERT", "UPDATE") else "SELECT"
    detail = {"type": kind, "category": category}
    return Finish(reason=FinishReason.COMPLETED, score=score, metrics=metrics, detail=dict(detail))


def test_the_primary_metric_is_the_mean_of_three_categories() -> None:
    finishes = [finish("other", 1), finish("counting", 0), finish("counting", 0), finish("INSERT", 1)]
    summary = summarize([*finishes, finish("UPDATE", 1), finish("UPDATE", 0)], WORDING)
    assert summary.primary == "overall_cat_accuracy"
    assert summary.metrics["SELECT_accuracy"] == pytest.approx(1 / 3)
    assert summary.metrics["counting_accuracy"] == 0
    assert summary.metrics["overall_cat_accuracy"] == pytest.approx((1 / 3 + 1 + 0.5) / 3)


def test_there_are_eleven_accuracies_where_every_type_has_a_scored_sample() -> None:
    summary = summarize([finish(kind, 0) for kind in (*SELECT_KINDS, "INSERT", "UPDATE")], WORDING)
    assert len([name for name in summary.metrics if name.endswith("_accuracy")]) == 11 + 1
    assert not any("overall_cat_accuracy" in note for note in summary.notes)


def test_a_type_without_a_scored_sample_is_absent_and_the_overall_figure_says_so() -> None:
    fault = Finish(reason=FinishReason.TASK_ERROR, detail={"type": "UPDATE", "category": "UPDATE", "cause": "x"})
    finishes = [finish("other", 1, compat=1, strict=0), finish("other", 0, compat=1, strict=0), fault]
    summary = summarize(finishes, WORDING)
    overall = {name: value for name, value in summary.metrics.items() if "accuracy" in name}
    assert overall == {
        "overall_cat_accuracy": 0.5,
        "overall_cat_accuracy_compat": 1.0,
        "overall_cat_accuracy_strict": 0.0,
        "other_accuracy": 0.5,
        "SELECT_accuracy": 0.5,
    }
    assert summary.notes[0] == (
        "`overall_cat_accuracy` is over 1 of 3 categories: no sample of INSERT or UPDATE is scored."
    )


def test_nothing_scored_has_no_accuracy_at_all() -> None:
    summary = summarize([Finish.fault(FinishReason.AGENT_ERROR, "gone")], WORDING)
    assert not any("accuracy" in name for name in summary.metrics)
    assert summary.metrics["requested"] == 1


def test_faults_are_requested_and_enter_no_accuracy() -> None:
    fault = Finish(reason=FinishReason.TASK_ERROR, detail={"type": "INSERT", "category": "INSERT", "cause": "x"})
    unknown = Finish.fault(FinishReason.AGENT_ERROR, "gone")
    metrics = summarize([finish("INSERT", 1), fault, unknown], WORDING).metrics
    assert metrics["INSERT_accuracy"] == 1.0
    assert (metrics["requested"], metrics["scored"]) == (3, 1)
    assert (metrics["INSERT_requested"], metrics["INSERT_scored"]) == (2, 1)


def test_both_profiles_stand_beside_the_score() -> None:
    finishes = [finish(kind, 1, compat=1, strict=0) for kind in ("other", "INSERT", "UPDATE")]
    metrics = summarize(finishes, WORDING).metrics
    assert (metrics["overall_cat_accuracy_compat"], metrics["overall_cat_accuracy_strict"]) == (1.0, 0.0)


def test_the_notes_say_that_labels_are_noisy() -> None:
    assert any("noisy" in note for note in summarize([], WORDING).notes)
