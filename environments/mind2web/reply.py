"""What a reply says: a letter, an operation and a value."""

import re
from typing import NamedTuple

from environments.mind2web.prompt import NONE

MAX_VALUE = 2_000
"""Characters of a value that are read."""
_LETTER = re.compile(r"Answer: ([A-F])")
_OPERATION = re.compile(r"Action: (CLICK|SELECT|TYPE)")
_VALUE = re.compile(r"Value: (.*)$", re.MULTILINE)


class StepReply(NamedTuple):
    """A reply as it was read."""

    letter: str
    """A to F; A where the reply names none."""
    action: str
    """Operation, blank, value: either may be empty, the blank is always there."""
    parsed: bool
    """Whether the reply names a letter."""


def read(text: str) -> StepReply:
    """What a reply says: the first match of each part counts, upper and lower case differ."""
    text = text.strip()
    letter, operation, value = (pattern.search(text) for pattern in (_LETTER, _OPERATION, _VALUE))
    return StepReply(
        letter[1] if letter else NONE,
        f"{operation[1] if operation else ''} {value[1].strip()[:MAX_VALUE] if value else ''}",
        letter is not None,
    )


def write(letter: str, operation: str = "", value: str = "") -> str:
    """The reply that says this."""
    lines = [f"Answer: {letter}."]
    if operation:
        lines.append(f"Action: {operation}")
    if operation and operation != "CLICK":
        lines.append(f"Value: {value}")
    return "\n".join(lines)
