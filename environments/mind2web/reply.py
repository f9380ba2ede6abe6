"""Parses replies: a letter, an operation and a value."""

import re
from typing import NamedTuple

from environments.mind2web.prompt import NONE
from proctor.types import ParsedAction

MAX_VALUE = 2_000
"""Limit of characters read from a value."""
OPERATIONS = ("CLICK", "SELECT", "TYPE")
_AROUND = " \t\r*_`,"
_LETTER = re.compile(r"Answer: ([A-F])")
_OPERATION = re.compile(rf"Action: ({'|'.join(OPERATIONS)})")
_VALUE = re.compile(r"Value: (.*)$", re.MULTILINE)
_MARK = r"(?<![a-z]){}[*_`\"']{{0,4}}:[\s*_`\"'(\[]{{0,20}}"
_ANY_LETTER = re.compile(
    _MARK.format("(?i:answer)") + r"(?:([A-F])(?![A-Za-z0-9])|([a-f])(?=[.)\]*_`\"',]{0,4}\s*$))", re.MULTILINE
)
_ANY_OPERATION = re.compile(_MARK.format("action") + rf"({'|'.join(OPERATIONS)})\b", re.IGNORECASE)
_ANY_VALUE = re.compile(r"(?<![a-z])value[*_`\"']{0,4}:\s*(?:(?:```|~~~)\w*\n)?(.*)", re.IGNORECASE)


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


def read_kindly(text: str) -> StepReply:
    """Parses a reply in profile `strict`: each part in the published form, else with its mark in any case, in emphasis
    or quotes, and on the next line."""
    found = read(text)
    letter = None if found.parsed else _ANY_LETTER.search(text)
    operation, _, value = found.action.partition(" ")
    if not operation and (other := _ANY_OPERATION.search(text)):
        operation = other[1].upper()
    if not value and (further := _ANY_VALUE.search(text)):
        value = further[1].strip(_AROUND)[:MAX_VALUE]
    chosen = (letter[1] or letter[2]).upper() if letter else found.letter
    return StepReply(chosen, f"{operation} {value}", found.parsed or letter is not None)


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
