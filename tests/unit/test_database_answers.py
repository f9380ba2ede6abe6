"""Comparison of answers, beyond the table of the acceptance list."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.database import answers

_TEXT = st.text(max_size=30)


@given(_TEXT, st.lists(_TEXT, min_size=1, max_size=3))
def test_no_answer_text_raises(text: str, label: list[str]) -> None:
    for compare in (answers.compat, answers.strict, answers.strict_multiset):
        assert compare(text, label) in (True, False)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=10), min_size=1, max_size=4, unique=True))
def test_a_label_printed_by_python_is_right_in_both_profiles(label: list[str]) -> None:
    wanted = label != ["nan"]
    assert answers.compat(" " + repr(label), label) is wanted
    assert answers.strict(" " + repr(label), label)
    assert answers.strict_multiset(" " + repr(label[::-1]), label)


def test_the_multiset_counts_what_the_set_does_not() -> None:
    assert answers.strict('["a", "a"]', ["a"])
    assert not answers.strict_multiset('["a", "a"]', ["a"])
    assert answers.strict_multiset('["1.0", "+1"]', ["1", "1"])


@pytest.mark.parametrize(
    ("text", "items"),
    [(' "a b" ', ["a b"]), (" 5 ", ["5"]), ("[1, None, ' x ']", ["1", "None", "x"]), ("a, b", ["a, b"])],
)
def test_strict_items_are_text_without_surrounding_blanks(text: str, items: list[str]) -> None:
    assert answers.strict_items(text) == items


def test_numbers_keep_all_their_digits_in_strict() -> None:
    assert not answers.strict('["12345678901234567890"]', ["12345678901234567891"])
