"""The formats of tables, with the option `--format` of every command that prints them.

In CSV and JSON figures are not rounded.
"""

import csv
import io
import json
import re
import shutil
import sys
from collections.abc import Sequence
from typing import Literal, get_args

import click
from pydantic import JsonValue

from proctor.observability.output import console
from proctor.observability.redaction import plain
from proctor.tables.table import Entry, Figure, Part, ResultTable, entry_lines

TableFormat = Literal["text", "markdown", "latex", "csv", "json"]
FORMATS: tuple[TableFormat, ...] = get_args(TableFormat)
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_MARKDOWN = re.compile(r"[\\`*_{}\[\]<>#|~$&]")
USUAL_WIDTH = 120
"""Columns of text where standard output is no terminal."""

format_option = click.option(
    "--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="Format of the tables."
)


def rendered(tables: Sequence[ResultTable], form: TableFormat, width: int = USUAL_WIDTH) -> str:
    """The tables in a format, without a line break at the end; only text has a width."""
    match form:
        case "text":
            from proctor.tables.text import text  # with the library 10 ms of CPU

            return "\n\n".join(text(table, width) for table in tables)
        case "markdown":
            return "\n\n".join(map(markdown, tables))
        case "latex":
            from proctor.tables.latex import latex_tables  # only where it is asked for

            return latex_tables(tables)
        case "csv":
            return csv_text(tables).removesuffix("\n")
        case "json":
            return json_text(tables)


def print_tables(tables: Sequence[ResultTable], form: TableFormat) -> None:
    """Print tables to standard output; text is as wide as the terminal, or as COLUMNS says."""
    width = shutil.get_terminal_size((USUAL_WIDTH, 24)).columns
    if form != "text" or not sys.stdout.isatty():
        click.echo(rendered(tables, form, width))
        return
    from rich.text import Text

    from proctor.tables.text import styled_lines

    terminal = console(highlight=False)
    for place, table in enumerate(tables):
        lines = [Text(line, style) for line, style in styled_lines(table, width)]
        terminal.print(Text("\n").join([Text(), *lines] if place else lines), soft_wrap=True)


def markdown(table: ResultTable) -> str:
    """The table as Markdown, with its title above and its notes below."""
    bars = ["---" if column.left else "---:" for column in table.columns]
    rows = [[_markdown(" ".join(entry_lines(entry))) for entry in row.cells] for row in table.rows]
    heads = [_markdown(heading) for heading in table.headings()]
    lines = [f"**{_markdown(table.title)}**", ""] if table.title else []
    lines += [f"| {' | '.join(cells)} |" for cells in (heads, bars, *rows)]
    notes = [f"- {_markdown(note)}" for note in table.all_notes()]
    return "\n".join([*lines, *([""] if notes else []), *notes])


def _markdown(words: str) -> str:
    return _MARKDOWN.sub(lambda found: "\\" + found[0], plain(words))


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
