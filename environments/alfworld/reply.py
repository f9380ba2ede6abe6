"""What of a reply is its action, and which command is carried out for it."""

from collections.abc import Sequence
from typing import Literal

from environments.alfworld.similarity import nearest
from environments.types import Value

Profile = Literal["compat", "strict"]
MAX_ACTION = 10_000
"""Characters of an action that are read."""
_MARK = "ACTION:"


class Chosen(Value):
    """What is carried out for an action."""

    command: str
    similarity: float
    """1 for a command of the list, 0 for a text that stays what it is and will be refused."""


def action_of(reply: str, profile: Profile) -> str | None:
    """The rest of the line behind the first `ACTION:`, stripped, in lower case; None where there is none."""
    at = reply.find(_MARK) if profile == "compat" else _find_in_any_case(reply)
    if at < 0:
        return None
    action = reply[at + len(_MARK) :].split("\n", 1)[0].strip()[:MAX_ACTION].lower()
    return action.replace("\0", "\\0").encode(errors="replace").decode()


def choose(action: str, admissible: Sequence[str], profile: Profile) -> Chosen:
    """The command to carry out: in `compat` also one that the action only resembles."""
    if action in admissible:
        return Chosen(command=action, similarity=1.0)
    found = nearest(action, admissible) if profile == "compat" else None
    return Chosen(command=action, similarity=0.0) if found is None else Chosen(command=found[0], similarity=found[1])


def _find_in_any_case(reply: str) -> int:
    """Where the mark begins, -1 where there is none; found among bytes, several times as fast as by a pattern."""
    told = reply.encode(errors="replace")
    at = told.lower().find(_MARK.lower().encode())
    return at if at < 0 else len(told[:at].decode())
