"""Pure: tables as CSV and JSON, with unrounded figures."""

import csv
import io
import json
from collections.abc import Sequence

from pydantic import JsonValue

from proctor.tables.table import Entry, Figure, Part, ResultTable

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def csv_text(tables: Sequence[ResultTable]) -> str:
    """The tables as CSV, each with its header, an empty line between two.

    A figure has a column for itself and one for each part that its column may have. Where there are several tables, the
    first column has the table's title; where rows have notes, they are in the last one. Notes of a table are left out.
    """
    return "\n".join(_csv(table, titled=len(tables) > 1) for table in tables)


def json_text(tables: Sequence[ResultTable]) -> str:
    """The tables as one JSON value: `{"tables": [{"title", "columns", "rows", "notes"}]}`, rows as objects."""
    return json.dumps({"tables": [_json(table) for table in tables]}, ensure_ascii=False, allow_nan=False)


def spreadsheet_text(words: str) -> str:
    """A text for a CSV cell: what a spreadsheet would run as a formula is prefixed with `'`."""
    return "'" + words if words.startswith(FORMULA_STARTS) else words


def _csv(table: ResultTable, *, titled: bool) -> str:
    head = ["table"] if titled else []
    head += [name for column in table.columns for name in (column.key, *(f"{column.key} {p}" for p in column.parts))]
    noted = any(row.notes for row in table.rows)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([spreadsheet_text(name) for name in (*head, *(["notes"] if noted else []))])
    for row in table.rows:
        cells: list[JsonValue] = [spreadsheet_text(table.title)] if titled else []
        for entry, column in zip(row.cells, table.columns, strict=True):
            cells += _cells(entry, column.parts)
        notes = " ".join(row.notes)
        writer.writerow([*cells, *([spreadsheet_text(notes)] if noted else [])])
    return out.getvalue()


def _cells(entry: Entry, parts: Sequence[Part]) -> list[JsonValue]:
    if isinstance(entry, Figure):
        value = spreadsheet_text(entry.instead) if entry.value is None else entry.value
        return [value, *(getattr(entry, part) for part in parts)]
    return [spreadsheet_text(entry) if isinstance(entry, str) else entry, *([None] * len(parts))]


def _json(table: ResultTable) -> JsonValue:
    columns = table.columns
    rows: list[JsonValue] = [
        {column.key: _json_entry(entry, column.parts) for entry, column in zip(row.cells, columns, strict=True)}
        | {"notes": list(row.notes)}
        for row in table.rows
    ]
    return {"title": table.title, "columns": [column.key for column in columns], "rows": rows, "notes": [*table.notes]}


def _json_entry(entry: Entry, parts: Sequence[Part]) -> JsonValue:
    if not isinstance(entry, Figure):
        return entry
    if not parts:
        return entry.value
    instead: dict[str, JsonValue] = {"instead": entry.instead} if entry.instead else {}
    return {"value": entry.value, **{part: getattr(entry, part) for part in parts}, **instead}
