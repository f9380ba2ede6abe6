"""The action grammar agrees with the published regular expressions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.database.actions import Answer, Malformed, Operation, read

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


def published(reply: str, may_operate: bool) -> Operation | Answer | Malformed:
    """The same by the regular expressions of the specification."""
    action = re.search(r"Action: (.*?)\n", reply)
    if action and action[1] == "Operation" and may_operate:
        block = re.search(r"```sql\n([\s\S]*?)\n```", reply)
        return Operation(block[1].strip().replace("\n", " ")) if block else Malformed()
    answer = re.search(r"\nFinal Answer:(.*)", reply)
    return Answer(answer[1]) if answer else Malformed()


@given(st.lists(_PIECES, max_size=14).map("".join), st.booleans())
def test_any_reply_is_read_as_published(reply: str, may_operate: bool) -> None:
    assert read(reply, may_operate) == published(reply, may_operate)


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [
        ("Action: Operation\n```sql\nSELECT 1;\n```", Operation("SELECT 1;")),
        ("Action: Operation\n```sql\nSELECT\n 1\n```\n```sql\nSELECT 2\n```", Operation("SELECT  1")),
        ("Action: Operation\n```SQL\nSELECT 1\n```", Malformed()),
        ("Action: Operation", Malformed()),
        ("Action: operation\n```sql\nSELECT 1\n```", Malformed()),
        ("Action: Operation \n```sql\nSELECT 1\n```", Malformed()),
        ('Action: Answer\nFinal Answer: ["a"]', Answer(' ["a"]')),
        ('\nFinal Answer: ["a"]\n["b"]', Answer(' ["a"]')),
        ('Final Answer: ["a"]', Malformed()),
        ("", Malformed()),
    ],
)
def test_replies_of_the_specification(reply: str, wanted: object) -> None:
    assert read(reply, may_operate=True) == wanted


def test_lines_are_kept_where_they_are_wanted() -> None:
    reply = "Action: Operation\n```sql\n\n-- all of it\nSELECT *\nFROM t \n```"
    assert read(reply, may_operate=True) == Operation("-- all of it SELECT * FROM t")
    assert read(reply, may_operate=True, keep_lines=True) == Operation("-- all of it\nSELECT *\nFROM t")


def test_after_the_last_statement_only_an_answer_counts() -> None:
    reply = "Action: Operation\n```sql\nSELECT 1\n```\nFinal Answer: 3"
    assert read(reply, may_operate=False) == Answer(" 3")
    assert read(reply, may_operate=True) == Operation("SELECT 1")
