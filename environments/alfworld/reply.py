"""What of a reply is its action, and which command is carried out for it."""

import re
from collections.abc import Sequence
from typing import Literal

from environments.alfworld.similarity import nearest
from environments.types import Value

Profile = Literal["compat", "strict"]
MAX_ACTION = 10_000
"""Characters of an action that are read."""
_MARKS = {"compat": re.compile("ACTION:"), "strict": re.compile("ACTION:", re.IGNORECASE)}


class Chosen(Value):
    """What is carried out for an action."""

    command: str
    similarity: float
    """1 for a command of the list, 0 for a text that stays what it is and will be refused."""


def action_of(reply: str, profile: Profile) -> str | None:
    """The rest of the line behind the first `ACTION:`, stripped, in lower case; None where there is none."""
    found = _MARKS[profile].search(reply)
    if found is None:
        return None
    action = reply[found.end() :].split("\n", 1)[0].strip().lower()[:MAX_ACTION]
    return action.replace("\0", "\\0").encode(errors="replace").decode()


def choose(action: str, admissible: Sequence[str], profile: Profile) -> Chosen:
    """The command to carry out: in `compat` also one that the action only resembles."""
    if action in admissible:
        return Chosen(command=action, similarity=1.0)
    found = nearest(action, admissible) if profile == "compat" else None
    return Chosen(command=action, similarity=0.0) if found is None else Chosen(command=found[0], similarity=found[1])
