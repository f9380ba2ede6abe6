"""The action in an agent's reply (the grammar of AgentBench, arXiv 2308.03688, Appendix H)."""

import re
from typing import NamedTuple

_ACTION = re.compile(r"[Aa]ction:[ \t]*\r?\n?[ \t]*((?:search|click)\[[^\]]+\])([^\n]*)")


class Move(NamedTuple):
    """What the agent wants to do."""

    name: str
    """`search` or `click`; anything else does nothing."""
    argument: str
    """Lower case, up to the first `]`."""
    longer: str = ""
    """Of a click, up to the last `]` of the line, lower case."""


def read(reply: str) -> Move | None:
    """The first action in a reply, or None."""
    match = _ACTION.search(reply)
    if match is None:
        return None
    action, rest = match[1], match[2]
    name, _, argument = action[:-1].rpartition("[")
    line = action + rest[: rest.rfind("]") + 1]
    longer = line.removeprefix("click[")[:-1] if line.startswith("click[") else ""
    return Move(name, argument.lower(), longer.lower())
