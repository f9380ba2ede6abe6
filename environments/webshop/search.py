"""The shop's search: Lucene's BM25 over candidates that tantivy finds."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from environments.webshop import bm25
from environments.webshop.catalogue.analysis import tokens
from environments.webshop.catalogue.index import Candidate, Index
from environments.webshop.catalogue.store import CatalogueStore

HITS = 50
"""Limit of products in a search result."""
TokensIn = Callable[[str], list[str]]
"""Returns the query's tokens in a document, with repeats."""
BATCH = 64
"""Number of documents scored between checks whether others can still be among the best."""


class Hit(NamedTuple):
    """A product in a search result."""

    position: int
    score: float


class Found(NamedTuple):
    """The result of a search."""

    hits: tuple[Hit, ...] = ()
    """At most 50, best first; equal scores in the order of the catalogue."""
    missing: int = 0
    """Number of products in the index but not in the database, which are left out."""


class Search:
    """Finds products by keywords; may be used by any thread."""

    def __init__(
        self, store: CatalogueStore, index: Index, candidates: int | None = None, *, exact: bool = False
    ) -> None:
        """`candidates`: number of documents of the index to score; None for 500, or 1,000 above 100,000 products.

        `exact`: score every document that contains a word of the query.
        """
        self._store = store
        self._index = index
        self._exact = exact
        usual = 500 if index.documents <= 100_000 else 1_000
        self._limit = index.documents if exact else candidates or usual

    def find(self, keywords: str) -> Found:
        """The products for keywords; none if no document contains any of them."""
        asked = Counter(tokens(keywords))
        containing = {token: self._index.containing(token) for token in asked}
        times = {token: many for token, many in asked.items() if containing[token]}
        if not times:
            return Found()
        documents = self._index.documents
        weights = {token: many * bm25.idf(documents, containing[token]) for token, many in times.items()}
        return self._best(self._index.candidates(times, self._limit), weights)

    def _best(self, candidates: Sequence[Candidate], weights: Mapping[str, float]) -> Found:
        """The best candidates, scored in batches in the order of their upper bounds."""
        tokens_in = re.compile(f" ({'|'.join(map(re.escape, weights))})(?= )").findall
        average = self._store.meta.average_length
        bounds = [each.score * bm25.most(each.length, average) for each in candidates]
        order = sorted(range(len(candidates)), key=bounds.__getitem__, reverse=True)
        size = len(order) if self._exact else BATCH
        best, missing = list[Hit](), 0
        for at in range(0, len(order), size):
            if len(best) == HITS and bounds[order[at]] < best[-1].score:
                break
            batch = [candidates[number] for number in order[at : at + size]]
            scored = self._scored(batch, tokens_in, weights)
            missing += len(batch) - len(scored)
            best = sorted([*best, *scored], key=lambda hit: (-hit.score, hit.position))[:HITS]
        return Found(tuple(best), missing)

    def _scored(self, batch: Sequence[Candidate], tokens_in: TokensIn, weights: Mapping[str, float]) -> list[Hit]:
        average = self._store.meta.average_length
        documents = self._store.documents([each.position for each in batch])
        hits = []
        for position, length, _ in batch:
            if (document := documents.get(position)) is not None:
                counts = Counter(tokens_in(document))
                hits.append(Hit(position, bm25.score(counts, weights, bm25.norm(length, average))))
        return hits
