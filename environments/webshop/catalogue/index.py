"""Finds the candidates for a query in a tantivy index on disk.

Tantivy's BM25 has other parameters than ours, so its scores only select the documents that `search` scores.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, cast

import tantivy

from environments.webshop.catalogue.store import REMAKE

WRITER_BYTES = 128 << 20


class Candidate(NamedTuple):
    """A document that may be among the best hits."""

    position: int
    length: int
    """Length in tokens."""
    score: float
    """Score by tantivy's BM25."""


def write(folder: Path, documents: Iterable[Sequence[str]]) -> None:
    """Makes the index of documents, given as their tokens; positions count from 0."""
    folder.mkdir()
    schema = (
        tantivy.SchemaBuilder()
        .add_text_field("tokens", tokenizer_name="whitespace", index_option="freq")
        .add_unsigned_field("position", fast=True)
        .add_unsigned_field("length", fast=True)
        .build()
    )
    writer = tantivy.Index(schema, str(folder)).writer(WRITER_BYTES, num_threads=1)
    try:
        for position, tokens in enumerate(documents):
            document = tantivy.Document()
            document.add_text("tokens", " ".join(tokens))
            document.add_unsigned("position", position)
            document.add_unsigned("length", len(tokens))
            writer.add_document(document)
        writer.commit()
    finally:
        writer.wait_merging_threads()
    for file in folder.iterdir():
        if file.suffix == ".lock":
            file.unlink()
        else:
            file.chmod(0o644)


class Index:
    """An index, open for reading by any thread. Methods raise ValueError if its files are damaged."""

    def __init__(self, folder: Path) -> None:
        """Raises ValueError if there is no index, or a damaged one."""
        self._folder = folder
        with _links(folder) as links, self._damage_as_value_error():
            self._index = tantivy.Index.open(links)
            self._index.config_reader(reload_policy="manual")
            self._schema = self._index.schema
            self._searcher = self._index.searcher()

    @property
    def documents(self) -> int:
        """Number of documents."""
        return int(self._searcher.num_docs)

    def containing(self, token: str) -> int:
        """Number of documents that contain a token."""
        with self._damage_as_value_error():
            return int(self._searcher.doc_freq("tokens", token))

    def candidates(self, times: Mapping[str, int], limit: int) -> list[Candidate]:
        """The best documents, best first, for a query given as its tokens with their counts."""
        with self._damage_as_value_error():
            hits = self._searcher.search(self._query(times), limit=limit, count=False).hits
            addresses = [address for _, address in hits]
            positions = cast(list[int], self._searcher.fast_field_values("position", addresses))
            lengths = cast(list[int], self._searcher.fast_field_values("length", addresses))
        return list(map(Candidate, positions, lengths, (score for score, _ in hits)))

    def _query(self, times: Mapping[str, int]) -> tantivy.Query:
        parts = []
        for token, many in times.items():
            term = tantivy.Query.term_query(self._schema, "tokens", token, index_option="freq")
            parts.append((tantivy.Occur.Should, tantivy.Query.boost_query(term, float(many))))
        return tantivy.Query.boolean_query(parts)

    @contextmanager
    def _damage_as_value_error(self) -> Iterator[None]:
        """Raises ValueError for damaged files. For some of them tantivy panics, and a panic is not an Exception."""
        try:
            yield
        except BaseException as error:
            if not isinstance(error, ValueError) and type(error).__name__ != "PanicException":
                raise
            raise ValueError(f"{self._folder}: no search index, or a damaged one: {error}; {REMAKE}") from error


@contextmanager
def _links(folder: Path) -> Iterator[str]:
    """A temporary folder with links to the files of another: tantivy writes a lock, and `folder` may be read-only."""
    with TemporaryDirectory(prefix="proctor-webshop-", ignore_cleanup_errors=True) as links:
        for file in folder.glob("*"):
            (Path(links) / file.name).symlink_to(file.resolve())
        yield links
    shutil.rmtree(links, ignore_errors=True)  # a thread of tantivy's may have written the lock again meanwhile, once
