"""Lucene's BM25 with Anserini's parameters: what a document scores for a query."""

import functools
import math
from collections.abc import Mapping

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


@functools.lru_cache(maxsize=1 << 12)
def norm(length: int, average: float) -> float:
    """What a document's length (in tokens, exact) adds to each count in the denominator."""
    return K1 * (1 - B + B * quantised(length) / average)


def score(counts: Mapping[str, int], weights: Mapping[str, float], length_norm: float) -> float:
    """The score of a document that holds tokens so often, for a query's tokens with their weights.

    A weight is the token's `idf` times how often the query has it. Equal documents score exactly equal.
    """
    total = 0.0
    for token, weight in weights.items():
        if token in counts:
            count = counts[token]
            total += weight * count / (count + length_norm)
    return total


@functools.lru_cache(maxsize=1 << 12)
def most(length: int, average: float) -> float:
    """What a document of this length can't exceed, as a multiple of its score by tantivy.

    Tantivy counts 2.2 tf / (tf + theirs) with k1 1.2 and b 0.75, same idf and lengths, where `score` counts
    tf / (tf + ours); the quotient is largest at tf 1 or for tf without end. A thousandth is added for its single
    precision.
    """
    ours = norm(length, average)
    theirs = 1.2 * (0.25 + 0.75 * quantised(length) / average)
    return 1.001 * max((1 + theirs) / (1 + ours), 1.0) / 2.2
