"""The literal reader takes what Python takes for a literal, and refuses the rest quickly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.database import literal

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), _TEXT)
_VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner) | st.tuples(inner) | st.tuples(inner, inner))


@given(_VALUES | st.sets(_SCALARS, min_size=1) | st.dictionaries(_TEXT, _SCALARS))
def test_what_python_prints_is_read_back(value: object) -> None:
    assert literal.parse(repr(value)) == value


_FULL = literal.MAX_LENGTH


@pytest.mark.parametrize(
    "text",
    [
        "[" * 60_000,
        "[" * 1_000 + "]" * 1_000,
        "[" + "1," * _FULL + "]",
        *("()" * (_FULL // 2), "x/a" * (_FULL // 3), "-" * (_FULL - 1) + "1", "+0" * (_FULL // 2)),
        *("not " * (_FULL // 4), "1**" * (_FULL // 3), "a." * (_FULL // 2), "1 if 1 else " * (_FULL // 12)),
    ],
    ids=lambda text: text[:4],
)
def test_what_is_too_deep_or_too_long_is_no_literal(text: str) -> None:
    with pytest.raises(literal.NotALiteral):
        literal.parse(text)
