"""The activity that a text names: a phrase after words of inviting and asking, or an answer to "what for"."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from environments.stss.hearing.clock_words import clock_times
from environments.stss.hearing.phrases import (
    ASKS,
    CALL,
    CUT,
    DETAILS,
    EVENT_OFF,
    EVENT_OFF_SHORT,
    EVENTS,
    HEAD,
    IMPERATIVE,
    MOVES,
    NEAR,
    NEVER,
    NO_EVENT,
    OFF,
    OUGHT,
    PRESENT,
    PURPOSE,
    REQUEST,
    SENTENCE,
    TAIL,
    TAKES_PLACE,
    WHAT_FOR,
)
from environments.stss.hearing.slots import MAX_WORDS, Situation
from environments.stss.hearing.words import VERB, is_empty, within


class Phrase(NamedTuple):
    """An activity, and where it begins in the text."""

    words: str
    start: int


def activity(text: str, stops: Sequence[tuple[int, int]], situation: Situation, *, negated: bool) -> Phrase | None:
    """The activity of a text. `stops`: the parts of the text that name places, days and times, where it may end."""
    told = any(line.speaker == situation.speaker for line in situation.before)
    if negated or within(MOVES, text):
        found = _called_off(text) or _first(text, stops, (_after(OFF),), limit=5)
        if found is not None or negated:
            return found
    details = within(DETAILS, situation.question)
    if within(WHAT_FOR, situation.question) and not (details and not within(PURPOSE, situation.question)):
        return _answer(text, stops, situation)
    if told or details or clock_times(situation.question):
        moves = (
            (_after(REQUEST), _after(r"(?:could|might|may|can|shall) (?:i|we)"))
            if within(f"instead|{MOVES}", text)
            else ()
        )
        return _first(text, stops, (*moves, _after(r"it's an?|it is an?|is it an?|it'll be an?")), limit=MAX_WORDS)
    finders = (
        _after(REQUEST),
        _after("|".join(EVENTS)),
        _subject,
        _after("|".join((*ASKS, OUGHT))),
        _imperatives,
        _after(PRESENT),
        _after(r"for(?= an? [a-z])"),
    )
    return _leading(text, stops, situation) or _first(text, stops, finders) or _fragment(text, stops, situation)


def _after(pattern: str) -> Callable[[str], Iterator[int]]:
    compiled = re.compile(rf"(?:(?<!\w)|(?='))(?:{pattern})(?:(?<=\s)|(?![\w']))\s*", re.IGNORECASE)
    return lambda text: (match.end() for match in compiled.finditer(text))


def _imperatives(text: str) -> Iterator[int]:
    return (match.end() for match in IMPERATIVE.finditer(text))


def _subject(text: str) -> Iterator[int]:
    """Where an event begins of which the text says when or where it is: `the X starts at`."""
    return (match.start("what") for match in TAKES_PLACE.finditer(text))


def _called_off(text: str) -> Phrase | None:
    for pattern in (EVENT_OFF_SHORT, EVENT_OFF, NO_EVENT):
        match = pattern.search(text)
        words = _trimmed(match["what"]) if match else ""
        if match and words and not is_empty(words):
            return Phrase(words, match.start("what"))
    return None


def _first(
    text: str,
    stops: Sequence[tuple[int, int]],
    finders: Sequence[Callable[[str], Iterator[int]]],
    limit: int = MAX_WORDS,
) -> Phrase | None:
    """The first phrase that one of the finders gives."""
    for finder in finders:
        for begin in finder(text):
            phrase = _phrase(text, begin, stops, limit)
            if phrase is not None:
                return phrase
    return None


def _phrase(text: str, begin: int, stops: Sequence[tuple[int, int]], limit: int) -> Phrase | None:
    if any(start < begin < stop for start, stop in stops):
        return None
    end = min([start for start, _ in stops if start > begin] + [len(text)])
    cut = CUT.search(text, begin, end)
    raw = text[begin : cut.start() if cut else end]
    if NEVER.match(raw.strip()):
        return None
    words = _trimmed(raw, limit)
    return None if not words or is_empty(words) or NEVER.match(words) else Phrase(words, begin)


def _trimmed(phrase: str, limit: int = MAX_WORDS) -> str:
    previous = None
    while phrase != previous:
        previous = phrase
        phrase = HEAD.sub("", TAIL.sub("", phrase.strip()))
    return " ".join(phrase.split()[:limit])


def _answer(text: str, stops: Sequence[tuple[int, int]], situation: Situation) -> Phrase | None:
    """The activity in an answer to "what for": after "it's", "to", "for" or an article, or the first words."""
    begins = re.match(rf"(?:first,? |you |just )*(?={VERB}\b)", text, re.IGNORECASE)
    phrase = _phrase(text, begins.end(), stops, MAX_WORDS) if begins else None
    if phrase is not None:
        return phrase
    for match in re.finditer(
        r"(?:^|[.!?,;]\s|\b)(?:(?:it's|it is|it'd be|that's|is)(?: simply| just| only| basically|, um,|"
        r" all)*(?: about| for| to)?(?= )|(?<!\w)(?:to|for|about)(?= )|^an?(?= )|might|i'm going to|i want to|"
        r"you (?=fetch|bring|take|carry|put)|just(?= put))\s*",
        text,
        re.IGNORECASE,
    ):
        phrase = _phrase(text, match.end(), stops, MAX_WORDS)
        if phrase is not None:
            return phrase
    return _first(text, stops, (_imperatives,)) or _fragment(text, stops, situation)


def _fragment(text: str, stops: Sequence[tuple[int, int]], situation: Situation) -> Phrase | None:
    """A short group of words without a pronoun or a verb form, beside a time or a place: `Darts` in `Darts, nine`."""
    for match in re.finditer(r"[^.!?,;:]+", text):
        begin, end = match.span()
        end = min([start for start, _ in stops if begin <= start < end] + [end])
        raw = _without_names(text[begin:end].strip(), situation)
        words = _trimmed(raw, 6)
        beside = any(-NEAR < start - end < NEAR for start, _ in stops) or within(PURPOSE, situation.question)
        if not beside or not words or is_empty(words) or len(raw.split()) > 6:
            continue
        if not SENTENCE.search(raw) and not CALL.match(raw):
            return Phrase(words, begin)
    return None


def _leading(text: str, stops: Sequence[tuple[int, int]], situation: Situation) -> Phrase | None:
    """A fragment that opens the text, right before a time or a place."""
    match = re.match(r"[^.!?;:]+?(?=[.!?,;:])", text)
    if match is None:
        return None
    end = min([start for start, _ in stops if start < match.end()] + [match.end()])
    raw = _without_names(text[:end].strip(), situation)
    words = _trimmed(raw, 6)
    placed = any(begin - end < NEAR for begin, _ in stops if begin >= end)
    if not placed or not words or is_empty(words) or len(raw.split()) > 5:
        return None
    definite = re.match(r"(?:the|that|this)\b", raw, re.IGNORECASE)
    return None if definite or SENTENCE.search(raw) or CALL.match(raw) else Phrase(words, 0)


def _without_names(raw: str, situation: Situation) -> str:
    """A group of words without the names of people; empty if nothing else is left."""
    names = "|".join({re.escape(part) for name in situation.places.homes for part in name.split()})
    return re.sub(rf"\b(?:{names})\b(?!')(?: and\b)?", "", raw, flags=re.IGNORECASE).strip() if names else raw
