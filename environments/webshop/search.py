"""The shop's search: Lucene's BM25 over candidates that tantivy finds."""

from collections.abc import Sequence
from typing import NamedTuple

from environments.webshop import bm25
from environments.webshop.analysis import tokens
from environments.webshop.index import Candidate, Index
from environments.webshop.store import Store

HITS = 50
"""Products found at most."""
BATCH = 64
"""Documents scored before looking whether the rest can still be among the best."""


class Hit(NamedTuple):
    """A product that was found."""

    position: int
    score: float


class Found(NamedTuple):
    """What a search comes to."""

    hits: tuple[Hit, ...] = ()
    """Up to 50, the best first, of equal ones the first of the catalogue."""
    missing: int = 0
    """Products that the index has and the database lacks: left out."""


class Search:
    """Finds products by keywords; any thread may ask it."""

    def __init__(self, store: Store, index: Index, candidates: int | None = None, *, exact: bool = False) -> None:
        """`candidates` are scored of what the index finds (None for 500, or 1,000 above 100,000 products).

        `exact` scores every document that contains a word of the query.
        """
        self._store = store
        self._index = index
        self._exact = exact
        usual = 500 if index.documents <= 100_000 else 1_000
        self._limit = index.documents if exact else candidates or usual

    def find(self, keywords: str) -> Found:
        """What keywords find; nothing where no document holds any of their words."""
        known = [(token, self._index.containing(token)) for token in tokens(keywords)]
        known = [(token, containing) for token, containing in known if containing]
        if not known:
            return Found()
        candidates = self._index.candidates([token for token, _ in known], self._limit)
        needles = [f" {token} " for token, _ in known]
        idfs = [bm25.idf(self._index.documents, containing) for _, containing in known]
        return self._best(candidates, needles, idfs)

    def _best(self, candidates: Sequence[Candidate], needles: Sequence[str], idfs: Sequence[float]) -> Found:
        """The best candidates, batch by batch in the order of what they can score at most."""
        average = self._store.meta.average_length
        bounds = {each: bm25.bound(each.score, each.length, average) for each in candidates}
        order = sorted(candidates, key=lambda each: -bounds[each])
        batch = len(order) if self._exact else BATCH
        best, missing = list[Hit](), 0
        for at in range(0, len(order), batch):
            if len(best) == HITS and bounds[order[at]] < best[-1].score:
                break
            scored = self._scored(order[at : at + batch], needles, idfs)
            missing += len(order[at : at + batch]) - len(scored)
            best = sorted([*best, *scored], key=lambda hit: (-hit.score, hit.position))[:HITS]
        return Found(tuple(best), missing)

    def _scored(self, candidates: Sequence[Candidate], needles: Sequence[str], idfs: Sequence[float]) -> list[Hit]:
        average = self._store.meta.average_length
        documents = self._store.documents([each.position for each in candidates])
        hits = []
        for position, length, _ in candidates:
            if (document := documents.get(position)) is not None:
                counts = [document.count(needle) for needle in needles]
                hits.append(Hit(position, bm25.score(counts, idfs, bm25.norm(length, average))))
        return hits
