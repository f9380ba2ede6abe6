"""A shop: a catalogue open for reading, with its search."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from environments.webshop.catalogue.index import Index
from environments.webshop.catalogue.make import DATABASE, INDEX
from environments.webshop.catalogue.store import REMAKE, CatalogueStore
from environments.webshop.search import Search


class Shop(NamedTuple):
    """The database of a catalogue, and its search."""

    store: CatalogueStore
    search: Search


@contextmanager
def opened(folder: Path, candidates: int | None = None) -> Iterator[Shop]:
    """Opens the shop of a catalogue. Raises ValueError with the fix if the catalogue is missing or broken."""
    store = CatalogueStore(folder / DATABASE)
    try:
        index = Index(folder / INDEX)
        if index.documents != store.meta.products:
            raise ValueError(
                f"{folder}: the index has {index.documents} products, the database {store.meta.products}; {REMAKE}"
            )
        yield Shop(store, Search(store, index, candidates))
    finally:
        store.close()
