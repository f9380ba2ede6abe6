"""Parses the three actions of an agent from its reply."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from proctor.types import ParsedAction

MAX_ANSWER_BYTES = 64 << 10
"""A longer answer can't be passed to a checker as an argument, so it is an invalid action."""

_ACT = re.compile(r"Act:\s*(.+)")
_LENIENT_ACT = re.compile(r"(?<![a-z])act[*_]{0,3}:[\s*_`\"']{0,20}(.+)", re.IGNORECASE)
"""As `**Act:** bash`."""
_BLOCK = re.compile(r"```bash\n(.*?)\n```", re.DOTALL)
_ANY_BLOCK = re.compile(
    r"(?P<fence>`{3,}|~{3,})(?:[ \t]*[\w+-]*[ \t]*\n|[ \t]*(?:bash|sh|shell)\b)?(?P<code>.*?)(?:(?P=fence)|\Z)",
    re.DOTALL,
)
"""Of any name or none, also on one line."""
_LONG_ANSWER = re.compile(r"(?<![a-z])act[*_]{0,3}:[\s*_`\"']{0,20}answer\s{0,5}\((.*)\)", re.IGNORECASE | re.DOTALL)
"""An answer that goes over several lines."""
_LENIENT_BLOCK = re.compile(r"```bash[ \t]*\n(.*?)\n[ \t]*```(?!bash)", re.DOTALL)


@dataclass(frozen=True)
class Bash:
    """Run code; empty if the reply held no block."""

    code: str


@dataclass(frozen=True)
class Commit:
    """End the sample and have it checked with the answer; None after `finish`."""

    answer: str | None


@dataclass(frozen=True)
class Invalid:
    """The reply holds no valid action."""

    reason: Literal["invalid_format", "invalid_action"]


ShellAction = Bash | Commit | Invalid


def parse(reply: str, lenient: bool = False) -> ShellAction:
    """The action of a reply: its last usable `Act:`. Grammar of AgentBench's os_interaction, v0.2.

    With `lenient`, a reply that does not fit the grammar is parsed again with `Act:` in any case, also with emphasis
    and backticks around it, and an answer over several lines; code without a `bash` block is that of all blocks.
    """
    found = _chosen(reply, _ACT.findall(reply))
    if not lenient:
        return found
    if isinstance(found, Invalid):
        found = _chosen(reply, _LENIENT_ACT.findall(reply))
    if found == Bash(""):
        lines = reply.replace("\r\n", "\n")
        return Bash("\n\n".join(block["code"].strip("\n") for block in _ANY_BLOCK.finditer(lines)))
    answer = _LONG_ANSWER.search(reply) if isinstance(found, Invalid) else None
    return committed(answer[1].strip()) if answer else found


def committed(answer: str) -> Commit | Invalid:
    """The commit of an answer; invalid where no checker can get it as an argument."""
    usable = "\0" not in answer and len(answer.encode("utf-8", "replace")) <= MAX_ANSWER_BYTES
    return Commit(answer) if usable else Invalid("invalid_action")


def shown(action: ShellAction) -> ParsedAction:
    """An action for readers of a trial."""
    match action:
        case Bash(code):
            return ParsedAction(kind="bash", text=code)
        case Commit(answer):
            return ParsedAction(kind="finish" if answer is None else "answer", text=answer or "")
        case Invalid(reason):
            return ParsedAction(problem=reason)


def _chosen(reply: str, acts: Sequence[str]) -> ShellAction:
    for act in reversed(acts):
        word = act.lower()
        if word.startswith("bash"):
            return Bash(_code(reply))
        if word.startswith("finish"):
            return Commit(None)
        if word.startswith("answer"):
            start, end = act.find("("), act.rfind(")")
            if start >= 0 and end >= 0:
                return committed(act[start + 1 : end])
    return Invalid("invalid_action" if acts else "invalid_format")


def _code(reply: str) -> str:
    """The blocks fenced as `bash`, joined by a blank line, as the published expression finds them.

    If it finds none, blocks with an indented fence, blanks after the fence or Windows line ends count too.
    """
    return "\n\n".join(_BLOCK.findall(reply) or _LENIENT_BLOCK.findall(reply.replace("\r\n", "\n")))
