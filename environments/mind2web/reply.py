"""Parses replies: a letter, an operation and a value."""

import re
from typing import NamedTuple

from environments.mind2web.prompt import NONE
from proctor.types import ParsedAction

MAX_VALUE = 2_000
"""Limit of characters read from a value."""
OPERATIONS = ("CLICK", "SELECT", "TYPE")
_LETTER = re.compile(r"Answer: ([A-F])")
_OPERATION = re.compile(rf"Action: ({'|'.join(OPERATIONS)})")
_VALUE = re.compile(r"Value: (.*)$", re.MULTILINE)


class StepReply(NamedTuple):
    """A parsed reply."""

    letter: str
    """A to F; A if the reply names none."""
    action: str
    """Operation, blank, value; operation and value may be empty, the blank is always there."""
    parsed: bool
    """Whether the reply names a letter."""


def read(text: str) -> StepReply:
    """Parses a reply; the first match of each part counts, and case matters."""
    text = text.strip()
    letter, operation, value = (pattern.search(text) for pattern in (_LETTER, _OPERATION, _VALUE))
    return StepReply(
        letter[1] if letter else NONE,
        f"{operation[1] if operation else ''} {value[1].strip()[:MAX_VALUE] if value else ''}",
        letter is not None,
    )


def shown(reply: StepReply) -> ParsedAction:
    """A parsed reply for readers of a trial."""
    if not reply.parsed:
        return ParsedAction(problem="no letter, which counts as A")
    return ParsedAction(kind=f"answer {reply.letter}", text=reply.action.strip())


NO_ANSWER = StepReply(NONE, " ", False)
"""A reply that names no letter, and no action."""


def write(letter: str, operation: str = "", value: str = "") -> str:
    """The text of a reply with these parts."""
    lines = [f"Answer: {letter}."]
    if operation:
        lines.append(f"Action: {operation}")
    if operation and operation != "CLICK":
        lines.append(f"Value: {value}")
    return "\n".join(lines)


def written(reply: StepReply) -> str:
    """The text of a parsed reply."""
    operation, _, value = reply.action.partition(" ")
    return write(reply.letter, operation, value)
