"""What a model thought aloud in a reply, which is no part of its answer; it may stand in tags or in a channel."""

import re
from contextvars import ContextVar
from dataclasses import dataclass

_TAG = r"(?i:think|thinking|thought|seed:think)(?:\s[^<>]*)?>"
_MARK = re.compile(
    rf"(?P<opens><{_TAG}|\[THINK\]|(?P<channel>(?:<\|start\|>assistant\s*)?<\|channel\|>\s*analysis|\Aanalysis(?=[A-Z]|(?s:.*)assistantfinal)))"
    rf"|(?P<closes></{_TAG}|\[/THINK\]|(?P<header><\|channel\|>[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>))"
    r"|(?P<ends><\|(?:end|return|call)\|>|<\|start\|>(?:assistant)?|assistantfinal)"
)
"""The tags of thoughts, and the marks of harmony, whose channel `analysis` is thoughts.

Servers that leave special tokens out turn a harmony reply into `analysis...assistantfinal...`.
"""


def without_thought(text: str) -> str:
    """The reply after its last closed thought, whether or not that one's beginning stands there, up to an open one.

    Unchanged if nothing in it opens or closes a thought.
    """
    start, stop, in_channel, in_harmony = 0, None, False, False
    for mark in _MARK.finditer(text):
        if mark["opens"]:
            stop = mark.start() if stop is None else stop
            in_channel = in_channel or mark["channel"] is not None
        elif mark["closes"] or in_channel:
            in_harmony = in_harmony or in_channel or mark["header"] is not None
            start, stop, in_channel = mark.end(), None, False
        elif in_harmony and stop is None:
            stop = mark.start()
    rest = text[start:stop].lstrip() if start else text[:stop]
    return rest if stop is None else rest.rstrip()


def has_thought(text: str) -> bool:
    """Whether something in the reply opens or closes a thought; a channel of harmony's alone is none."""
    if "<" not in text and "[" not in text and not text.startswith("analysis"):  # a tenth of a turn at a worker
        return False
    marks = list(_MARK.finditer(text))
    if any(mark["opens"] or (mark["closes"] and not mark["header"]) for mark in marks):
        return True
    header = next((mark for mark in marks if mark["header"]), None)
    return header is not None and bool(_MARK.sub("", text[: header.start()]).strip())


@dataclass
class ThoughtCount:
    """How many replies of a session held thoughts."""

    agent: int = 0
    helpers: int = 0
    """Of the environment's models: judges, hosts, users, drivers."""

    def detail(self) -> dict[str, int]:
        """The counts as a finish names them; those that are 0 are left out."""
        counts = {"thoughts": self.agent, "helper_thoughts": self.helpers}
        return {name: count for name, count in counts.items() if count}


session_thoughts: ContextVar[ThoughtCount | None] = ContextVar("session_thoughts", default=None)
"""The counts of the session that is being played; None outside one."""
