"""The marks of a session, the comparison of answers beyond the acceptance list's table, and metrics over finishes."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from environments.database import scoring
from environments.database.dataset import Table, TableEntry
from environments.database.table_hash import TableHash

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
