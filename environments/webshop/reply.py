"""Parses the action in an agent's reply (grammar of AgentBench, arXiv 2308.03688, Appendix H)."""

import re
from typing import NamedTuple

from environments.webshop.scoring import Profile
from proctor.types import ParsedAction

_ASKED = r"((?:search|click)\[)(?=.)"
_START = re.compile(rf"[Aa]ction: *+(?:\n++ *+)?+{_ASKED}")
_AROUND = r"[\s*_`\"'“”‘’]*+(?:(?<=```)\w*+\s++)?+"
_STRICT_START = re.compile(rf"(?i:action)[*_]{{0,3}}:{_AROUND}{_ASKED}")
"""Accepts white space, emphasis, backticks and quotes around mark or action, such as `**ACTION:** "click[x]"`."""


class ShopMove(NamedTuple):
    """An agent's action."""

    name: str
    """`search` or `click`; other names have no effect."""
    argument: str
    """The text up to the first `]`, lower case."""
    longer: str = ""
    """The text of a click up to the last `]` of its line, lower case."""


def read(reply: str, profile: Profile = "compat") -> ShopMove | None:
    """The first action in a reply that is closed in its line; None if there is none. Takes linear time."""
    unclosed = 0
    for match in (_START if profile == "compat" else _STRICT_START).finditer(reply):
        first = match.end() + 1
        if first <= unclosed:
            continue
        line_end = reply.find("\n", first)
        unclosed = line_end if line_end >= 0 else len(reply)
        if (end := reply.find("]", first, unclosed)) >= 0:
            return _move(reply[match.start(1) : end], reply[match.end() : reply.rfind("]", end, unclosed)])
    return None


def shown(move: ShopMove | None) -> ParsedAction:
    """An action for readers of a trial."""
    return ParsedAction(problem="no action") if move is None else ParsedAction(kind=move.name, text=move.argument)


def _move(action: str, longer: str) -> ShopMove:
    """The move of `name[argument`: split at the last bracket that leaves an argument, as published."""
    name, _, argument = action[:-1].rpartition("[")
    argument += action[-1]
    return ShopMove(name, argument.lower(), longer.lower() if action.startswith("click") else "")
