"""Similarity of two short texts: the token-set ratio of their ASCII words, as thefuzz computes it."""

import re

from rapidfuzz import fuzz

MATCH = 85
"""Texts with a higher similarity count as the same."""
_OTHER = re.compile(r"\W", re.ASCII)


def similarity(one: str, other: str) -> int:
    """The token-set ratio of two texts, from 0 to 100, rounded half to even.

    It is 0 if a text holds no ASCII word, and 100 if all words of one text are in the other.
    """
    return round(fuzz.token_set_ratio(_words(one), _words(other)))


def alike(one: str, other: str) -> bool:
    """Whether two texts count as the same."""
    return similarity(one, other) > MATCH


def _words(text: str) -> str:
    return _OTHER.sub(" ", text.encode("ascii", "ignore").decode()).lower()
