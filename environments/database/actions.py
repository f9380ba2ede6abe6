"""The action grammar: what a reply asks for (arXiv 2308.03688, Appendix C; AgentBench v0.2)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Operation:
    """Run this statement and show the result."""

    sql: str


@dataclass(frozen=True)
class Answer:
    """Commit this answer: the text after `Final Answer:` to the end of its line, blanks included."""

    text: str


@dataclass(frozen=True)
class Malformed:
    """The reply has none of the two forms."""


def read(reply: str, may_operate: bool, keep_lines: bool = False) -> Operation | Answer | Malformed:
    """What a reply asks for; without `may_operate` only a final answer counts.

    A statement's line breaks become blanks, as published, unless `keep_lines`: then a `--` comment ends with its line.

    The searches are those of the published regular expressions, in linear time.
    """
    if may_operate and between(reply, "Action: ", "\n") == "Operation":
        block = between(reply, "```sql\n", "\n```")
        if block is None:
            return Malformed()
        sql = block.strip()
        return Operation(sql if keep_lines else sql.replace("\n", " "))
    answer = between(reply + "\n", "\nFinal Answer:", "\n")
    return Malformed() if answer is None else Answer(answer)


def between(text: str, opening: str, closing: str) -> str | None:
    """The text from the first opening mark to the closing mark after it; None where either is missing."""
    _, found, rest = text.partition(opening)
    inside, closed, _ = rest.partition(closing)
    return inside if found and closed else None
