"""The action grammar agrees with the published regular expressions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.database.reply import Malformed, SqlAnswer, SqlOperation, read
from environments.database.scoring import strict

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


BLOCK = "```sql\nSELECT 1;\n```"


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [
        (f"**Action:** Operation\n{BLOCK}", SqlOperation("SELECT 1;")),
        (f"**Action**: Operation\n{BLOCK}", SqlOperation("SELECT 1;")),
        (f"Action: **Operation**\n{BLOCK}", SqlOperation("SELECT 1;")),
        (f"**ACTION: Operation**  \n{BLOCK}", SqlOperation("SELECT 1;")),
        (f"action: `operation`.\n{BLOCK}", SqlOperation("SELECT 1;")),
        ('**Action:** Answer\n**Final Answer:** ["a"]', SqlAnswer('["a"]')),
        ('Action: Answer\n**Final Answer: ["a*"]**', SqlAnswer('["a*"]')),
        ('**Action:** Answer\n  final answer: ["a"]', SqlAnswer('["a"]')),
        ("**Action:** Operation", Malformed()),
        (f"Transaction: Operation\n{BLOCK}", Malformed()),
        (f"Action: Operations\n{BLOCK}", Malformed()),
        (f"**Action:** Answer\n{BLOCK}", Malformed()),
        ('**Final Answer:** ["a"]', SqlAnswer('["a"]')),
        ("I will give my final answer: soon", Malformed()),
    ],
)
def test_strict_takes_what_is_set_around_a_mark(reply: str, wanted: object) -> None:
    assert read(reply, may_operate=True, lenient=True) == wanted
    assert isinstance(read(reply, may_operate=True), Malformed)


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


FORMS = (
    "Action: Answer\nFinal Answer: {}",
    "Action: Answer\nFinal Answer:\n{}",
    "Action: Answer\nFinal Answer:\n\n```json\n{}\n```",
    "Action: Answer\nFinal Answer:```\n{}\n```",
    "Action: Answer\nFinal Answer: ~~~{}~~~",
    "**Action:** Answer\n**Final Answer:** {}",
    "Action: Answer\n**Final Answer: {}**",
    "Action: Answer\nFinal Answer: `{}`",
    "Action: Answer Final Answer: {}",
    "Action: Answer\r\nFinal Answer: {}.\r\n",
    "final answer: {}\n",
)
LISTS = (
    '["a b", "5"]',
    "['a b', '5']",
    '[\n  "a b",\n  "5"\n]',
    '"[\\"a b\\", \\"5\\"]"',
    "[a b, 5]",
    '["a b", 5.0]',
    '("5", "a b")',
    "[“a b”, 5]",
    '{"a b", 5}',
    "[('a b',), (5,)]",
)


@pytest.mark.parametrize("form", FORMS)
def test_in_strict_an_answer_is_the_same_in_any_form(form: str) -> None:
    for listed in LISTS:
        action = read(form.format(listed), may_operate=True, lenient=True)
        assert isinstance(action, SqlAnswer), listed
        assert strict(action.text, ["a b", "5"]), (listed, action)


@pytest.mark.parametrize("opening", ["```sql\n", "```SQL\n", "```\n", "```mysql\r\n", "~~~sql\n", "```sql ", "``` "])
def test_in_strict_a_statement_is_the_same_in_any_block(opening: str) -> None:
    fence = opening[:3]
    reply = f"Action: Operation\n{opening}SELECT 1;\n{fence}"
    assert read(reply, may_operate=True, lenient=True) == SqlOperation("SELECT 1;")


def test_without_statements_left_strict_takes_an_answer_only() -> None:
    assert read(f"**Action:** Operation\n{BLOCK}", may_operate=False, lenient=True) == Malformed()


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [
        ("Action: Operation\n```sql\nSELECT 1;\n```", SqlOperation("SELECT 1;")),
        ("Action: Operation\n```sql\nSELECT\n 1\n```\n```sql\nSELECT 2\n```", SqlOperation("SELECT  1")),
        ("Action: Operation\n```SQL\nSELECT 1\n```", Malformed()),
        ("Action: Operation", Malformed()),
        ("Action: operation\n```sql\nSELECT 1\n```", Malformed()),
        ("Action: Operation \n```sql\nSELECT 1\n```", Malformed()),
        ('Action: Answer\nFinal Answer: ["a"]', SqlAnswer(' ["a"]')),
        ('\nFinal Answer: ["a"]\n["b"]', SqlAnswer(' ["a"]')),
        ('Final Answer: ["a"]', Malformed()),
        ("", Malformed()),
    ],
)
def test_replies_of_the_specification(reply: str, wanted: object) -> None:
    assert read(reply, may_operate=True) == wanted


def test_the_end_of_a_remark_is_kept_where_lines_count() -> None:
    reply = "Action: Operation\n```sql\n\n-- all of it\nSELECT *\nFROM t \n```"
    assert read(reply, may_operate=True) == SqlOperation("-- all of it SELECT * FROM t")
    assert read(reply, may_operate=True, lenient=True) == SqlOperation("-- all of it\nSELECT * FROM t")


def test_after_the_last_statement_only_an_answer_counts() -> None:
    reply = "Action: Operation\n```sql\nSELECT 1\n```\nFinal Answer: 3"
    assert read(reply, may_operate=False) == SqlAnswer(" 3")
    assert read(reply, may_operate=True) == SqlOperation("SELECT 1")
