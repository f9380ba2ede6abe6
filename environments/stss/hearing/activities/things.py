"""What a pronoun in an activity stands for: `bring it` after `I left my horn at the inn` is `bring my horn`."""

import re
from collections.abc import Iterator, Sequence

from environments.stss.hearing.activities.groups import FINITE, PRONOUNS, TRAIL
from environments.stss.hearing.activities.tokens import Token, shape
from environments.stss.hearing.words import EMPTY, NUMBERS, word_set

_OWN = word_set("my our")
_SINGULAR = word_set("a an one")
_PLURAL = (word_set("some these those") | frozenset(NUMBERS)) - _SINGULAR
_DETERMINERS = word_set("my our the") | _SINGULAR | _PLURAL
_ADJECTIVES = word_set("big little long new old own small spare")
_PREPOSITIONS = word_set("across along among behind below beside between beyond inside near off onto out through under")
_SMALL = TRAIL | FINITE | PRONOUNS | _PREPOSITIONS | _DETERMINERS | (EMPTY - _ADJECTIVES)
_PAST = word_set(
    "bent broke broken burst came cut died fell found gave got kept left lost made met ran sank saw sent stuck took "
    "tore torn went wore worn"
)
_PEOPLE = word_set(
    "aunt boss boy brother child children cousin daughter father friend friends girl husband lad man men mother mum "
    "neighbour neighbours nephew niece sister son uncle wife woman women"
)
_MOST = 4
"""Limit of the words of a thing."""
_PRONOUN = re.compile(r"\b(?:(?P<one>it|this)|them|these|those)\b", re.IGNORECASE)


def with_thing(phrase: str, before: Sequence[Token]) -> str:
    """A phrase with the thing that the tokens before it name in place of its first pronoun.

    That is the first thing that is called mine or ours, else the first of all, one or several as the pronoun says;
    unchanged where there is none.
    """
    pronoun = _PRONOUN.search(phrase)
    if pronoun is None:
        return phrase
    things = list(_things(before, several=pronoun["one"] is None))
    named = next((thing for thing in things if thing.split()[0] in _OWN), things[0] if things else pronoun[0])
    return f"{phrase[: pronoun.start()]}{named}{phrase[pronoun.end() :]}"


def _things(tokens: Sequence[Token], *, several: bool) -> Iterator[str]:
    """The single things that tokens name, or those that are several: each a determiner and the words that follow it."""
    for at, token in enumerate(tokens):
        if token.kind != "word" or token.word not in _DETERMINERS or token.word in (_SINGULAR if several else _PLURAL):
            continue
        words: list[str] = []
        for index in range(at + 1, min(at + 1 + _MOST, len(tokens))):
            if not _goes_on(tokens, index):
                break
            words.append(tokens[index].text)
        if len(words) > 1 and not several and _is_plural(words[-1]):  # a verb, as in `the kettle drips`
            words.pop()
        named = bool(words) and _PEOPLE.isdisjoint(word.lower() for word in words)
        if named and _is_plural(words[-1]) is several:
            yield f"{token.word} {' '.join(words)}".replace(" 's", "'s")


def _is_plural(word: str) -> bool:
    return word.endswith("s") and not word.endswith(("ss", "'s"))


def _goes_on(tokens: Sequence[Token], index: int) -> bool:
    """Whether a token is a further word of a thing."""
    if tokens[index].word != "'s":
        return _names(tokens[index])
    follows = tokens[index + 1 : index + 2]
    return bool(follows) and _names(follows[0]) and shape(follows[0]) != "ING"


def _names(token: Token) -> bool:
    """Whether a token may be a word of a thing: no small word, no verb in the past."""
    return token.kind == "word" and token.word not in _SMALL | _PAST and shape(token) != "ED"
