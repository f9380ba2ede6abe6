"""Parses the action in an agent's reply (grammar of AgentBench, arXiv 2308.03688, Appendix H)."""

import re
from typing import NamedTuple

from environments.webshop.scoring import Profile
from proctor.types import ParsedAction

_MARK = "ction:"
_START = re.compile(rf"[Aa]{_MARK}[ \t]*+\r?\n?[ \t]*+((?:search|click)\[)[^\]]")
_AROUND = "[ \\t*_`\"'“”‘’]{0,20}+"
_STRICT_START = re.compile(rf"(?i:action)[*_]{{0,3}}:{_AROUND}(?:\r?\n)?{_AROUND}((?:search|click)\[)[^\]]")
"""Accepts emphasis, backticks and quotes around mark or action, such as `**ACTION:** "click[x]"`."""


class ShopMove(NamedTuple):
    """An agent's action."""

    name: str
    """`search` or `click`; other names have no effect."""
    argument: str
    """The text up to the first `]`, lower case."""
    longer: str = ""
    """The text of a click up to the last `]` of its line, lower case."""


def read(reply: str, profile: Profile = "compat") -> ShopMove | None:
    """The first action in a reply; None if there is none. Takes linear time for every reply."""
    start = _start(reply) if profile == "compat" else _strict_start(reply)
    end = reply.find("]", start)
    if start < 0 or end < 0:
        return None
    name, _, argument = reply[start:end].rpartition("[")
    line_end = reply.find("\n", end)
    last = reply.rfind("]", end, line_end if line_end >= 0 else len(reply))
    longer = reply[start:last].removeprefix("click[") if reply.startswith("click[", start) else ""
    return ShopMove(name, argument.lower(), longer.lower())


def shown(move: ShopMove | None) -> ParsedAction:
    """An action for readers of a trial."""
    return ParsedAction(problem="no action") if move is None else ParsedAction(kind=move.name, text=move.argument)


def _start(reply: str) -> int:
    """Offset of the first action, closed or not; -1 if there is none."""
    at = reply.find(_MARK)
    while at >= 0:
        if at and (match := _START.match(reply, at - 1)):
            return match.start(1)
        at = reply.find(_MARK, at + 1)
    return -1


def _strict_start(reply: str) -> int:
    found = _STRICT_START.search(reply)
    return -1 if found is None else found.start(1)
