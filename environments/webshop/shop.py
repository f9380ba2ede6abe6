"""A shop: a catalogue open for reading, with its search."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from environments.webshop.catalogue import DATABASE, INDEX
from environments.webshop.index import Index
from environments.webshop.search import Search
from environments.webshop.store import Store


class Shop(NamedTuple):
    """The goods, and how they are found."""

    store: Store
    search: Search


@contextmanager
def opened(folder: Path, candidates: int | None = None) -> Iterator[Shop]:
    """The shop of a catalogue. Raises ValueError, naming the command that makes one, where it is missing or broken."""
    fix = "make the catalogue anew with `proctor webshop index`"
    store = Store(folder / DATABASE)
    try:
        try:
            index = Index(folder / INDEX)
        except ValueError as error:
            raise ValueError(f"{folder / INDEX}: no search index: {error}; {fix}") from error
        if index.documents != store.meta.products:
            raise ValueError(
                f"{folder}: the index has {index.documents} products, the database {store.meta.products}; {fix}"
            )
        yield Shop(store, Search(store, index, candidates))
    finally:
        store.close()
