"""Lucene's BM25 with Anserini's parameters."""

import functools
import math
from collections.abc import Mapping

K1 = 0.9
B = 0.4


def quantised(length: int) -> int:
    """A document's length in tokens as Lucene stores it in one byte: exact below 40, then four leading bits plus 24."""
    if length < 40:
        return length
    rest = length - 24
    dropped = rest.bit_length() - 4
    return (rest >> dropped << dropped) + 24


def idf(documents: int, containing: int) -> float:
    """The inverse document frequency of a token in `containing` of all documents."""
    return math.log(1 + (documents - containing + 0.5) / (containing + 0.5))


@functools.lru_cache(maxsize=1 << 12)
def norm(length: int, average: float) -> float:
    """The term for a document's length (in tokens, exact) in the denominator of each token's score."""
    return K1 * (1 - B + B * quantised(length) / average)


def score(counts: Mapping[str, int], weights: Mapping[str, float], length_norm: float) -> float:
    """The score of a document, by its tokens' counts, for a query, by its tokens' weights.

    A weight is the token's `idf` times its count in the query. Equal documents get exactly equal scores.
    """
    total = 0.0
    for token, weight in weights.items():
        if token in counts:
            count = counts[token]
            total += weight * count / (count + length_norm)
    return total


@functools.lru_cache(maxsize=1 << 12)
def most(length: int, average: float) -> float:
    """Upper bound of our score divided by tantivy's score, for a document of this length.

    Per token, tantivy scores 2.2 tf / (tf + theirs) with k1 1.2 and b 0.75, and `score` tf / (tf + ours), with the same
    idf and lengths. The quotient is largest at tf = 1 or in the limit of large tf. The factor 1.001 covers tantivy's
    single precision.
    """
    ours = norm(length, average)
    theirs = 1.2 * (0.25 + 0.75 * quantised(length) / average)
    return 1.001 * max((1 + theirs) / (1 + ours), 1.0) / 2.2
