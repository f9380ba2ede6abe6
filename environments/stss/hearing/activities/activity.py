"""The activity that a text names: the group of words that the clues speak for, or none where none is likely enough.

`weights.json` has a weight for each clue, learned by `python -m tools.hearing` from labelled utterances and practice
sentences; the words that may be clues, `known_words.json`, are none of their activities.
"""

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from environments.stss.hearing.activities.clues import (
    HeardWords,
    as_heard,
    clues_of_none,
    clues_of_rest,
    clues_of_sentence,
    clues_of_start,
)
from environments.stss.hearing.activities.groups import (
    WordGroup,
    content_words,
    covers,
    does_it,
    whole_errand,
    whole_way,
    word_groups,
)
from environments.stss.hearing.activities.things import with_thing
from environments.stss.hearing.activities.tokens import SlotSpan, tokens
from environments.stss.hearing.slots import Situation
from environments.stss.hearing.weights import stored
from environments.stss.hearing.words import is_empty

KNOWN = Path(__file__).with_name("known_words.json")
WEIGHTS = Path(__file__).with_name("weights.json")
SURE = 0.85
"""The probability below which an activity is asked about."""
GUESS = 0.3
"""The probability from which on the question names it: `You mean: a puppet theatre?`"""
GUESS_IN_ANSWER = 0.1
"""As `GUESS`, where the activity was asked for or is being corrected."""

_HEAD = re.compile(
    r"(?:(?:an?|the|my|our|some|also|just|please|then|help(?: (?:me|us))?(?: (?:with|to))?)\s+)+", re.IGNORECASE
)
"""Words that stand before an activity and are no part of it."""


class Phrase(NamedTuple):
    """An activity, where it begins in the text, and the probability that it or one like it is meant."""

    words: str
    start: int
    likelihood: float


def activity(text: str, spans: Sequence[SlotSpan], situation: Situation, *, refuses: bool) -> Phrase | None:
    """The likeliest activity of a text in which `spans` name days, times and places.

    The last ones are kept: the townspeople's talks repeat each other, whoever listens and whenever they take place.
    """
    return _activity(text, tuple(spans), _talk(situation), refuses)


def _talk(situation: Situation) -> Situation:
    """A situation, whoever listens and whenever it is."""
    return situation._replace(now=0, listener="", before=tuple(situation.before))


@lru_cache(maxsize=1024)
def _activity(text: str, spans: Sequence[SlotSpan], situation: Situation, refuses: bool) -> Phrase | None:
    heard = listen(text, spans, situation, known_words(), refuses=refuses)
    groups = groups_of(text, heard)
    phrases = [words(text, heard, group) for group in groups]
    chosen = most_likely(phrases, _scores(heard, groups), _score(clues_of_none(heard)) / 100)
    if chosen is None:
        return None
    group = whole_errand(heard.tokens, groups[chosen[0]], groups)
    found = words(text, heard, group)
    head = _HEAD.match(found)
    bare = head.end() if head and not is_empty(found[head.end() :]) else 0
    named = found[bare:]
    if does_it(named):
        whole = text[heard.tokens[group.first].start + bare : heard.tokens[whole_way(heard.tokens, group) - 1].end]
        named = with_thing(whole, heard.tokens[: group.first])
    return Phrase(named, heard.tokens[group.first].start + bare, chosen[1])


def _scores(heard: HeardWords, groups: Sequence[WordGroup]) -> list[float]:
    """The score of each group. What groups of a sentence or with the same beginning have in common is summed once."""
    firsts = {group.first for group in groups}
    sentences = {heard.sentences[first] for first in firsts}
    of_sentence = {each: _score(clues_of_sentence(heard, each)) for each in sentences}
    shared = {first: of_sentence[heard.sentences[first]] + _score(clues_of_start(heard, first)) for first in firsts}
    return [(shared[group.first] + _score(clues_of_rest(heard, group))) / 100 for group in groups]


def _score(found: Sequence[str]) -> int:
    """The sum of the weights of some clues, in hundredths."""
    weights: Mapping[str, int] = stored(WEIGHTS)
    return sum([weights[clue] for clue in found if clue in weights])


@cache
def known_words() -> frozenset[str]:
    """The words that may be clues."""
    return frozenset(stored(KNOWN))


def groups_of(text: str, heard: HeardWords) -> list[WordGroup]:
    """The groups that may name an activity: with a content word, or of what is done to a thing, as in `bring it`."""
    named = ((group, words(text, heard, group)) for group in word_groups(heard.tokens))
    return [group for group, phrase in named if not is_empty(phrase) or does_it(phrase)]


def listen(
    text: str, spans: Sequence[SlotSpan], situation: Situation, known: frozenset[str], *, refuses: bool
) -> HeardWords:
    """A text as an utterance of which clues can be taken. The last ones are kept: several kinds of clues are taken."""
    return _heard(text, tuple(spans), _talk(situation), known)._replace(refuses=refuses)


@lru_cache(maxsize=16)
def _heard(text: str, spans: Sequence[SlotSpan], situation: Situation, known: frozenset[str]) -> HeardWords:
    names = {part.lower() for name in situation.places.homes for part in name.split()}
    return as_heard(tokens(text, spans, names), situation, known, refuses=False)


def words(text: str, heard: HeardWords, group: WordGroup) -> str:
    """The words of a group, as they were said."""
    return text[heard.tokens[group.first].start : heard.tokens[group.last - 1].end]


def most_likely(phrases: Sequence[str], scores: Sequence[float], none: float) -> tuple[int, float] | None:
    """The index of the best phrase, and the probability that it or one like it is meant."""
    if not phrases:
        return None
    top = max(*scores, none)
    total = sum(math.exp(score - top) for score in (*scores, none))
    best = max(range(len(phrases)), key=scores.__getitem__)
    meant = content_words(phrases[best])
    alike = [
        math.exp(score - top)
        for phrase, score in zip(phrases, scores, strict=True)
        if _alike(content_words(phrase), meant)
    ]
    return best, sum(alike) / total


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two phrases may mean the same: one has most of the other's words, or all of them."""
    return covers(one, other) or covers(other, one) or one <= other or other <= one
