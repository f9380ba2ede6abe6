"""What a pronoun in an activity stands for: `bring it` after `I left my accordion at the inn` is to bring it."""

import re
from collections.abc import Iterator, Sequence

from environments.stss.hearing.activities.groups import FINITE, PRONOUNS, TRAIL
from environments.stss.hearing.activities.tokens import Token, shape
from environments.stss.hearing.words import EMPTY, NUMBERS, word_set

_OWN = word_set("my our")
_SINGULAR = word_set("a an this one")
_PLURAL = (word_set("some these those") | frozenset(NUMBERS)) - _SINGULAR
_DETERMINERS = word_set("my our the") | _SINGULAR | _PLURAL
_ADJECTIVES = word_set("big little long new old own small spare")
_PREPOSITIONS = word_set("across along among behind below beside between beyond inside near off onto out through under")
_SMALL = TRAIL | FINITE | PRONOUNS | _PREPOSITIONS | (EMPTY - _ADJECTIVES)
_MOST = 4
"""Limit of the words of a thing."""
_PRONOUN = re.compile(r"\b(?:(?P<one>it|this)|them|these|those)\b", re.IGNORECASE)


def with_thing(phrase: str, before: Sequence[Token]) -> str:
    """A phrase with the thing that the tokens before it name in place of its first pronoun.

    That is the first thing that is called mine or ours, else the first of all, one or several as the pronoun says;
    unchanged where there is none.
    """
    pronoun = _PRONOUN.search(phrase)
    things = [thing for thing in _things(before) if pronoun and _several(thing) is (pronoun["one"] is None)]
    own = [thing for thing in things if thing.split()[0] in _OWN]
    named = (own or things)[:1]
    return _PRONOUN.sub(named[0], phrase, count=1) if named else phrase


def _several(thing: str) -> bool:
    """Whether a thing is several: `six rolls`, `my glasses`."""
    first, *_, last = thing.split()
    return first in _PLURAL or (first not in _SINGULAR and last.endswith("s") and not last.endswith(("ss", "'s")))


def _things(tokens: Sequence[Token]) -> Iterator[str]:
    """The things that tokens name, each a determiner and the words that follow it."""
    for at, token in enumerate(tokens):
        if token.kind != "word" or token.word not in _DETERMINERS:
            continue
        words: list[str] = []
        for index in range(at + 1, min(at + 1 + _MOST, len(tokens))):
            if not _goes_on(tokens, index):
                break
            words.append(tokens[index].text)
        if words:
            yield f"{token.word} {' '.join(words)}".replace(" 's", "'s")


def _goes_on(tokens: Sequence[Token], index: int) -> bool:
    """Whether a token is a further word of a thing: no small word, no verb form, no mark."""
    if tokens[index].word != "'s":
        return _names(tokens[index])
    follows = tokens[index + 1 : index + 2]
    return bool(follows) and shape(follows[0]) not in ("ING", "ED") and _names(follows[0])


def _names(token: Token) -> bool:
    return token.kind == "word" and token.word not in _SMALL
