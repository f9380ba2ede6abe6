"""The option `--format` of every command that prints tables, and how it prints them."""

import shutil
import sys
from collections.abc import Sequence
from typing import Literal, get_args

import click

from proctor.tables.data import csv_text, json_text
from proctor.tables.latex import latex_tables
from proctor.tables.markdown import markdown
from proctor.tables.table import ResultTable
from proctor.tables.text import text

TableFormat = Literal["text", "markdown", "latex", "csv", "json"]
FORMATS: tuple[TableFormat, ...] = get_args(TableFormat)
USUAL_WIDTH = 120
"""Columns of text where standard output is no terminal."""

format_option = click.option(
    "--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="Format of the tables."
)


def rendered(
    tables: Sequence[ResultTable], form: TableFormat, width: int = USUAL_WIDTH, *, styled: bool = False
) -> str:
    """The tables in a format, without a line break at the end; only text has a width, and styles for a terminal."""
    match form:
        case "text":
            return "\n\n".join(text(table, width, styled=styled) for table in tables)
        case "markdown":
            return "\n\n".join(map(markdown, tables))
        case "latex":
            return latex_tables(tables)
        case "csv":
            return csv_text(tables).removesuffix("\n")
        case "json":
            return json_text(tables)


def print_tables(tables: Sequence[ResultTable], form: TableFormat) -> None:
    """Print tables to standard output; text is as wide as the terminal."""
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else USUAL_WIDTH
    click.echo(rendered(tables, form, width, styled=terminal))
