"""Finds the action in a reply, and the command to carry out for it."""

import re
from collections.abc import Sequence
from typing import Literal

from environments.alfworld.similarity import nearest
from proctor.types import Value

Profile = Literal["compat", "strict"]
MAX_ACTION = 10_000
"""Characters of an action that are read."""
_MARK = "ACTION:"
_STRICT_MARK = re.compile(rb"action[*_]{0,3}:")
_AROUND = " \t\r*_`\"'“”‘’"
"""Characters stripped from around an action in `strict`: blanks, emphasis, backticks, quotes."""


class Chosen(Value):
    """The command to carry out for an action."""

    command: str
    similarity: float
    """1 where the action is on the list, 0 where it resembles no command: it stays as it is, and is refused."""


def action_of(reply: str, profile: Profile) -> str | None:
    """The rest of the line behind the first `ACTION:`, stripped, in lower case; None where there is none.

    In `strict` the mark may be in any case, and the characters around mark and action (`**ACTION:** "look".`) are
    stripped.
    """
    start = _behind_mark(reply) if profile == "compat" else _behind_any_mark(reply)
    if start is None:
        return None
    action = reply[start:].split("\n", 1)[0].strip()[:MAX_ACTION].lower()
    if profile == "strict":
        action = action.lstrip(_AROUND).rstrip(f"{_AROUND}.")
    return action.replace("\0", "\\0").encode(errors="replace").decode()


def choose(action: str, admissible: Sequence[str], profile: Profile) -> Chosen:
    """The command to carry out: in `compat` also one that the action only resembles."""
    if action in admissible:
        return Chosen(command=action, similarity=1.0)
    found = nearest(action, admissible) if profile == "compat" else None
    return Chosen(command=action, similarity=0.0) if found is None else Chosen(command=found[0], similarity=found[1])


def _behind_mark(reply: str) -> int | None:
    at = reply.find(_MARK)
    return None if at < 0 else at + len(_MARK)


def _behind_any_mark(reply: str) -> int | None:
    """The end of the first mark in any case. A search in bytes is several times as fast as one in text."""
    encoded = reply.encode(errors="replace")
    found = _STRICT_MARK.search(encoded.lower())
    return None if found is None else len(encoded[: found.end()].decode())
