"""What a store may hold: values of their columns' types in plain tables. Anyone may have written a file of SQLite's."""

import json
import math
import sqlite3
from collections.abc import Callable
from typing import Any, TypeVar

import sqlalchemy as sa
from pydantic import JsonValue, ValidationError
from pydantic_core import from_json
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

MOST_BYTES = 64 << 20
"""Of one value: what an answer of a task server may have."""
LONGEST_NAME = 16_384
"""Of texts in columns that declare a length, in characters: SQLite held no earlier version to what they declare."""
RESTORE = "restore it from a copy, or start a new run"
_KINDS = {bytes: "bytes", str: "a text", int: "an integer", float: "a number with a fraction, or an infinite one"}
Parsed = TypeVar("Parsed")


class StoreError(ValueError):
    """The store can't be used as asked; the message names the fix."""


class Unreadable(StoreError):
    """A value is none that Proctor writes. `where` is its TABLE.COLUMN, or its column; the value is not told."""

    def __init__(self, where: sa.Column[Any] | str, why: str) -> None:
        name = where if isinstance(where, str) else f"{where.table.name}.{where.name}"
        super().__init__(f"the store is damaged: {name} holds a value that can't be read ({why}); {RESTORE}")


def is_damage(error: sa.exc.SQLAlchemyError) -> bool:
    """Whether a SQLite file is damaged: tables are missing, pages are corrupt, or it is not a database."""
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def parsed(column: sa.Column[Any], parse: Callable[[Any], Parsed], value: object) -> Parsed:
    """What a stored value means. Raises Unreadable where it means nothing."""
    try:
        return parse(value)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        place = ascii(".".join(map(str, first["loc"])))[1:-1]
        raise Unreadable(column, f"{error.title}: {place[:80]}{': ' if place else ''}{first['msg']}") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Unreadable(column, f"no JSON as Proctor writes it: {type(error).__name__}") from error


def json_of(text: str) -> Any:
    """JSON of some 200 levels at most, without NaN and infinities. Raises ValueError, RecursionError."""
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        if "hex escape" not in str(error):
            raise
        return json.loads(text)  # a half of a character, which earlier versions wrote


def json_object(text: str) -> dict[str, JsonValue]:
    """A JSON object, as `json_of` reads it. Raises ValueError, RecursionError."""
    found = json_of(text)
    if not isinstance(found, dict):
        raise ValueError("no object")
    return found


def is_name(run: str) -> bool:
    """Whether a run's id names a folder or file beside others: no path, and UTF-8."""
    return run not in ("", ".", "..") and not any(c in "/\0" or "\ud800" <= c <= "\udfff" for c in run)


def check_name(run: str) -> None:
    """Raises StoreError where a run's id is no name."""
    if not is_name(run):
        raise StoreError(f"run {ascii(run)[:80]}: proctor_run.id is no name of a folder in UTF-8; rename it")


class Checked(sa.TypeDecorator[Any]):
    """The type of a column whose values, where they come from a file of SQLite's, are checked as they are read."""

    impl: Any = sa.String
    cache_ok = True

    def __init__(self, where: str, of: sa.types.TypeEngine[Any], required: bool) -> None:
        self.where, self.of, self.required = where, of, required
        self.impl = of

    def coerce_compared_value(self, op: Any, value: Any) -> Any:
        """Other values take the type that the column has without checks."""
        return self.of.coerce_compared_value(op, value)

    def result_processor(self, dialect: sa.Dialect, coltype: Any) -> Callable[[Any], Any] | None:
        """The check, and then what the column's own type does."""
        processor = self.of.dialect_impl(dialect).result_processor(dialect, coltype)
        if dialect.name != "sqlite":
            return processor
        problem = _problem(self.of)

        def checked(value: Any) -> Any:
            if value is None:
                if self.required:
                    raise Unreadable(self.where, "NULL where a value belongs")
                return None
            if found := problem(value):
                raise Unreadable(self.where, found)
            return value if processor is None else processor(value)

        return checked


def check_columns(metadata: sa.MetaData) -> None:
    for table in metadata.tables.values():
        for column in table.columns:
            column.type = Checked(f"{table.name}.{column.name}", column.type, not column.nullable)


def _problem(of: sa.types.TypeEngine[Any]) -> Callable[[Any], str | None]:
    """What is wrong with a value of a column; None where nothing is."""
    if isinstance(of, sa.Boolean):
        return lambda value: None if value.__class__ is int and value in (0, 1) else _other(value, "0 or 1")
    if isinstance(of, sa.Integer):
        return lambda value: None if value.__class__ is int else _other(value, "an integer")
    if isinstance(of, sa.Double):
        return lambda value: (
            None if value.__class__ in (int, float) and math.isfinite(value) else _other(value, "a finite number")
        )
    most = max(LONGEST_NAME, getattr(of, "length", None) or MOST_BYTES)

    def problem(value: Any) -> str | None:
        if value.__class__ is not str:
            return _other(value, "a text")
        return f"{len(value):,} characters, of at most {most:,}" if len(value) > most else None

    return problem


def _other(value: object, wanted: str) -> str:
    return f"{_KINDS[type(value)]} where {wanted} belongs"


class Number(FunctionElement[float]):
    """A column of numbers as floating point, for sums and means: in SQLite they are infinite where one is no number.

    Its own would take a text for 0, and refuse a sum of integers that leaves 64 bits.
    """

    inherit_cache = True

    def __init__(self, column: sa.ColumnElement[Any]) -> None:
        super().__init__(column)
        self.type = Checked(str(column), sa.Double(), False)


@compiles(Number)
def _as_float(number: Number, compiler: Any, **options: Any) -> str:
    return f"({compiler.process(number.clauses, **options)} * 1.0)"


@compiles(Number, "sqlite")
def _infinite_unless_number(number: Number, compiler: Any, **options: Any) -> str:
    column = compiler.process(number.clauses, **options)
    return f"(CASE WHEN {column} >= '' THEN 9e999 ELSE {column} * 1.0 END)"  # texts and blobs come after all numbers
