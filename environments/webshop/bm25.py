"""Lucene's BM25 with Anserini's parameters: what a document scores for a query."""

import math
from collections.abc import Sequence

K1 = 0.9
B = 0.4


def quantised(length: int) -> int:
    """A document's length in tokens as Lucene keeps it in one byte: exact below 40, then four leading bits and 24."""
    if length < 40:
        return length
    rest = length - 24
    dropped = rest.bit_length() - 4
    return (rest >> dropped << dropped) + 24


def idf(documents: int, containing: int) -> float:
    """How much a token says that so many of all documents contain."""
    return math.log(1 + (documents - containing + 0.5) / (containing + 0.5))


def norm(length: int, average: float) -> float:
    """What a document's length (in tokens, exact) adds to each count in the denominator."""
    return K1 * (1 - B + B * quantised(length) / average)


def score(counts: Sequence[int], idfs: Sequence[float], length_norm: float) -> float:
    """The score of a document that holds the query's tokens so often."""
    return sum(weight * count / (count + length_norm) for count, weight in zip(counts, idfs, strict=True) if count)


def bound(tantivy_score: float, length: int, average: float) -> float:
    """What a document can't score above, given its score by tantivy (k1 1.2, b 0.75, times 2.2, same idf and lengths).

    A token counts tf / (tf + ours) here and 2.2 tf / (tf + theirs) there; the quotient is largest at tf 1 or for tf
    without end. A thousandth is added for tantivy's single precision.
    """
    ours = norm(length, average)
    theirs = 1.2 * (0.25 + 0.75 * quantised(length) / average)
    return 1.001 * tantivy_score * max((1 + theirs) / (1 + ours), 1.0) / 2.2
