"""Pure: what a report consists of: sections of tables, plots and paragraphs."""

from typing import Literal, NamedTuple

from eval_client.report.plots.svg import Plot
from proctor.tables.table import Figure, ResultTable, TableRow, entry_lines


class Cell(NamedTuple):
    """A cell as it is shown."""

    value: str
    beside: str
    """The figure's other parts, smaller: its error, its coverage, its bounds."""
    left: bool


class TableBlock(NamedTuple):
    """A table; the notes of its rows are folded."""

    table: ResultTable
    more: ResultTable | None = None
    """A table that is folded below."""
    kind: Literal["table"] = "table"

    @property
    def folded(self) -> "TableBlock | None":
        """What is folded below."""
        return None if self.more is None else TableBlock(self.more)

    @property
    def row_notes(self) -> list[str]:
        """The notes of the rows, each once."""
        return list(dict.fromkeys(note for row in self.table.rows for note in row.notes))

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Titles over columns, and how many columns they are over; empty where there are none."""
        spans: list[tuple[str, int]] = []
        for column in self.table.columns:
            if spans and spans[-1][0] == column.group:
                spans[-1] = (column.group, spans[-1][1] + 1)
            else:
                spans.append((column.group, 1))
        return spans if any(group for group, _ in spans) else []

    def cells(self, row: TableRow) -> list[Cell]:
        """The cells of a row of the table."""
        made = []
        for entry, column in zip(row.cells, self.table.columns, strict=True):
            value, *others = entry_lines(entry)
            words = isinstance(entry, Figure) and entry.value is None and bool(entry.instead)
            made.append(Cell(value, " ".join(others), column.left and not words))
        return made


class PlotBlock(NamedTuple):
    """A plot, with its table folded below."""

    plot: Plot
    noted: bool = True
    """Whether it is said how to read it."""
    kind: Literal["plot"] = "plot"

    @property
    def figures(self) -> TableBlock:
        """The same figures."""
        return TableBlock(self.plot.table._replace(notes=()))


class TextBlock(NamedTuple):
    """Paragraphs."""

    paragraphs: tuple[str, ...]
    kind: Literal["text"] = "text"


class HeadingBlock(NamedTuple):
    """A heading within a section."""

    title: str
    kind: Literal["heading"] = "heading"


Block = TableBlock | PlotBlock | TextBlock | HeadingBlock


class Section(NamedTuple):
    """A part of the report that its contents list names."""

    id: str
    title: str
    blocks: tuple[Block, ...]
