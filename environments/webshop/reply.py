"""The action in an agent's reply (the grammar of AgentBench, arXiv 2308.03688, Appendix H)."""

import re
from typing import NamedTuple

from environments.webshop.scoring import Profile

_MARK = "ction:"
_START = re.compile(rf"[Aa]{_MARK}[ \t]*+\r?\n?[ \t]*+((?:search|click)\[)[^\]]")
_AROUND = "[ \\t*_`\"'“”‘’]{0,20}+"
_STRICT_START = re.compile(rf"(?i:action)[*_]{{0,3}}:{_AROUND}(?:\r?\n)?{_AROUND}((?:search|click)\[)[^\]]")
"""Takes emphasis, backticks and quotes around mark or action: `**ACTION:** "click[x]".`"""


class ShopMove(NamedTuple):
    """What the agent wants to do."""

    name: str
    """`search` or `click`; anything else does nothing."""
    argument: str
    """Lower case, up to the first `]`."""
    longer: str = ""
    """Of a click, up to the last `]` of the line, lower case."""


def read(reply: str, profile: Profile = "compat") -> ShopMove | None:
    """The first action in a reply, or None; in time that grows with the reply's length, whatever it holds."""
    start = _start(reply) if profile == "compat" else _strict_start(reply)
    end = reply.find("]", start)
    if start < 0 or end < 0:
        return None
    name, _, argument = reply[start:end].rpartition("[")
    line_end = reply.find("\n", end)
    last = reply.rfind("]", end, line_end if line_end >= 0 else len(reply))
    longer = reply[start:last].removeprefix("click[") if reply.startswith("click[", start) else ""
    return ShopMove(name, argument.lower(), longer.lower())


def _start(reply: str) -> int:
    """Where the first action begins, be it closed or not; -1 where there is none."""
    at = reply.find(_MARK)
    while at >= 0:
        if at and (match := _START.match(reply, at - 1)):
            return match.start(1)
        at = reply.find(_MARK, at + 1)
    return -1


def _strict_start(reply: str) -> int:
    found = _STRICT_START.search(reply)
    return -1 if found is None else found.start(1)
