"""Reads replies: a statement, an answer or neither (arXiv 2308.03688, Appendix C; AgentBench v0.2)."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from environments.database.literal import leading_list
from environments.database.statements import one_line
from proctor.types import ParsedAction

_OPERATES = re.compile(r"(?<![a-z])action[*_]{0,3}:[ \t*_`\"']{0,20}operation(?![a-z0-9])", re.IGNORECASE)
_ANSWERS = re.compile(
    r"^[ \t*_`]{0,20}(?:action[*_]{0,3}:[ \t*_`]{0,20}answer[ \t*_`.,;]{1,20})?final answer[*_]{0,3}:",
    re.IGNORECASE | re.MULTILINE,
)
"""Both also match marks with emphasis, as in `**Action:** Operation` and `**Final Answer:** ["a"]`."""
_BLOCK = re.compile(
    r"(?P<fence>`{3,}|~{3,})(?:[ \t]*[\w+-]*[ \t]*\r?\n|[ \t]*(?:sql|mysql|mariadb|json)\b)?"
    r"(?P<held>.*?)(?:(?P=fence)|\Z)",
    re.DOTALL | re.IGNORECASE,
)
"""A block of any name, or of none, also on one line."""
_AROUND = " \t\r*_`"


@dataclass(frozen=True)
class SqlOperation:
    """A statement to run."""

    sql: str


@dataclass(frozen=True)
class SqlAnswer:
    """The answer: the text after `Final Answer:` to the end of its line, blanks included in the published form; of a
    function call, its argument as JSON."""

    text: str


@dataclass(frozen=True)
class Malformed:
    """A reply that has neither form."""


SqlAction = SqlOperation | SqlAnswer | Malformed


def parser(statements: int, *, lenient: bool) -> Callable[[str], SqlAction]:
    """Reads the replies of one session in turn; after `statements` replies only a final answer counts."""
    numbers = count()
    return lambda reply: read(reply, next(numbers) < statements, lenient)


def read(reply: str, may_operate: bool, lenient: bool = False) -> SqlAction:
    """What a reply asks for; without `may_operate` only a final answer counts.

    Line breaks in a statement become blanks, as published. With `lenient` those that end a `--` comment stay; a reply
    without the published forms may have its marks in any case, with emphasis and backticks, and its statement in a
    block of any name; and an answer may begin on the line after its mark, stand in a block, or go over several lines.
    """
    found = _published(reply, may_operate, lenient)
    if not lenient or isinstance(found, SqlOperation):
        return found
    if isinstance(found, Malformed):
        return _lenient(reply, may_operate)
    mark = reply.index("\nFinal Answer:") + len("\nFinal Answer:")
    return SqlAnswer(_behind(reply[mark:])) if _is_unfinished(found.text) else found


def _published(reply: str, may_operate: bool, keep_remarks: bool) -> SqlAction:
    """Finds what the published regular expressions find, in linear time."""
    if may_operate and between(reply, "Action: ", "\n") == "Operation":
        block = between(reply, "```sql\n", "\n```")
        if block is None:
            return Malformed()
        sql = block.strip()
        return SqlOperation(one_line(sql) if keep_remarks else sql.replace("\n", " "))
    answer = between(reply + "\n", "\nFinal Answer:", "\n")
    return Malformed() if answer is None else SqlAnswer(answer)


def _lenient(reply: str, may_operate: bool) -> SqlAction:
    operates = _OPERATES.search(reply) if may_operate else None
    if operates:
        block = _BLOCK.search(reply, operates.end()) or _BLOCK.search(reply)
        return Malformed() if block is None else SqlOperation(one_line(block["held"].replace("\r\n", "\n").strip()))
    answer = _ANSWERS.search(reply)
    return SqlAnswer(_behind(reply[answer.end() :])) if answer else Malformed()


def _is_unfinished(line: str) -> bool:
    """Whether an answer's line is empty but for emphasis, opens a block, or begins a list that it doesn't end."""
    text = line.strip(_AROUND)
    return not text or line.lstrip().startswith(("```", "~~~")) or (text.startswith("[") and not text.endswith("]"))


def _behind(rest: str) -> str:
    """The answer behind its mark: a block, a list, or the first line that holds something."""
    text = rest.lstrip(" \t\r\n*_")
    if block := _BLOCK.match(text):
        return block["held"].strip()
    text = text.lstrip("`")
    listed = leading_list(text) if text.startswith("[") else None
    return listed or text.partition("\n")[0].strip(_AROUND)


def shown(action: SqlAction) -> ParsedAction:
    """An action for readers of a trial. Of the last reply that a session reads, play takes an answer alone."""
    match action:
        case SqlOperation(sql):
            return ParsedAction(kind="sql", text=sql)
        case SqlAnswer(text):
            return ParsedAction(kind="final answer", text=text)
        case Malformed():
            return ParsedAction(problem="neither a statement nor a final answer")


def between(text: str, opening: str, closing: str) -> str | None:
    """The text from the first opening mark to the closing mark after it; None where either is missing."""
    _, found, rest = text.partition(opening)
    inside, closed, _ = rest.partition(closing)
    return inside if found and closed else None
