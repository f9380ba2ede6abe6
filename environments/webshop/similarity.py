"""Similarity of two short texts: the token-set ratio, as rapidfuzz and thefuzz compute it."""

import re

MATCH = 85
"""Texts with a higher similarity count as the same."""
_OTHER = re.compile(r"\W", re.ASCII)


def similarity(one: str, other: str) -> int:
    """The token-set ratio of two texts, from 0 to 100, rounded half to even.

    It is 0 if a text holds no ASCII word, and 100 if all words of one text are in the other.
    """
    left, right = _words(one), _words(other)
    if not left or not right:
        return 0
    common = left & right
    left_only, right_only = " ".join(sorted(left - common)), " ".join(sorted(right - common))
    if common and not (left_only and right_only):
        return 100
    shared = len(" ".join(common))
    link = 1 if common else 0
    left_length, right_length = (shared + link + len(rest) for rest in (left_only, right_only))
    ratios = [_ratio(_distance(left_only, right_only), left_length + right_length)]
    if common:
        ratios += [_ratio(link + len(rest), 2 * shared + link + len(rest)) for rest in (left_only, right_only)]
    return round(max(ratios))


def alike(one: str, other: str) -> bool:
    """Whether two texts count as the same."""
    return similarity(one, other) > MATCH


def _words(text: str) -> frozenset[str]:
    return frozenset(_OTHER.sub(" ", text.encode("ascii", "ignore").decode()).lower().split())


def _ratio(distance: int, lengths: int) -> float:
    return 100 - 100 * distance / lengths


def _distance(one: str, other: str) -> int:
    """The number of insertions and deletions of characters that turn one text into the other."""
    best = [0] * (len(other) + 1)
    for letter in one:
        diagonal = 0
        for at, against in enumerate(other, 1):
            above = best[at]
            best[at] = diagonal + 1 if letter == against else max(above, best[at - 1])
            diagonal = above
    return len(one) + len(other) - 2 * best[-1]
