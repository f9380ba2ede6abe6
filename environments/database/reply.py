"""Reads replies: a statement, an answer or neither (arXiv 2308.03688, Appendix C; AgentBench v0.2)."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from proctor.types import ParsedAction

_OPERATES = re.compile(r"(?<![a-z])action[*_]{0,3}:[ \t*_`\"']{0,20}operation(?![a-z0-9])", re.IGNORECASE)
_ANSWERS = re.compile(r"^[ \t*_`]{0,20}final answer[*_]{0,3}:(.*)", re.IGNORECASE | re.MULTILINE)
"""Both also match marks with emphasis, as in `**Action:** Operation` and `**Final Answer:** ["a"]`."""


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

    Line breaks in a statement become blanks, as published. With `lenient` they stay, so that a `--` comment ends with
    its line, and a reply without the published forms may have its marks in any case, with emphasis and backticks.
    """
    found = _published(reply, may_operate, lenient)
    return _lenient(reply, may_operate) if lenient and isinstance(found, Malformed) else found


def _published(reply: str, may_operate: bool, keep_lines: bool) -> SqlAction:
    """Finds what the published regular expressions find, in linear time."""
    if may_operate and between(reply, "Action: ", "\n") == "Operation":
        block = between(reply, "```sql\n", "\n```")
        if block is None:
            return Malformed()
        sql = block.strip()
        return SqlOperation(sql if keep_lines else sql.replace("\n", " "))
    answer = between(reply + "\n", "\nFinal Answer:", "\n")
    return Malformed() if answer is None else SqlAnswer(answer)


def _lenient(reply: str, may_operate: bool) -> SqlAction:
    if may_operate and _OPERATES.search(reply):
        block = between(reply, "```sql\n", "\n```")
        return Malformed() if block is None else SqlOperation(block.strip())
    answer = _ANSWERS.search(reply)
    return SqlAnswer(answer[1].strip(" \t\r*`")) if answer else Malformed()


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
