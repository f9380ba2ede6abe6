"""Makes a catalogue from the published files: a folder with a database (`store`) and a search index (`index`)."""

import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from environments.webshop.catalogue import goals, index, store
from environments.webshop.catalogue.analysis import tokens
from environments.webshop.catalogue.nouns import NounExtractor
from environments.webshop.catalogue.published import Files, members, records
from environments.webshop.catalogue.records import Importer
from environments.webshop.catalogue.store import FORMAT, Meta

DATABASE = "catalogue.sqlite"
INDEX = "index"


def make(files: Files, folder: Path, nouns: NounExtractor, seed: int = 0) -> Meta:
    """Makes a catalogue from the published files; an interrupted call leaves nothing.

    `seed` fixes the price limits and the prices of price ranges. Raises ValueError with file, entry and fix, and
    OSError if the folder can't be written.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".part", dir=folder.parent))
    try:
        meta = _fill(files, part, nouns, seed)
        part.chmod(0o755)
        os.rename(part, folder)
    except sqlite3.Error as error:
        raise OSError(f"{folder}: can't be written: {error}; make room, or give another folder") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return meta


def _fill(files: Files, folder: Path, nouns: NounExtractor, seed: int) -> Meta:
    with closing(store.create(folder / DATABASE)) as connection:
        _read_attributes(connection, files.attributes)
        importer, lengths = Importer(nouns, seed), list[int]()
        index.write(folder / INDEX, _import(connection, files.products, importer, lengths))
        connection.executescript("create unique index asins on products (asin); drop table attributes;")
        found = goals.goals_of(connection, files.goals, seed, importer.problems)
        if not lengths or not found:
            raise ValueError(f"{files.goals if lengths else files.products}: nothing usable in it; check the files")
        meta = Meta(
            format=FORMAT,
            products=len(lengths),
            goals=len(found),
            average_length=max(1, sum(lengths)) / len(lengths),
            invented=files.invented,
            price_seed=seed,
            nouns=f"{nouns.name} {nouns.version}",
            files={path.name: _sha256(path) for path in files.paths()},
            problems={problem: count for problem, count in sorted(importer.problems.items()) if count},
        )
        store.finish(connection, found, meta)
    return meta


def _import(
    connection: sqlite3.Connection, products: Path, importer: Importer, lengths: list[int]
) -> Iterator[list[str]]:
    """Adds the products to the database and their lengths to `lengths`. Yields the tokens of each."""
    for record in records(products):
        attributes = _attributes(connection, record)
        product = importer.product(record, attributes, len(lengths))
        if product is None:
            continue
        found = tokens(product.text())
        store.add_product(connection, len(lengths), product, found)
        lengths.append(len(found))
        yield found


def _read_attributes(connection: sqlite3.Connection, path: Path) -> None:
    """Reads the attributes into a temporary table, since they are too many for memory."""
    connection.execute("create table attributes (asin text primary key, entry text) without rowid")
    rows = ((asin.encode(errors="replace").decode(), json.dumps(entry)) for asin, entry in members(path))
    connection.executemany("insert or replace into attributes values (?, ?)", rows)


def _attributes(connection: sqlite3.Connection, record: Mapping[str, object]) -> Mapping[str, object]:
    asin = str(record.get("asin")).encode(errors="replace").decode()
    row = connection.execute("select entry from attributes where asin = ?", (asin,)).fetchone()
    entry = json.loads(row[0]) if row else {}
    return entry if isinstance(entry, Mapping) else {}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
