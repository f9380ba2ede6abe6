"""A text as tokens: words, names, marks, and one token for each day, time and place that was recognised."""

import re
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from environments.stss.hearing.words import VERBS, word_set

Kind = Literal["word", "name", "mark", "day", "time", "place"]
SLOTS = word_set("day time place")
ENDS = frozenset(".!?;:")
"""Marks that end a sentence or a clause that stands alone."""
_TOKEN = re.compile(r"[A-Za-z0-9À-ÿ][\w-]*?(?=n't\b)|n't\b|'(?:s|d|ll|ve|re|m)\b|[\w-]*\w|[^\w\s]", re.IGNORECASE)
_LETTER = re.compile(r"\w")


class SlotSpan(NamedTuple):
    """A part of a text that names a day, a time or a place."""

    start: int
    end: int
    kind: Kind


class Token(NamedTuple):
    """A word, a mark, or a recognised part of a text."""

    text: str
    start: int
    end: int
    kind: Kind
    word: str
    """The text in lower case."""
    ends: bool
    """Whether it is a mark that ends a sentence."""


def tokens(text: str, spans: Sequence[SlotSpan], names: Collection[str]) -> list[Token]:
    """The tokens of a text. `names`: first and last names of people, in lower case."""
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        span = next((span for span in spans if span.start <= start < span.end), None)
        if span is None:
            kind = _kind(match[0], names)
            ends = kind == "mark" and match[0] in ENDS
            found.append(Token(match[0], start, end, kind, match[0].lower(), ends))
        elif not found or found[-1].end != span.end or found[-1].kind != span.kind:
            named = text[span.start : span.end]
            found.append(Token(named, *span, named.lower(), ends=False))
    return found


def _kind(text: str, names: Collection[str]) -> Kind:
    if not _LETTER.search(text):
        return "mark"
    return "name" if text[0].isupper() and text.lower() in names else "word"


def shape(token: Token) -> str:
    """What can be told of a token without knowing its word: its kind or its ending."""
    word = token.word
    if token.kind == "mark":
        return "." if token.ends else token.text
    if token.kind != "word":
        return f"<{token.kind}>"
    if word in VERBS:
        return "VERB"
    if word.isdigit():
        return "NUMBER"
    for ending, long in (("ing", 6), ("ed", 5), ("ly", 5)):
        if word.endswith(ending) and len(word) >= long:
            return ending.upper()
    return "PLURAL" if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else "WORD"
