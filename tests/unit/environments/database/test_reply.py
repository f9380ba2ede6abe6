"""Replies and literals in them are read as the published expressions and Python read them."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.database import literal, scoring
from environments.database.functions import TOOLSET
from environments.database.reply import Malformed, SqlAnswer, SqlOperation, read
from environments.database.table_hash import TableHash
from proctor.tools import CallReader, UnreadableCall
from tests.support import SHARED_DATA
from tests.tool_calls import calls
from tests.unit.environments.database.test_environment import CHANGE

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


def commit(*answers: str) -> tuple[str, str]:
    return "commit_final_answer", json.dumps({"answers": answers})


@pytest.mark.shared
def test_answers_compare_as_the_published_code_compares_them() -> None:
    rows = [json.loads(line) for line in (SHARED_DATA / "interop/fc/db_answers.jsonl").read_text().splitlines()]
    differing = [row for row in rows if scoring.fc(row["answer"], row["label"]) is not row["correct"]]
    assert (len(rows), differing) == (126, [])


def test_a_list_that_is_too_long_for_a_literal_is_wrong_in_fc() -> None:
    assert not scoring.fc("[" + "'a', " * literal.MAX_LENGTH + "]", ["a"])


def test_a_change_counts_only_with_an_answer_in_fc() -> None:
    changed = TableHash(sql="f" * 32)
    assert scoring.marks(CHANGE, True, "[]", changed, scoring.FC) == {"compat": 1.0, "strict": 1.0}
    assert scoring.marks(CHANGE, False, "", changed, scoring.FC) == {"compat": 0.0, "strict": 0.0}


def test_a_text_as_answers_is_the_list_that_it_holds() -> None:
    action = calls(("commit_final_answer", "{\"answers\": \"['a', 'b']\"}"))
    (strict,) = CallReader(TOOLSET, strict=True).read(action).actions
    assert CallReader(TOOLSET, strict=False).read(action).actions == (strict,)
    assert isinstance(strict, SqlAnswer)
    assert scoring.FC.equal(strict.text, ["a", "b"])
    assert scoring.strict(strict.text, ["a", "b"])
    (listed,) = CallReader(TOOLSET, strict=False).read(calls(commit("['a', 'b']"))).actions
    assert isinstance(listed, SqlAnswer)
    assert not scoring.FC.equal(listed.text, ["a", "b"])


def answered(fields: str, strict: bool) -> object:
    """What a call of the final answer is read as, `unreadable` if as nothing; for tables."""
    (action,) = CallReader(TOOLSET, strict=strict).read(calls(("commit_final_answer", fields))).actions
    return "unreadable" if isinstance(action, UnreadableCall) else action


def test_a_call_keeps_the_lines_of_its_statement() -> None:
    (action,) = CallReader(TOOLSET, strict=False).read(calls(("execute_sql", '{"query": "-- a\\nSELECT 1"}'))).actions
    assert action == SqlOperation("-- a\nSELECT 1")
