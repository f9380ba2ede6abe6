"""Reads replies: a final answer, calls to try, or neither. Never raises, whatever an agent writes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from proctor.tools import Protocol
from proctor.types import ParsedAction

MAX_CALLS = 100
"""The most calls that are read from one line."""
MAX_ARGUMENTS = 8
"""The most arguments that are split; no tool takes so many."""
_ANSWER = re.compile(r"(?:Find|Final) Answer: #(\d+)")
_LOOSE_ANSWER = re.compile(
    r"(?:find|final)\s{1,3}answer[\s*_`\"']{0,8}[:\uff1a][\s*_`\"'(\[]{0,8}(?:the\s{1,3})?(?:variable\s{0,3})?[*_`\"']{0,4}#(\d+)",
    re.IGNORECASE,
)
_ACTION = re.compile(r"Action.*?:")
_ANY_ACTION = re.compile(r"[\s*_`>#-]{0,20}action[^\n:]*:", re.IGNORECASE)
_LATER_LINES = 5
"""Lines after one that begins an action in which its calls are looked for."""
_CALL = re.compile(r"\b(\w++)\(")
_COMMA = re.compile(r"\s*,\s*")
_PREFIX = re.compile(r"[Vv]ariable ")
_BLANKS = re.compile(r"\s*")
_QUOTES = ("", '"', "'", "`")


@dataclass(frozen=True)
class FinalAnswer:
    """A final answer: the digits after `#`."""

    variable: str


@dataclass(frozen=True)
class LooseAnswer:
    """A final answer in another form than the published one, in a reply without an action: the digits after `#`."""

    variable: str


@dataclass(frozen=True)
class ToolRequest:
    """A call: a name before a parenthesis, and the arguments in it."""

    function: str
    written: str
    """The call as the agent wrote it."""
    arguments: tuple[str, ...] | None
    """None where they can't be read."""


@dataclass(frozen=True)
class ToolRequests:
    """The calls of the first line that starts with `Action`, from left to right; there may be none."""

    calls: tuple[ToolRequest, ...]


@dataclass(frozen=True)
class NoAction:
    """A reply with no final answer and without a line that starts with `Action`."""


GraphAction = FinalAnswer | LooseAnswer | ToolRequests | NoAction


def shorten(reply: str) -> str:
    """A reply as the history keeps it: cut where it invents an observation, without backslashes before underscores."""
    return reply.partition("Observation:")[0].replace("\\_", "_")


def read(reply: str, names: Sequence[str] = (), lenient: bool = False) -> GraphAction:
    """What a shortened reply asks for; `names` are the sample's entities.

    With `lenient` (the strict profile), an argument may be a name with commas or parentheses in it, quoted or not, and
    an action may have its mark in any case, with emphasis, and its call on a later line. Else arguments are split at
    commas and end at the first `)`, as published.
    """
    answer = _ANSWER.search(reply)
    if answer:
        return FinalAnswer(answer[1])
    line = _action_line(reply.split("\n"), lenient)
    found = [match for _, match in zip(range(MAX_CALLS), _CALL.finditer(line or ""), strict=False)]
    if line is None or (lenient and not found):
        loose = _LOOSE_ANSWER.search(reply)
        return LooseAnswer(loose[1]) if loose else NoAction() if line is None else ToolRequests(())
    longest_first = sorted(names, key=len, reverse=True)
    calls = (
        _scanned(match, line, longest_first) if lenient else _as_published(match[1], line, names) for match in found
    )
    return ToolRequests(tuple(calls))


def _action_line(lines: Sequence[str], lenient: bool) -> str | None:
    """The line with an action's calls; None where no line begins an action."""
    at = next((at for at, line in enumerate(lines) if _ACTION.match(line)), None)
    if at is None and lenient:
        at = next((at for at, line in enumerate(lines) if _ANY_ACTION.match(line)), None)
    if at is None:
        return None
    rest = lines[at + 1 : at + 1 + _LATER_LINES] if lenient else ()
    later = takewhile(lambda line: not _ANY_ACTION.match(line), rest)
    return next((line for line in (lines[at], *later) if _CALL.search(line)), lines[at])


def shown(action: GraphAction, protocol: Protocol, profile: str) -> ParsedAction:
    """An action for readers of a trial; of calls in a text that is read by the names of a sample only the functions."""
    match action:
        case FinalAnswer(variable):
            return ParsedAction(kind="final answer", text=f"#{variable}")
        case LooseAnswer(variable) if profile == "strict":
            return ParsedAction(kind="final answer", text=f"#{variable}")
        case LooseAnswer(variable):
            return ParsedAction(problem=f"the answer #{variable} has not the form that counts")
        case ToolRequests(calls) if calls:
            by_name = protocol == "text" and profile == "strict"
            functions = ", ".join(dict.fromkeys(call.function for call in calls))
            return ParsedAction(kind=functions, text="" if by_name else "\n".join(call.written for call in calls))
        case _:
            return ParsedAction(problem="neither a call nor a final answer")


def _scanned(call: re.Match[str], line: str, names: Sequence[str]) -> ToolRequest:
    arguments, end = _scan(line, call.end(), names)
    if arguments is None:
        return ToolRequest(call[1], line[call.start() :], None)
    return ToolRequest(call[1], line[call.start() : end + 1], tuple(arguments))


def _as_published(function: str, line: str, names: Sequence[str]) -> ToolRequest:
    """A call as the published code reads it: of a name that is called twice, the first call."""
    start = line.find(f"{function}(") + len(function) + 1
    end = line.find(")", start + 1)
    if end < 0:
        return ToolRequest(function, line[start - len(function) - 1 :], None)
    given = _COMMA.split(line[start:end], MAX_ARGUMENTS - 1)
    meant = [(each, each.replace("variable ", "").replace("Variable ", "")) for each in given]
    arguments = tuple(
        named if named.startswith("#") or named in names or each in names else each for each, named in meant
    )
    return ToolRequest(function, f"{function}({', '.join(given)})", arguments)


def _scan(line: str, position: int, names: Sequence[str]) -> tuple[list[str] | None, int]:
    """The arguments from a position to the closing parenthesis, and its position; whole names are matched first."""
    arguments: list[str] = []
    while position < len(line) and len(arguments) < MAX_ARGUMENTS:
        argument, position = _argument(line, position, names)
        arguments.append(argument)
        if line[position : position + 1] == ")":
            return (arguments if any(arguments) else None), position
        position += 1
    return None, position


def _argument(line: str, position: int, names: Sequence[str]) -> tuple[str, int]:
    """One argument, and the position of the comma or parenthesis after it."""
    first = _skip(line, position)
    prefix = _PREFIX.match(line, first)
    position = prefix.end() if prefix else first
    for begin, name in ((begin, name) for begin in (first, position) for name in names):
        for quote in _QUOTES:
            if line.startswith(quote + name + quote, begin):
                after = _skip(line, begin + len(name) + 2 * len(quote))
                if line[after : after + 1] in (",", ")"):
                    return name, after
    ends = [end for end in (line.find(",", position), line.find(")", position)) if end >= 0]
    end = min(ends, default=len(line))
    return line[position:end].strip().strip("\"'`"), end


def _skip(line: str, position: int) -> int:
    blanks = _BLANKS.match(line, position)
    return blanks.end() if blanks else position
