"""The three actions an agent may take, read from its reply."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

MAX_ANSWER_BYTES = 64 << 10
"""A longer answer can't be passed to a checker as an argument, and is none."""

_ACT = re.compile(r"Act:\s*(.+)")
_KINDER_ACT = re.compile(r"(?<![a-z])act[*_]{0,3}:[\s*_`\"']{0,20}(.+)", re.IGNORECASE)
"""As `**Act:** bash`."""
_BLOCK = re.compile(r"```bash\n(.*?)\n```", re.DOTALL)
_KINDER_BLOCK = re.compile(r"```bash[ \t]*\n(.*?)\n[ \t]*```(?!bash)", re.DOTALL)


@dataclass(frozen=True)
class Bash:
    """Run this; it may be empty, where the reply held no block."""

    code: str


@dataclass(frozen=True)
class Commit:
    """Have the sample checked: with an answer, or with None after `finish`."""

    answer: str | None


@dataclass(frozen=True)
class Invalid:
    """No action."""

    reason: Literal["invalid_format", "invalid_action"]


def parse(reply: str, kinder: bool = False) -> Bash | Commit | Invalid:
    """The action a reply asks for: its last usable `Act:`. Grammar of AgentBench's os_interaction, v0.2.

    With `kinder` a reply of no published form may have its marks in any case, with emphasis and backticks around them.
    """
    found = _chosen(reply, _ACT.findall(reply))
    return _chosen(reply, _KINDER_ACT.findall(reply)) if kinder and isinstance(found, Invalid) else found


def _chosen(reply: str, acts: Sequence[str]) -> Bash | Commit | Invalid:
    for act in reversed(acts):
        word = act.lower()
        if word.startswith("bash"):
            return Bash(_code(reply))
        if word.startswith("finish"):
            return Commit(None)
        if word.startswith("answer"):
            start, end = act.find("("), act.rfind(")")
            if start >= 0 and end >= 0:
                return _answer(act[start + 1 : end])
    return Invalid("invalid_action" if acts else "invalid_format")


def _answer(text: str) -> Commit | Invalid:
    usable = "\0" not in text and len(text.encode("utf-8", "replace")) <= MAX_ANSWER_BYTES
    return Commit(text) if usable else Invalid("invalid_action")


def _code(reply: str) -> str:
    """The blocks fenced as `bash`, with one blank line between.

    As the published expression finds them; only where it finds none, also with an indented fence, blanks behind it, and
    line ends of Windows.
    """
    return "\n\n".join(_BLOCK.findall(reply) or _KINDER_BLOCK.findall(reply.replace("\r\n", "\n")))
