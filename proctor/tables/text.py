"""Pure: tables as text of a given width. A table that is too wide is split into blocks; nothing is cut off."""

import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from rich.cells import cell_len

from proctor.observability.redaction import plain
from proctor.tables.table import ResultTable, entry_lines

NARROWEST_NAME = 12
"""Characters that a folded column of names has at least."""

Cell = Sequence[str]
"""The lines of a cell."""


class _Layout(NamedTuple):
    """The cells of a table as lines, and the width of each column."""

    heads: list[Cell]
    rows: list[list[Cell]]
    widths: list[int]
    gap: int = 2
    """Spaces between two columns."""

    def total(self, places: Sequence[int]) -> int:
        """The width of these columns with the gaps between them."""
        return sum(self.widths[place] for place in places) + self.gap * (len(places) - 1)


def text(table: ResultTable, width: int) -> str:
    """The table with title and notes."""
    return "\n".join(line for line, _ in styled_lines(table, width))


def styled_lines(table: ResultTable, width: int) -> Iterator[tuple[str, str]]:
    """The lines of the table with title and notes, each with its style on a terminal."""
    if table.title:
        yield plain(table.title), "bold"
    for line in _body(table, width):
        yield line, ""
    for note in table.all_notes():
        yield f"  note: {plain(note)}", "dim"


def _body(table: ResultTable, width: int) -> list[str]:
    """The table in the first layout that fits: one line per cell, then several, then closer, then in blocks."""
    names = next((place for place, column in enumerate(table.columns) if not column.left), len(table.columns))
    everything = range(len(table.columns))
    stacked = _layout(table, stacked=True)
    for layout in (_layout(table, stacked=False), stacked, stacked._replace(gap=1)):
        if _widened(table, layout, everything).total(everything) <= width:
            return _block(table, layout, everything)
    layout = _folded(stacked, names, width)
    lines: list[str] = []
    for block in _blocks(table, layout, names, width):
        lines += ["", *_block(table, layout, block)] if lines else _block(table, layout, block)
    return lines


def _layout(table: ResultTable, *, stacked: bool) -> _Layout:
    def cell(lines: Sequence[str]) -> Cell:
        shown = [plain(line) for line in lines]
        return shown if stacked else [" ".join(shown)]

    rows = [[cell(entry_lines(entry)) for entry in row.cells] for row in table.rows]
    heads: list[Cell] = [[plain(column.title)] for column in table.columns]
    return _Layout(heads, rows, [_widest([head, *column]) for head, *column in zip(heads, *rows, strict=True)])


def _widest(cells: Sequence[Cell]) -> int:
    return max(cell_len(line) for cell in cells for line in cell)


def _folded(layout: _Layout, names: int, width: int) -> _Layout:
    """The layout with long names folded, so that they take at most half of the width, and no cell more than it."""
    longest_name = max(NARROWEST_NAME, width // (2 * max(names, 1)) - layout.gap)
    most = [longest_name if place < names else width for place in range(len(layout.heads))]

    def cells(row: Sequence[Cell]) -> list[Cell]:
        return [
            [part for line in cell for part in textwrap.wrap(line, limit) or [""]]
            for cell, limit in zip(row, most, strict=True)
        ]

    heads, rows = cells(layout.heads), [cells(row) for row in layout.rows]
    return _Layout(heads, rows, [_widest([head, *column]) for head, *column in zip(heads, *rows, strict=True)])


def _blocks(table: ResultTable, layout: _Layout, names: int, width: int) -> list[list[int]]:
    """The columns of each block: the names, and as many of the others as fit, at least one."""
    blocks: list[list[int]] = []
    for place in range(names, len(layout.widths)):
        longer = [*(blocks[-1] if blocks else []), place]
        if not blocks or _widened(table, layout, longer).total(longer) > width:
            blocks.append(list(range(names)))
        blocks[-1].append(place)
    return blocks or [list(range(names))]


def _block(table: ResultTable, layout: _Layout, places: Sequence[int]) -> list[str]:
    layout = _widened(table, layout, places)
    groups = _groups(table, layout, places)
    rule = "─" * layout.total(places)

    def line(row: Sequence[Cell], number: int) -> str:
        shown = [(place, row[place][number] if number < len(row[place]) else "") for place in places]
        cells = [_aligned(part, layout.widths[place], left=table.columns[place].left) for place, part in shown]
        return (" " * layout.gap).join(cells).rstrip()

    def lines(row: Sequence[Cell]) -> list[str]:
        return [line(row, number) for number in range(max(len(row[place]) for place in places))]

    out = [groups] if groups else []
    out += [*lines(layout.heads), rule]
    for row, cells in zip(table.rows, layout.rows, strict=True):
        out += [*([rule] if row.rule else []), *lines(cells)]
    return out


def _spans(table: ResultTable, places: Sequence[int]) -> list[tuple[str, list[int]]]:
    """Each group's title, empty for none, and those of the columns that it is over."""
    return [(group, list(span)) for group, span in groupby(places, lambda place: table.columns[place].group)]


def _widened(table: ResultTable, layout: _Layout, places: Sequence[int]) -> _Layout:
    """The layout with the last column of each group as wide as the group's title needs."""
    widths = list(layout.widths)
    for group, span in _spans(table, places):
        widths[span[-1]] += max(0, cell_len(group) - layout.total(span))
    return layout._replace(widths=widths)


def _groups(table: ResultTable, layout: _Layout, places: Sequence[int]) -> str:
    """The line of group titles, empty without groups."""
    if not any(table.columns[place].group for place in places):
        return ""
    titles = []
    for group, span in _spans(table, places):
        total = layout.total(span)
        framed = group and cell_len(group) + 2 <= total
        titles.append(f" {group} ".center(total, "─") if framed else group.center(total))
    return (" " * layout.gap).join(titles).rstrip()


def _aligned(line: str, width: int, *, left: bool) -> str:
    space = " " * (width - cell_len(line))
    return line + space if left else space + line
