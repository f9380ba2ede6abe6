"""Finds the action in a reply, and the command to carry out for it.

How much an action resembles a command is sentence BLEU, smoothed as NLTK's method 4 (Chen and Cherry 2014).
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from proctor.types import FinishReason, ParsedAction, Value

Profile = Literal["compat", "strict"]
MAX_ACTION = 10_000
"""Characters of an action that are read."""
_MARK = "ACTION:"
_STRICT_MARK = re.compile(rb"action[*_]{0,3}:")
_FENCE = re.compile(r"\s*(?:```|~~~)\w*\s*$")
_AROUND = " \t\r*_`\"'“”‘’"
"""Characters stripped from around an action in `strict`: blanks, emphasis, backticks, quotes."""

ORDERS = 4
LEAST = 0.01
"""A command is carried out for an action only if their similarity is larger (AgentBench v0.2)."""


class Move(Value):
    """A reply with an action."""

    action: str
    """The action as it is compared with commands."""
    written: str
    """What is compared to find repetitions: the whole reply in protocol `text`, the argument in `tools`."""


class NoMove(Value):
    """A reply without an action, which ends a session of protocol `text`."""

    reason: FinishReason


class Chosen(Value):
    """The command to carry out for an action."""

    command: str
    similarity: float
    """1 where the action is on the list, 0 where it resembles no command: it stays as it is, and is refused."""


def read(reply: str, profile: Profile) -> Move | NoMove:
    """What a reply of protocol `text` asks for."""
    action = action_of(reply, profile)
    if action:
        return Move(action=action, written=reply)
    return NoMove(reason=FinishReason.INVALID_FORMAT if action is None else FinishReason.INVALID_ACTION)


def shown(move: Move | NoMove) -> ParsedAction:
    """An action for readers of a trial, before a command is chosen for it."""
    return (
        ParsedAction(problem=move.reason) if isinstance(move, NoMove) else ParsedAction(kind="action", text=move.action)
    )


def action_of(reply: str, profile: Profile) -> str | None:
    """The rest of the line behind the first `ACTION:`, stripped, in lower case; None where there is none.

    In `strict` a reply without that mark may have it in any case, the characters around mark and action (`**ACTION:**
    "look".`) are stripped, and an action may stand on a later line, also in a block.
    """
    start = _behind_mark(reply)
    if start is None and profile == "strict":
        start = _behind_any_mark(reply)
    if start is None:
        return None
    action = cleaned(reply[start:], profile)
    return action if action or profile == "compat" else cleaned(_next_line(reply[start:]), profile)


def cleaned(written: str, profile: Profile) -> str:
    """The first line of an action as it is compared with commands."""
    action = written.split("\n", 1)[0].strip()[:MAX_ACTION].lower()
    if profile == "strict":
        action = action.lstrip(_AROUND).rstrip(f"{_AROUND}.")
    return action.replace("\0", "\\0").encode(errors="replace").decode()


def choose(action: str, admissible: Sequence[str], profile: Profile) -> Chosen:
    """The command to carry out: in `compat` also one that the action only resembles."""
    if action in admissible:
        return Chosen(command=action, similarity=1.0)
    found = nearest(action, admissible) if profile == "compat" else None
    return Chosen(command=action, similarity=0.0) if found is None else Chosen(command=found[0], similarity=found[1])


def _next_line(rest: str) -> str:
    """The first line with an action after that of the mark: not blank, and no fence."""
    lines = (line for line in rest[:MAX_ACTION].split("\n")[1:] if line.strip(_AROUND) and not _FENCE.match(line))
    return next(lines, "")


def _behind_mark(reply: str) -> int | None:
    at = reply.find(_MARK)
    return None if at < 0 else at + len(_MARK)


def _behind_any_mark(reply: str) -> int | None:
    """The end of the first mark in any case. A search in bytes is several times as fast as one in text."""
    encoded = reply.encode(errors="replace")
    found = _STRICT_MARK.search(encoded.lower())
    return None if found is None else len(encoded[: found.end()].decode())


class CommandCandidate:
    """A text that is compared with many commands."""

    def __init__(self, text: str) -> None:
        words = text.split()
        self._length = len(words)
        self._counts = [_grams(words, order) for order in range(1, ORDERS + 1)]

    def similarity(self, command: str) -> float:
        """From 0 to 1; 0 where the texts have no word in common."""
        reference = command.split()
        matches = [
            sum((_grams(reference, order) & _among(counts, reference, order)).values())
            for order, counts in enumerate(self._counts, 1)
        ]
        if not matches[0]:
            return 0.0
        total, missing = 0.0, 0
        for order, matched in enumerate(matches, 1):
            share = matched / max(1, self._length - order + 1)
            if not matched and self._length > 1:
                missing += 1
                share = math.log(self._length) / (5 * 2**missing) / max(1, self._length - order + 1)
            total += math.log(share) if share else 0.0
        longer = self._length > len(reference)
        return (1.0 if longer else math.exp(1 - len(reference) / self._length)) * math.exp(total / ORDERS)


def nearest(text: str, commands: Sequence[str]) -> tuple[str, float] | None:
    """The first of the commands that resemble a text most, and by how much; None where none does."""
    candidate = CommandCandidate(text)
    scores = [candidate.similarity(command) for command in commands]
    best = max(scores, default=0.0)
    return (commands[scores.index(best)], best) if best > LEAST else None


def _grams(words: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[at : at + order]) for at in range(len(words) - order + 1))


def _among(counts: Counter[tuple[str, ...]], reference: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    """The counts of those n-grams alone that the short reference has, so that a long candidate is read only once."""
    return Counter({gram: counts[gram] for gram in set(_grams(reference, order)) if gram in counts})
