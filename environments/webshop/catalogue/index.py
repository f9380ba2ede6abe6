"""The candidates for a query, from a tantivy index on disk.

Its BM25 has other parameters than Lucene's here, so it only says which documents are worth scoring (`search`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, cast

import tantivy

from environments.webshop.catalogue.store import REMAKE

WRITER_BYTES = 128 << 20


class Candidate(NamedTuple):
    """A document that may be among the best."""

    position: int
    length: int
    """In tokens."""
    score: float
    """By tantivy's BM25."""


def write(folder: Path, documents: Iterable[Sequence[str]]) -> None:
    """Make the index of documents, each its tokens, by their positions from 0."""
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
    """An index, open for reading; any thread may ask it. Each question raises ValueError where files are damaged."""

    def __init__(self, folder: Path) -> None:
        """Raises ValueError where there is none, or it is damaged.

        It is opened through links in a folder of its own, as tantivy writes a lock, and `folder` may be read-only.
        """
        self._folder = folder
        with TemporaryDirectory(prefix="proctor-webshop-") as links, self._failures_told():
            for file in folder.glob("*"):
                (Path(links) / file.name).symlink_to(file.resolve())
            self._index = tantivy.Index.open(links)
            self._index.config_reader(reload_policy="manual")
            self._schema = self._index.schema
            self._searcher = self._index.searcher()

    @property
    def documents(self) -> int:
        """How many there are."""
        return int(self._searcher.num_docs)

    def containing(self, token: str) -> int:
        """How many documents contain a token."""
        with self._failures_told():
            return int(self._searcher.doc_freq("tokens", token))

    def candidates(self, times: Mapping[str, int], limit: int) -> list[Candidate]:
        """The best documents that contain any token of a query, by how often it has each; the best first."""
        with self._failures_told():
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
    def _failures_told(self) -> Iterator[None]:
        """Over damaged files tantivy also panics, and a panic is no Exception: nobody would take it for a fault."""
        try:
            yield
        except BaseException as error:
            if not isinstance(error, ValueError) and type(error).__name__ != "PanicException":
                raise
            raise ValueError(f"{self._folder}: no search index, or a damaged one: {error}; {REMAKE}") from error
