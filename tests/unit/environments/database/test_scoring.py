"""The marks of a session, the comparison of answers beyond the acceptance list's table, and metrics over finishes."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from environments.database import scoring
from environments.database.dataset import SELECT_KINDS, Table, TableEntry
from environments.database.summary import WORDING, summarize
from environments.database.table_hash import TableHash
from proctor.types import Finish, FinishReason

_TEXT = st.text(max_size=30)
QUESTION = TableEntry(
    id="one",
    kind="counting",
    description="How many?",
    add_description="",
    table=Table(name="t", columns=("a",), rows=()),
    label=("2", "2"),
    accept=(("3",),),
    table_hash=None,
    query=None,
    record="0" * 16,
)
CHANGE = QUESTION.model_copy(update={"kind": "UPDATE", "table_hash": "f" * 32})


@pytest.mark.parametrize(
    ("answer", "compat", "strict", "multiset"),
    [("['2']", 1, 1, 0), ("['2', '2']", 1, 1, 1), ("['3']", 1, 1, 1), ("['2', '2.0']", 0, 1, 1), ("['4']", 0, 0, 0)],
)
def test_an_answer_is_right_where_it_is_any_accepted_one_and_the_session_was_completed(
    answer: str, compat: float, strict: float, multiset: float
) -> None:
    wanted = {"compat": compat, "strict": strict, "strict_multiset": multiset}
    assert scoring.marks(QUESTION, True, answer, TableHash(), scoring.V02) == wanted
    assert set(scoring.marks(QUESTION, False, answer, TableHash(), scoring.V02).values()) == {0.0}


def test_a_change_is_judged_by_the_hash_and_strict_wants_the_session_completed_too() -> None:
    changed, untouched = TableHash(sql="f" * 32), TableHash(sql="0" * 32)
    assert scoring.marks(CHANGE, True, "anything", changed, scoring.V02) == {"compat": 1.0, "strict": 1.0}
    assert scoring.marks(CHANGE, False, "", changed, scoring.V02) == {"compat": 1.0, "strict": 0.0}
    assert scoring.marks(CHANGE, True, "['2', '2']", untouched, scoring.V02) == {"compat": 0.0, "strict": 0.0}
    assert scoring.marks(CHANGE, True, "", TableHash(), scoring.V02) == {"compat": 0.0, "strict": 0.0}


@given(_TEXT, st.lists(_TEXT, min_size=1, max_size=3))
def test_no_answer_text_raises(text: str, label: list[str]) -> None:
    for compare in (scoring.compat, scoring.strict, scoring.strict_multiset):
        assert compare(text, label) in (True, False)


def _is_nan(label: list[str]) -> bool:
    """Whether the label is one text that Python reads as NaN, which is equal to nothing."""
    try:
        return len(label) == 1 and math.isnan(float(label[0]))
    except ValueError:
        return False


@example(["NAN"])
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=10), min_size=1, max_size=4, unique=True))
def test_a_label_printed_by_python_is_right_in_both_profiles(label: list[str]) -> None:
    wanted = not _is_nan(label)
    assert scoring.compat(" " + repr(label), label) is wanted
    assert scoring.strict(" " + repr(label), label)
    assert scoring.strict_multiset(" " + repr(label[::-1]), label)


def test_the_multiset_counts_what_the_set_does_not() -> None:
    assert scoring.strict('["a", "a"]', ["a"])
    assert not scoring.strict_multiset('["a", "a"]', ["a"])
    assert scoring.strict_multiset('["1.0", "+1"]', ["1", "1"])


def test_a_json_surrogate_pair_is_its_character_in_strict_and_as_python_reads_it_in_compat() -> None:
    assert scoring.strict_items(r'["\ud83c\udfd4", "\ud83c"]') == ["🏔", "�"]
    assert scoring.strict(r'["\ud83c\udfd4"]', ["🏔"])
    assert not scoring.compat(r'["\ud83c\udfd4"]', ["🏔"])


@pytest.mark.parametrize(
    ("text", "label", "wanted"),
    [
        (" [True]", "True", False),
        (" [None]", "None", False),
        (" {'a': 1}", "a", True),
        (" b'5'", "53", True),
        (" [0x" + "f" * 5_000 + "]", "5", False),
        (" [07]", "7", False),
    ],
    ids=lambda case: str(case)[:12],
)
def test_compat_compares_a_single_element_as_published(text: str, label: str, wanted: bool) -> None:
    assert scoring.compat(text, [label]) is wanted


@pytest.mark.parametrize(
    ("text", "items"),
    [
        (" [07]", ["07"]),
        (" [0x" + "f" * 5_000 + "]", ["[0x" + "f" * 5_000 + "]"]),
        (" {'a'} # so", ["a"]),
        (' "a b" ', ["a b"]),
        (" 5 ", ["5"]),
        ("[1, None, ' x ']", ["1", "None", "x"]),
        ("a, b", ["a, b"]),
    ],
)
def test_strict_items_are_text_without_surrounding_blanks(text: str, items: list[str]) -> None:
    assert scoring.strict_items(text) == items


def test_numbers_keep_all_their_digits_in_strict() -> None:
    assert not scoring.strict('["12345678901234567890"]', ["12345678901234567891"])


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
