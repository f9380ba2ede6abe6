"""Pure: the score matrix, agents by tasks."""

from collections.abc import Sequence
from typing import NamedTuple

from eval_client.report.plots.svg import (
    Frame,
    Plot,
    area,
    drawing,
    label_width,
    line,
    mark,
    rect,
    shortened,
    text_width,
    words,
)
from proctor.tables.table import MISSING, Figure, Part, ResultTable, TableColumn, TableRow, coverage_text

CELL_HEIGHT = 34.0
HEAD = 24.0
CORNER = 9.0
HATCH = "hatch-matrix"
MOST_ERRORS = 400
"""In a larger matrix the errors stand in the titles and the table alone."""
SHADES = 0.06, 0.42
"""Opacities of scores 0 and 1: text stays readable on both."""
NOTES = (
    "Shade: the mean score, from 0 to 1. Hatched: not comparable with published scores. Corner cut off: trials are "
    "missing."
)


class MatrixCell(NamedTuple):
    """What one agent reached on one task."""

    agent: str
    task: str
    figure: Figure
    """The task's primary metric with its error or interval."""
    score: float | None
    """The mean score, from 0 to 1, which the shade shows."""
    coverage: float
    """The share of planned trials that are scored."""
    not_comparable: str | None = None
    """Why the value must not be set beside published ones."""
    href: str = ""


def score_matrix(cells: Sequence[MatrixCell]) -> Plot:
    """Agents and tasks in the order of their first cells; a pair without a cell is left empty."""
    agents = list(dict.fromkeys(cell.agent for cell in cells))
    tasks = list(dict.fromkeys(cell.task for cell in cells))
    left = round(label_width(agents, 40, 200)) + 12
    width = round(label_width(tasks, 58, 104)) + 14
    frame = Frame(
        left + width * len(tasks) + 2, HEAD + CELL_HEIGHT * len(agents) + 2, left, left + width * len(tasks), HEAD, 0
    )
    parts = [_hatching()]
    parts += [
        words(left + width * (place + 0.5), HEAD - 8, shortened(task, width - 6), anchor="middle")
        for place, task in enumerate(tasks)
    ]
    parts += [
        words(left - 10, HEAD + CELL_HEIGHT * (place + 0.5) + 4, shortened(agent, left - 12), anchor="end")
        for place, agent in enumerate(agents)
    ]
    parts.append('<g text-anchor="middle">')
    for cell in cells:
        x, y = left + width * tasks.index(cell.task), HEAD + CELL_HEIGHT * agents.index(cell.agent)
        parts.append(_cell(cell, x + 1, y + 1, width - 2, with_error=len(cells) <= MOST_ERRORS))
    parts.append("</g>")
    title = "Scores: agents by tasks"
    return Plot("matrix", title, drawing(frame, title, "matrix", parts), _table(agents, tasks, cells))


def _hatching() -> str:
    stripe = line(3, 0, 3, 6, "stripe")
    pattern = f'<pattern id="{HATCH}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    return f"<defs>{pattern}{stripe}</pattern></defs>"


def _cell(cell: MatrixCell, x: float, y: float, width: float, *, with_error: bool) -> str:
    height = CELL_HEIGHT - 2
    least, most = SHADES
    shapes = [_shade(x, y, width, height, least + (most - least) * (cell.score or 0.0), cut=cell.coverage < 1)]
    if cell.not_comparable is not None:
        shapes.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="url(#{HATCH})"/>')
    middle = x + width / 2
    value, error, interval = cell.figure.value, cell.figure.standard_error, cell.figure.interval
    if value is None:
        shapes.append(words(middle, y + 20, MISSING))
    elif not with_error:
        shapes.append(words(middle, y + 20, _short(value)))
    elif error is None and interval is None:
        shapes.append(words(middle, y + 20, _short(value), kind="value"))
    else:
        shapes.append(words(middle, y + 15, _short(value), kind="value"))
        ends = interval and "–".join(map(_end, interval))
        shapes.append(words(middle, y + 28, ends or f"±{_short(error or 0)}", kind="error"))
    return mark(_title(cell), *shapes, href=cell.href)


def _shade(x: float, y: float, width: float, height: float, opacity: float, *, cut: bool) -> str:
    if not cut:
        return rect(x, y, width, height, "shade", opacity=opacity)
    right, bottom = x + width, y + height
    points = [(x, y), (right - CORNER, y), (right, y + CORNER), (right, bottom), (x, bottom)]
    return area(points, "shade", opacity)


def _short(value: float) -> str:
    """Three decimals, as tables have them, where there is room."""
    text = f"{value:.3f}"
    return text if text_width(text) < 58 else f"{value:.3g}"


def _end(value: float) -> str:
    """An end of an interval in two digits: there is room for no more."""
    digits = 0 if value >= 10 else 1 if value > 1 else 2
    return f"{value:.{digits}f}".removeprefix("0") if 0 < value < 1 else f"{value:.{digits}f}".removesuffix(".00")


def _title(cell: MatrixCell) -> str:
    value = "no score" if cell.figure.value is None else " ".join(cell.figure.lines())
    missing = "" if cell.coverage == 1 else f", {coverage_text(cell.coverage)} of the trials"
    unlike = "" if cell.not_comparable is None else f". Not comparable with published scores: {cell.not_comparable}"
    return f"{cell.agent}, {cell.task}: {value}{missing}{unlike}"


def _table(agents: Sequence[str], tasks: Sequence[str], cells: Sequence[MatrixCell]) -> ResultTable:
    figures = {(cell.agent, cell.task): cell.figure._replace(coverage=cell.coverage) for cell in cells}
    parts: tuple[Part, ...] = ("standard_error", "interval_low", "interval_high")
    columns = (TableColumn("agent", left=True), *(TableColumn(task, parts=parts) for task in tasks))
    rows = tuple(TableRow((agent, *(figures.get((agent, task)) for task in tasks))) for agent in agents)
    return ResultTable("", columns, rows, (NOTES,))
