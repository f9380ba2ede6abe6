"""The literal reader agrees with Python on what it takes, and refuses the rest quickly."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.database import literal

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), _TEXT)
_VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner) | st.tuples(inner) | st.tuples(inner, inner))


@given(_VALUES)
def test_what_python_prints_is_read_back(value: object) -> None:
    assert literal.parse(repr(value)) == value


@pytest.mark.parametrize(
    "text",
    ['["a", "b"]', " 'a' 'b'", "1, 2", "(1)", "(1,)", "()", "[]", "[1, ]", "-1.5e3", ".5", r"'\x41\u00e9\'\\ \101'"],
)
def test_it_agrees_with_python(text: str) -> None:
    assert literal.parse(text) == ast.literal_eval(text.strip())


@pytest.mark.parametrize(
    "text",
    ["", "a", "[", "]", "[1 2]", "[,]", "[1,,2]", "'a", "[1)", "1 +1", "f()", "{1}", "null", "'\\UFFFFFFFF'", "[1] x"],
)
def test_other_text_is_no_literal(text: str) -> None:
    with pytest.raises(literal.NotALiteral):
        literal.parse(text)


@pytest.mark.parametrize("text", ["[" * 60_000, "[" * 33 + "]" * 33, "[" + "1," * 40_000 + "]", "'" + "\\" * 60_000])
def test_what_is_too_deep_or_too_long_is_no_literal(text: str) -> None:
    with pytest.raises(literal.NotALiteral):
        literal.parse(text)


def test_a_json_surrogate_pair_is_its_character() -> None:
    assert literal.parse(r'["\ud83c\udfd4", "\ud83c"]') == ["🏔", "�"]
