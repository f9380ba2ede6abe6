"""Ranks candidates with BM25 (Robertson and Zaragoza 2009) and Lucene's inverse document frequency."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice

from lxml import etree

from environments.mind2web.pages.markup import ATTRIBUTES
from environments.mind2web.pages.page import TEXT

K1 = 1.2
B = 0.75
PREVIOUS = 3
"""Number of earlier actions in the query, besides the task."""
TEXTS = 50
"""Limit of text nodes read from an element; pruning shows no more of one."""
_WORD = re.compile(r"[^\W_]+")


def ranking(candidates: Mapping[str, etree._Element], task: str, previous: Sequence[str]) -> dict[str, int]:
    """Rank by id, 0 the best. Candidates are given in document order, which decides ties."""
    query = "\n".join((task, *previous[-PREVIOUS:]))
    scores = bm25([_described(node) for node in candidates.values()], query)
    best_first = sorted(zip(candidates, scores, strict=True), key=lambda scored: -scored[1])
    return {name: rank for rank, (name, _) in enumerate(best_first)}


def bm25(texts: Sequence[str], query: str) -> list[float]:
    """BM25 score of each text for a query, with word statistics of these texts; 0 without a common word."""
    counts = [Counter(words(text)) for text in texts]
    lengths = [count.total() for count in counts]
    mean = sum(lengths) / len(lengths) if any(lengths) else 1.0
    terms = set(words(query))
    frequency = Counter(term for count in counts for term in terms & count.keys())
    weight = {term: math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for term, n in frequency.items()}
    return [
        math.fsum(
            weight[term] * count[term] * (K1 + 1) / (count[term] + K1 * (1 - B + B * length / mean))
            for term in sorted(terms & count.keys())
        )
        for count, length in zip(counts, lengths, strict=True)
    ]


def words(text: str) -> list[str]:
    """The words of a text in lower case: runs of letters and digits."""
    return _WORD.findall(text.lower())


def _described(node: etree._Element) -> str:
    """A candidate's tag, attributes and text, and its parent's text."""
    parent = node.getparent()
    texts = [str(node.tag), *(node.get(name, "") for name in ATTRIBUTES)]
    texts += [each.text or "" for each in islice(node.iter(TEXT), TEXTS)]
    if parent is not None:
        texts += [each.text or "" for each in islice(parent.iterchildren(TEXT), TEXTS)]
    return " ".join(texts)
