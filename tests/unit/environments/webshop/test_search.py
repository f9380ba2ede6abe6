"""How the shop's search analyses texts and scores documents."""

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.webshop import bm25
from environments.webshop.catalogue import analysis
from environments.webshop.catalogue.analysis import tokens, words
from environments.webshop.catalogue.index import Index
from environments.webshop.catalogue.make import DATABASE, INDEX, make
from environments.webshop.catalogue.nouns import extractor
from environments.webshop.catalogue.porter import stem
from environments.webshop.catalogue.published import files_in
from environments.webshop.catalogue.store import CatalogueStore
from environments.webshop.search import Search


@given(st.text())
def test_tokens_never_hold_white_space(text: str) -> None:
    assert all(token and token.split() == [token] for token in tokens(text))


@given(st.text(alphabet="aSy1_.,:;'()[]\"!?-é½", max_size=8))
def test_a_part_has_the_tokens_of_its_words(part: str) -> None:
    found = [analysis._POSSESSIVE.sub("", word).lower() for word in words(part)]
    assert tokens(part) == [stem(word) for word in found if word not in analysis.STOP_WORDS]


def test_no_long_word_is_kept_in_memory() -> None:
    before = len(analysis._parts)
    assert [tokens("y" * length) for length in range(100, 200)] == [
        ["y" * (length - 1) + "i"] for length in range(100, 200)
    ]
    assert len(analysis._parts) == before


def test_kept_parts_never_exceed_their_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "_KEPT", len(analysis._parts) + 2)
    for number in range(9):
        assert tokens(f"part{number} parts") == [f"part{number}", "part"]
        assert len(analysis._parts) <= analysis._KEPT


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 50), min_size=1),
    st.dictionaries(st.sampled_from("abcdef"), st.floats(0.01, 20), min_size=1),
    st.integers(1, 5000),
    st.floats(1, 500),
)
def test_no_document_scores_above_its_bound(
    counts: dict[str, int], weights: dict[str, float], length: int, average: float
) -> None:
    theirs = 1.2 * (0.25 + 0.75 * bm25.quantised(length) / average)
    tantivy = sum(2.2 * weights[word] * count / (count + theirs) for word, count in counts.items() if word in weights)
    ours = bm25.score(counts, weights, bm25.norm(length, average))
    assert ours <= tantivy * bm25.most(length, average)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalogue of 400 documents that have few words, so that many are alike."""
    folder = tmp_path_factory.mktemp("alike")
    vocabulary = ("red", "blue", "shoe", "shirt", "cotton", "wool")
    names = [" ".join(vocabulary[number // 6**place % 6] for place in range(1 + number % 9)) for number in range(400)]
    products = [{"asin": f"A{number}", "name": name} for number, name in enumerate(names)]
    goals = {"A0": [{"instruction": "a", "instruction_attributes": ["b"]}]}
    for name, content in (("items_shuffle", products), ("items_ins_v2", {}), ("items_human_ins", goals)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    make(files_in(folder), folder / "made", extractor("lexical"))
    return folder / "made"


@pytest.fixture
def store(folder: Path) -> Iterator[CatalogueStore]:
    store = CatalogueStore(folder / DATABASE)
    yield store
    store.close()


@pytest.mark.parametrize("query", ["red", "red shoe", "wool wool shirt", "cotton blue red wool shirt shoe"])
def test_the_bound_changes_no_result(folder: Path, store: CatalogueStore, query: str) -> None:
    index = Index(folder / INDEX)
    exact = Search(store, index, exact=True).find(query)
    assert len(exact.hits) == 50
    assert Search(store, index, candidates=400).find(query) == exact
    assert list(exact.hits) == sorted(exact.hits, key=lambda hit: (-hit.score, hit.position))


def test_a_lock_that_comes_while_the_temporary_links_are_removed_is_removed_too(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove, late = os.rmdir, [".tantivy-meta.lock"]

    def remove_late(*arguments: Any, **options: Any) -> None:
        while late:  # as a thread of tantivy's may do once
            next(tmp_path.glob("proctor-webshop-*")).joinpath(late.pop()).touch()
        remove(*arguments, **options)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(os, "rmdir", remove_late)
    assert Index(folder / INDEX).documents > 0
    assert (late, list(tmp_path.iterdir())) == ([], [])


def test_a_product_that_the_database_lacks_is_skipped_and_counted(folder: Path, store: CatalogueStore) -> None:
    class Lacking(CatalogueStore):
        def documents(self, positions: object) -> dict[int, str]:
            return {at: text for at, text in super().documents(positions).items() if at != gone}  # type: ignore[arg-type]

    index = Index(folder / INDEX)
    whole = Search(store, index, exact=True).find("wool")
    gone = whole.hits[0].position
    lacking = Lacking(folder / DATABASE)
    found = Search(lacking, index, exact=True).find("wool")
    lacking.close()
    assert found.missing == 1
    assert gone not in [hit.position for hit in found.hits]
