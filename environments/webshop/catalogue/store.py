"""The SQLite database of a catalogue: products, goals, and the tokens of its documents."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, LifoQueue
from typing import Any
from urllib.parse import quote

from pydantic import Field, ValidationError

from environments.webshop.catalogue.product import Goal, Product
from proctor.config.wording import first_problem
from proctor.types import Value

REMAKE = (
    "make the catalogue anew with `proctor webshop index` (remove this one first; Proctor's own comes back by itself)"
)
"""The fix in errors about a missing or broken catalogue."""
FORMAT = 1
"""Raise it with every change to the content of catalogues or the analysis of texts."""
_LISTS = ("bullets", "options", "attributes", "nouns")
_COLUMNS = tuple(Product.model_fields)
_SCHEMA = f"""
create table products (position integer primary key, tokens, {", ".join(_COLUMNS)});
create table goals (position integer primary key, goal text not null);
create table meta (meta text not null);
"""
_INSERT = f"insert into products values (?, ?{', ?' * len(_COLUMNS)})"
_SELECT = f"select position, {', '.join(_COLUMNS)} from products where"
_encode = json.JSONEncoder(ensure_ascii=False).encode
_decode = json.JSONDecoder().decode


class Meta(Value):
    """Metadata of a catalogue."""

    format: int
    products: int = Field(ge=1)
    goals: int = Field(ge=1)
    average_length: float = Field(gt=0)
    """Mean length of the documents in tokens."""
    invented: bool
    """Whether the files are generated."""
    price_seed: int
    nouns: str
    """Name and version of the noun extractor."""
    files: Mapping[str, str]
    """SHA-256 of the source files, by name."""
    problems: Mapping[str, int]
    """Number of records with a problem, by problem."""


def create(path: Path) -> sqlite3.Connection:
    """A new database. It has no journal, since the caller deletes it if filling it fails."""
    connection = sqlite3.connect(path)
    connection.executescript("pragma journal_mode = off; pragma synchronous = off;" + _SCHEMA)
    return connection


def add_product(connection: sqlite3.Connection, position: int, product: Product, tokens: Sequence[str]) -> None:
    """Stores a product at a position, with the tokens of its document."""
    fields = product.__dict__
    cells = [_encode(fields[name]) if name in _LISTS else fields[name] for name in _COLUMNS]
    connection.execute(_INSERT, (position, " ".join(["", *tokens, ""]), *cells))


def finish(connection: sqlite3.Connection, goals: Iterable[Goal], meta: Meta) -> None:
    """Stores the goals in their order and the metadata, and commits."""
    rows = ((position, goal.model_dump_json()) for position, goal in enumerate(goals))
    connection.executemany("insert into goals values (?, ?)", rows)
    connection.execute("insert into meta values (?)", (meta.model_dump_json(),))
    connection.commit()


def find(connection: sqlite3.Connection, column: str, value: object) -> tuple[int, Product] | None:
    """Position and product of the row with a value in a column (`asin` or `position`); None if there is none."""
    row = connection.execute(f"{_SELECT} {column} = ?", (value,)).fetchone()
    return None if row is None else (row[0], _product(row))


def _product(row: Sequence[Any]) -> Product:
    """The product of a row of `_SELECT`."""
    cells = zip(_COLUMNS, row[1:], strict=True)
    return Product.model_validate({name: _decode(cell) if name in _LISTS else cell for name, cell in cells})


class CatalogueStore:
    """A database, open for reading by any thread; each query has a connection for itself."""

    def __init__(self, path: Path) -> None:
        """Raises ValueError if the file is not a catalogue, or has another format."""
        self._path = path
        self._idle: LifoQueue[sqlite3.Connection] = LifoQueue()
        self._closed = False
        try:
            self.meta = self._read_meta()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Closes all connections; one in use is closed after its query."""
        self._closed = True
        with suppress(Empty):
            while True:
                self._idle.get_nowait().close()

    def product(self, position: int) -> Product:
        """The product at a position. Raises LookupError if there is none."""
        return self.products([position])[0]

    def products(self, positions: Sequence[int]) -> list[Product]:
        """The products at positions, in their order. Raises LookupError if there is none at one of them."""
        marks = ", ".join("?" * len(positions))
        with self._connection() as connection:
            rows = {row[0]: row for row in connection.execute(f"{_SELECT} position in ({marks})", positions)}
        for position in positions:
            if position not in rows:
                raise LookupError(f"no product {position} in {self._path}")
        return [_product(rows[position]) for position in positions]

    def position(self, asin: str) -> int:
        """The position of the product with an asin. Raises LookupError if there is none."""
        with self._connection() as connection:
            row = connection.execute("select position from products where asin = ?", (asin,)).fetchone()
        if row is None:
            raise LookupError(f"no product {asin!r} in {self._path}")
        return int(row[0])

    def goal(self, position: int) -> Goal:
        """The goal with an index. Raises ValueError if there is none."""
        with self._connection() as connection:
            row = connection.execute("select goal from goals where position = ?", (position,)).fetchone()
        if row is None:
            raise ValueError(f"no goal {position}; the catalogue has {self.meta.goals}, from 0")
        return Goal.model_validate_json(row[0])

    def goal_products(self) -> tuple[str, ...]:
        """The asin of the product of each goal, by the goals' indices."""
        with self._connection() as connection:
            rows = connection.execute("select json_extract(goal, '$.asin') from goals order by position")
            return tuple(str(asin) for (asin,) in rows)

    def goals(self, positions: range) -> tuple[Goal, ...]:
        """The goals with these indices, as far as there are any."""
        with self._connection() as connection:
            between = (positions.start, positions.stop)
            rows = connection.execute(
                "select goal from goals where position >= ? and position < ? order by position", between
            )
            return tuple(Goal.model_validate_json(goal) for (goal,) in rows)

    def documents(self, positions: Sequence[int]) -> dict[int, str]:
        """Texts of tokens by document position, with a blank before and after each token; unknown ones are left out."""
        chosen = ", ".join(map(str, positions))
        with self._connection() as connection:
            return dict(connection.execute(f"select position, tokens from products where position in ({chosen})"))

    def _read_meta(self) -> Meta:
        try:
            with self._connection() as connection:
                written = json.loads(connection.execute("select meta from meta").fetchone()[0])
            if written["format"] == FORMAT:
                return Meta.model_validate(written)
        except ValidationError as error:
            raise ValueError(f"{self._path}: meta.{first_problem(error)}; {REMAKE}") from error
        except (sqlite3.Error, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"{self._path}: no catalogue: {error}; {REMAKE}") from error
        raise ValueError(f"{self._path}: format {written['format']}, this version reads {FORMAT}; {REMAKE}")

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = self._idle.get_nowait()
        except Empty:
            address = f"file:{quote(str(self._path))}?mode=ro&immutable=1"
            connection = sqlite3.connect(address, uri=True, check_same_thread=False)
        try:
            yield connection
        finally:
            self._idle.put(connection)
            if self._closed:
                self.close()
