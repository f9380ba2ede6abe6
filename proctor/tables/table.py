"""Pure: a table of results as a value. A format decides only how it is written."""

import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

MISSING = "-"
"""What is shown where there is no value."""
DAGGER = "†"
"""The mark of a figure that must not be set beside published ones."""

MONEY = "money"
"""The `form` of a figure that is money."""
DIGITS = 4
"""Significant digits of money: 0.005 is not 0.01."""

Part = Literal["standard_error", "interval_low", "interval_high", "low", "high", "coverage", "samples", "mark"]
"""What may belong to a figure, beside its value."""


class Figure(NamedTuple):
    """A number in a table, with what belongs to it."""

    value: float | None
    """None where nothing is scored."""
    form: str = ".3f"
    """The format specification of the value, of its error and of its bounds; or MONEY."""
    standard_error: float | None = None
    interval: tuple[float, float] | None = None
    """Of level 0.95; shown where there is no standard error."""
    low: float | None = None
    """The value if every missing trial had the lowest score; None where no trial is missing."""
    high: float | None = None
    """The value if every missing trial had the highest score; None where no trial is missing."""
    coverage: float | None = None
    """The share of planned trials behind the value; shown below 1."""
    samples: int | None = None
    """The number of samples behind the value."""
    mark: str = ""
    instead: str = ""
    """The text in place of a value that is None, such as `5 of 8 tasks`."""

    def lines(self) -> tuple[str, ...]:
        """What is shown: the value with its mark, and then each part that is there."""
        if self.value is None:
            return (self.instead or MISSING,)
        parts = [self._text(self.value) + self.mark]
        if self.standard_error is not None:
            parts.append(f"±{self._text(self.standard_error).removeprefix('+')}")
        elif self.interval is not None:
            parts.append("[{}, {}]".format(*map(self._text, self.interval)))
        if self.samples is not None:
            parts.append(f"({self.samples:,})")
        if self.coverage is not None and self.coverage < 1:
            parts.append(f"({coverage_text(self.coverage)})")
        if self.low is not None and self.high is not None:
            parts.append(f"{self._text(self.low)}..{self._text(self.high)}")
        return tuple(parts)

    @property
    def interval_low(self) -> float | None:
        """The lower end of the interval."""
        return self.interval and self.interval[0]

    @property
    def interval_high(self) -> float | None:
        """The upper end of the interval."""
        return self.interval and self.interval[1]

    def _text(self, number: float) -> str:
        return money_text(number) if self.form == MONEY else format(number, self.form)


Entry = Figure | str | int | None
"""A cell: a figure, a text, a whole number, or nothing."""


class TableColumn(NamedTuple):
    """A column: its title for readers, its name for programs."""

    title: str
    name: str = ""
    """Its key in JSON and CSV; the title where it is empty."""
    group: str = ""
    """The title over this column and its neighbours of the same group."""
    left: bool = False
    """Whether its cells are texts; the leading columns of texts name the row."""
    parts: tuple[Part, ...] = ()
    """Which parts its figures may have; CSV has a column for each."""

    @property
    def key(self) -> str:
        """The name of the column in JSON and CSV."""
        return self.name or self.title


class TableRow(NamedTuple):
    """A row, with as many cells as its table has columns."""

    cells: tuple[Entry, ...]
    rule: bool = False
    """Whether a line is drawn above it."""
    notes: tuple[str, ...] = ()
    """What a reader must know of this row, one sentence each."""


class ResultTable(NamedTuple):
    """A table: rows under columns, and notes below them."""

    title: str
    columns: tuple[TableColumn, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...] = ()

    def all_notes(self) -> tuple[str, ...]:
        """The notes of the rows and then of the table, each once."""
        return tuple(dict.fromkeys([*(note for row in self.rows for note in row.notes), *self.notes]))

    def headings(self) -> tuple[str, ...]:
        """A title for each column that no other has: with its group where the title alone is not enough."""
        titles = [column.title for column in self.columns]
        return tuple(
            f"{column.group} {column.title}" if titles.count(column.title) > 1 else column.title
            for column in self.columns
        )


def entry_lines(entry: Entry) -> tuple[str, ...]:
    """What a cell shows, in every format for readers."""
    if isinstance(entry, Figure):
        return entry.lines()
    return (MISSING if entry is None else f"{entry:,}" if isinstance(entry, int) else entry,)


def coverage_text(coverage: float) -> str:
    """A share as percent: only a complete one is 100%."""
    return f"{coverage:.0%}" if coverage == 1 else f"{min(99, round(100 * coverage))}%"


def title_with_behind(title: str, counts: Iterable[tuple[float, int]]) -> str:
    """A title that says how many trials are behind its table where some are missing, of (scored, planned) each time."""
    scored, planned = (int(sum(of_one)) for of_one in zip((0, 0), *counts, strict=True))
    behind = "" if scored == planned else f"{scored:,} of {planned:,} planned trials are scored"
    return ": ".join(filter(None, (title, behind)))


def row_names(
    names: Sequence[tuple[str, ...]], titles: Sequence[str], always: int = 1
) -> tuple[tuple[TableColumn, ...], list[tuple[str, ...]]]:
    """The columns that name rows, and their cells: the first `always`, and those in which names differ."""
    shown = [place for place in range(len(titles)) if place < always or len({name[place] for name in names}) > 1]
    columns = tuple(TableColumn(titles[place], left=True) for place in shown)
    return columns, [tuple(name[place] for place in shown) for name in names]


def counted(number: int, noun: str) -> str:
    """`1 turn`, `2,000 turns`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def money_text(amount: float) -> str:
    """The amount with four significant digits, and at least two decimals below 100."""
    if not amount:
        return "0.00"
    decimals = max(0, DIGITS - 1 - math.floor(math.log10(abs(amount))))
    whole, dot, fraction = f"{amount:,.{decimals}f}".partition(".")
    return f"{whole}.{fraction.rstrip('0').ljust(2, '0')}" if dot and decimals > 1 else f"{whole}{dot}{fraction}"
