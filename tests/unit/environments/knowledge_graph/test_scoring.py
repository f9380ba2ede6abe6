import pytest

from environments.knowledge_graph.scoring import marks, predicted, summarize
from proctor.types import Finish, FinishReason


def finish(f1: float) -> Finish:
    metrics = {"F1": f1, "EM": float(f1 == 1), "executability": 1.0, "n_bad_format": 1.0, "n_bad_action": 2.0}
    return Finish(reason=FinishReason.COMPLETED, score=f1, metrics=metrics)


@pytest.mark.parametrize(
    ("gold", "found", "f1", "exact", "executable"),
    [
        ("ab", "ab", 1.0, 1.0, 1.0),
        ("ab", "a", 2 / 3, 0.0, 1.0),
        ("a", "abcd", 0.4, 0.0, 1.0),
        ("abc", "bcd", 2 / 3, 0.0, 1.0),
        ("a", "b", 0.0, 0.0, 1.0),
        ("a", "", 0.0, 0.0, 0.0),
    ],
)
def test_marks_are_the_published_ones(gold: str, found: str, f1: float, exact: float, executable: float) -> None:
    assert marks(set(gold), set(found)) == {"F1": pytest.approx(f1), "EM": exact, "executability": executable}


def test_answers_are_compared_without_name_space_and_time_zone() -> None:
    values = ["http://rdf.freebase.com/ns/m.1", "1910-02-03-08:00", "at 10:00-08:00 sharp", "42"]
    assert predicted(values) == {"m.1", "1910-02-03", "at 10:00-08:00 sharp", "42"}


def test_means_are_over_scored_samples_and_faults_stand_beside_them() -> None:
    fault = Finish.fault(FinishReason.TASK_ERROR, "down")
    summary = summarize([finish(1.0), finish(0.5), fault], "freebase", None, own_words=True)
    assert summary.primary == "F1"
    assert (summary.metrics["F1"], summary.metrics["EM"]) == (0.75, 0.5)
    assert (summary.metrics["requested"], summary.metrics["scored"]) == (3.0, 2.0)
    assert (summary.metrics["n_bad_format"], summary.metrics["n_bad_action"]) == (2.0, 4.0)
    assert "the graph freebase" in summary.notes[0]


def test_compat_also_divides_by_all_samples_of_the_file() -> None:
    metrics = summarize([finish(1.0), finish(0.5)], "freebase", 20, own_words=True).metrics
    assert (metrics["F1"], metrics["F1_over_file"], metrics["EM_over_file"]) == (0.75, 0.075, 0.05)


def test_nothing_scored_has_no_mean() -> None:
    fault = Finish.fault(FinishReason.TASK_ERROR, "down")
    metrics = summarize([fault], "freebase", 20, own_words=True).metrics
    assert metrics == {"n_bad_format": 0.0, "n_bad_action": 0.0, "requested": 1.0, "scored": 0.0}
