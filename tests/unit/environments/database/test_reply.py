"""Replies and literals in them are read as the published expressions and Python read them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.database import literal
from environments.database.reply import Malformed, SqlAnswer, SqlOperation, read

_PIECES = st.sampled_from(
    [
        "Action: ",
        "Operation",
        "Answer",
        "\n",
        "```sql\n",
        "```",
        "\n```",
        "SELECT 1",
        " ",
        "Final Answer:",
        '["a"]',
        "x",
    ]
)


def published(reply: str, may_operate: bool) -> SqlOperation | SqlAnswer | Malformed:
    """The same by the regular expressions of the specification."""
    action = re.search(r"Action: (.*?)\n", reply)
    if action and action[1] == "Operation" and may_operate:
        block = re.search(r"```sql\n([\s\S]*?)\n```", reply)
        return SqlOperation(block[1].strip().replace("\n", " ")) if block else Malformed()
    answer = re.search(r"\nFinal Answer:(.*)", reply)
    return SqlAnswer(answer[1]) if answer else Malformed()


_MORE = st.sampled_from(["operation", "Action:", "\r\n", "```SQL\n", "-- c", "# c", "/* c */", "", "[None, 1]"])
_BEGINNINGS = st.sampled_from(["", "Action: Operation\n", "Action: Operation\n```sql\n"])


@given(_BEGINNINGS, st.lists(_PIECES | _MORE, max_size=14).map("".join), st.booleans())
def test_any_reply_is_read_as_published(beginning: str, rest: str, may_operate: bool) -> None:
    reply = beginning + rest
    assert read(reply, may_operate) == published(reply, may_operate)


@given(st.lists(_PIECES, max_size=14).map("".join), st.booleans())
def test_strict_reads_as_published_whatever_can_be_read_so(reply: str, may_operate: bool) -> None:
    told = published(reply, may_operate)
    mine = read(reply, may_operate, lenient=True)
    one_line = SqlOperation(mine.sql.replace("\n", " ")) if isinstance(mine, SqlOperation) else mine
    assert one_line == told or isinstance(told, Malformed) or (goes_on(told) and isinstance(mine, SqlAnswer))


def goes_on(told: SqlOperation | SqlAnswer) -> bool:
    """Whether an answer's line holds nothing, a fence, or a list that does not end with it."""
    line = told.text.strip() if isinstance(told, SqlAnswer) else "x"
    return not line or "```" in line or (line.startswith("[") and not line.endswith("]"))


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
