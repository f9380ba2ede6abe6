"""The groups of words of an utterance that may name its activity."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from environments.stss.hearing.activities.tokens import SLOTS, Token, shape
from environments.stss.hearing.words import VERBS, word_set

PRONOUNS = word_set("i you we he she it they me us him her them this that there")
_STOPS = word_set(
    """
    because so but if which who whom when while where as since until till before after unless although though
    whether than
    """
)
"""Words before which a group may end."""
FINITE = word_set(
    """
    is are was were will wo ca can should would could must has have had does do did begins starts runs needs comes goes
    opens closes takes meets ends leaves
    """
)
"""Verb forms that make a sentence of the words before them, as in `the baker comes`."""
TRAIL = word_set(
    """
    at on in from around about by to the a an please and then for with it 's is are this that of or up over be
    will my your our so say if as 'm i you we just also really maybe perhaps me us together before until
    """
)
"""Words that no group ends with."""
_SMALL = re.compile(
    r"\b(?:an?|the|my|our|your|his|her|its|their|some|for|of|to|in|on|at|about|and|with|it|me|us|you)\b"
)
_IS = word_set("'s is are")
_OVER = word_set("off over cancelled")
_NO_BEGINNING = word_set("'d 'll 'm 're 's 've n't not about with me us him them you it")
"""Words that no group begins with."""
_LOOKS = word_set("at after into over")
_LIGHT = "ask|call|change|have|hear|help|join|make|meet|mind|see|share|show|talk|tell|try|visit|wait|watch"
_DOES_IT = re.compile(
    rf"(?:(?!(?:{_LIGHT})\b)(?:{'|'.join(sorted(VERBS))})"
    r"|(?:(?:have|take) an? (?:\w+ )?)?look (?:at|after|into|over)) (?:it|them|this|these|those)\b",
    re.IGNORECASE,
)
_NOT_LAST = SLOTS | {"mark"}
"""Kinds of tokens that no group ends with."""
_WAYS = word_set("to into over up round back from at in on the")
_THEN = word_set("and then maybe also please perhaps")
MAX_TOKENS = 20
"""Limit of the tokens of a group."""
MAX_CROSSED = 4
"""Limit of the places, commas and conjunctions that a group goes on behind."""


class WordGroup(NamedTuple):
    """A group of tokens: the indices of the first and after the last, and where the text goes on after it."""

    first: int
    last: int
    after: int
    crossed: tuple[str, ...]
    """Kinds of what it goes on behind: places, commas, conjunctions."""


def word_groups(tokens: Sequence[Token]) -> list[WordGroup]:
    """The groups, each once."""
    may_end = [_may_end(tokens, index) for index in range(len(tokens))]
    return [
        group
        for first, token in enumerate(tokens)
        if token.kind in ("word", "name") and token.word not in _NO_BEGINNING
        for group in _from(tokens, first, may_end)
    ]


def _from(tokens: Sequence[Token], first: int, may_end: Sequence[bool]) -> Iterator[WordGroup]:
    """The groups with a beginning: up to the first place at which they may end, or the next ones."""
    crossed: list[str] = []
    found = first
    limit = min(len(tokens), first + MAX_TOKENS)
    if shape(tokens[first]) not in ("VERB", "ING"):
        limit = next((at for at in range(first + 1, limit) if tokens[at].word in FINITE), limit)
    for index in range(first + 1, limit + 1):
        ends = index == limit or may_end[index]
        last = _trimmed(tokens, first, index) if ends else found
        if last > found:
            yield WordGroup(first, last, index, tuple(crossed))
            found = last
        if index == limit or tokens[index].ends or len(crossed) == MAX_CROSSED:
            return
        if ends:
            token = tokens[index]
            crossed.append(token.text if token.kind == "mark" else "clause" if token.kind == "word" else token.kind)


def _may_end(tokens: Sequence[Token], index: int) -> bool:
    token = tokens[index]
    joins = token.word == "and" and index + 1 < len(tokens) and tokens[index + 1].word in PRONOUNS
    return (token.kind == "mark" and token.text not in "-'") or token.kind in SLOTS or token.word in _STOPS or joins


def _trimmed(tokens: Sequence[Token], first: int, last: int) -> int:
    while last > first + 1 and (_trails(tokens[last - 1]) or (last > first + 2 and _is_over(*tokens[last - 2 : last]))):
        looks = last - first > 2 and tokens[last - 3].word == "look" and tokens[last - 2].word in _LOOKS
        if tokens[last - 1].word == "it" and (looks or tokens[last - 2].word not in TRAIL):
            break
        last -= 1
    return last


def _trails(token: Token) -> bool:
    return token.word in TRAIL or token.kind in _NOT_LAST


def _is_over(verb: Token, token: Token) -> bool:
    """Whether two tokens say that what stands before them is off, or over."""
    return verb.word in _IS and token.word in _OVER


def whole_errand(tokens: Sequence[Token], group: WordGroup, groups: Sequence[WordGroup]) -> WordGroup:
    """The group with the second verb of an errand, if one follows: `feed the cat` in `feed the cat and water it`."""
    if shape(tokens[group.first]) != "VERB":
        return group
    at = group.last
    while at < len(tokens) and not tokens[at].ends and (tokens[at].kind != "word" or tokens[at].word in TRAIL - _THEN):
        at += 1
    verb = at
    while verb < len(tokens) and tokens[verb].word in _THEN:
        verb += 1
    if verb == at or verb == len(tokens) or shape(tokens[verb]) != "VERB":
        return group
    return next((each for each in groups if each.first == group.first and each.last > verb), group)


def whole_way(tokens: Sequence[Token], group: WordGroup) -> int:
    """The index after a group, or after the place that it leads to, as in `bring it to the inn`."""
    at = group.last
    while at < len(tokens) and tokens[at].word in _WAYS:
        at += 1
    return at + 1 if group.last < at < len(tokens) and tokens[at].kind == "place" else group.last


def does_it(phrase: str) -> bool:
    """Whether a phrase begins with a verb and a pronoun for what was named before: `bring it`, `look at them`."""
    return _DOES_IT.match(phrase) is not None


def content_words(phrase: str) -> frozenset[str]:
    """The words of a phrase without small ones; all if there are no others."""
    plain = phrase.lower()
    return frozenset(re.findall(r"[\w'-]+", _SMALL.sub("", plain)) or plain.split())


def covers(phrase: frozenset[str], wanted: frozenset[str]) -> bool:
    """Whether a phrase has half of the content words wanted, and little else."""
    return 2 * len(phrase & wanted) >= len(wanted) > 0 and len(phrase) <= 2 * len(wanted) + 2
