"""How a talk ends: whether the words of its last lines speak for an agreement, whatever was proposed.

`ending.json` has a weight for each clue, learned by `python -m tools.endings` from whole talks; of a talk only common
words are clues, and of all others their shape.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache
from itertools import pairwise
from pathlib import Path

from environments.stss.hearing.slots import SpokenLine
from environments.stss.hearing.words import NUMBERS, plain
from environments.stss.language.spoken_times import spoken_times

LINES = 6
"""The last lines of a talk, of which clues are taken."""
_WHOLE = 2
"""The lines at the end of which a clue counts whole; of those before, half."""
_TOKEN = re.compile(r"[a-z]+'[a-z]+|[a-z]+|\d+|[?!.,]")
_CLITIC = re.compile(r"(\w+?)(n't|'(?:ll|s|d|re|ve|m))")
_FULL = {"ca": "can", "wo": "will", "sha": "will", "not": "n't", "'ll": "will", "shall": "will", "'m": "am"}
_FULL |= {"'re": "are", "'ve": "have"}
_ENDINGS = ("ing", "ed", "ly")


def ends_agreed(lines: Sequence[SpokenLine], standing: int | None, names: Set[str], prior: float) -> bool:
    """Whether a talk is likelier to end in an agreement than not.

    `standing`: the time that stands at its end, of the half of a day; `names`: words of the names of people, in lower
    case; `prior`: what else speaks for it, in natural logarithms of odds.
    """
    known, weights = _learned()
    found = clues(words(lines, standing, names), known)
    return prior + sum(weights.get(clue, 0.0) * share for clue, share in found.items()) > 0


@cache
def _learned() -> tuple[Set[str], Mapping[str, float]]:
    """The words that may be clues, and the weights of the clues."""
    stored = json.loads(Path(__file__).with_name("ending.json").read_text(encoding="utf-8"))
    return frozenset(stored["known"]), {clue: weight / 1000 for clue, weight in stored["weights"].items()}


def words(lines: Sequence[SpokenLine], standing: int | None, names: Set[str]) -> list[tuple[str, list[str]]]:
    """Of each of the last lines who says it (`first`: who began the talk) and its words, in their plainest form."""
    present = {word for line in lines for word in line.speaker.lower().split()}
    return [
        ("first" if line.speaker == lines[0].speaker else "other", list(_words(line.text, standing, names, present)))
        for line in lines[-LINES:]
    ]


def _words(text: str, standing: int | None, names: Set[str], present: Set[str]) -> Iterator[str]:
    """The words of a text; a time, a number or a name is told only by what it is."""
    text, at = plain(text), 0
    times = [
        (sentence.start() + time.start, sentence.start() + time.end, time.minute)
        for sentence in re.finditer(r"[^.!?;]+[.!?;]*", text)
        for time in spoken_times(sentence[0], standing, standing)
    ]
    for start, end, minute in times:
        yield from _told(text[at:start], names, present)
        yield "SAME-TIME" if minute == standing else "OTHER-TIME"
        at = end
    yield from _told(text[at:], names, present)


def _told(text: str, names: Set[str], present: Set[str]) -> Iterator[str]:
    for found in _TOKEN.findall(text.lower()):
        split = _CLITIC.fullmatch(found)
        for word in ("can", "n't") if found == "cannot" else split.groups() if split else (found,):
            if word in names:
                yield "PRESENT" if word in present else "ABSENT"
            else:
                yield "NUMBER" if word.isdigit() or word in NUMBERS else _FULL.get(word, word)


def clues(said: Sequence[tuple[str, Sequence[str]]], known: Set[str]) -> dict[str, float]:
    """How much each clue counts: words and pairs of words, by whoever says them and by each side."""
    found = {"always": 1.0}
    for left, (side, line) in zip(range(len(said), 0, -1), said, strict=True):
        share = 1.0 if left <= _WHOLE else 0.5
        shown = ["^", *(word if word in known else _shape(word) for word in line), "$"]
        for clue in (*shown, *map(" ".join, pairwise(shown))):
            for each in (clue, f"{side}: {clue}"):
                found[each] = max(share, found.get(each, 0.0))
    return found


def _shape(word: str) -> str:
    """What stands for a word that is no clue: its ending, or any word; all but letters stand for themselves."""
    if not word.islower() or not word.isalpha():
        return word
    return next((f"-{ending}" for ending in _ENDINGS if word.endswith(ending)), "-")
