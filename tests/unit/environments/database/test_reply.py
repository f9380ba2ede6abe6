"""The action grammar agrees with the published regular expressions."""

import re

from hypothesis import given
from hypothesis import strategies as st

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
