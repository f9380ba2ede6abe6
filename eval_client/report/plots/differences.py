"""Pure: the differences of a comparison, task by task, as a forest plot."""

from collections.abc import Sequence
from typing import NamedTuple

from eval_client.core.statistics.samples import Interval
from eval_client.report.compare.values import level_text, range_text
from eval_client.report.plots.svg import (
    Frame,
    Plot,
    Scale,
    circle,
    drawing,
    horizontal_axis,
    label_width,
    line,
    linear,
    mark,
    shortened,
    words,
)
from proctor.tables.table import ResultTable, TableColumn, TableRow

ROW = 26.0
HEAD = 26.0
WIDTH = 380.0
VALUE_ROOM = 76.0


class TaskDifference(NamedTuple):
    """A less B on one task."""

    task: str
    difference: float
    interval: Interval | None
    bounds: Interval | None
    """What the missing scores allow; None where none is missing."""
    told_apart: bool
    """Whether the adjusted p is below alpha."""
    href: str = ""


def differences_plot(a: str, b: str, rows: Sequence[TaskDifference], alpha: float = 0.05) -> Plot:
    """A row for each task."""
    left = label_width([row.task for row in rows], 50, 200) + 12
    bottom = HEAD + ROW * len(rows)
    frame = Frame(left + WIDTH + VALUE_ROOM, bottom + 42, left, left + WIDTH, HEAD, bottom)
    ends = [end for row in rows for ends in (row.interval, row.bounds, (row.difference,)) if ends for end in ends]
    widest = min(1.0, max(map(abs, ends), default=1.0))  # an interval may end beyond: its line is cut there
    x = linear([-widest, widest], frame.left, frame.right)
    title = f"{a} less {b}: differences by task"
    parts = [
        horizontal_axis(x, frame, f"{shortened(a, 120)} less {shortened(b, 120)}"),
        line(x.at(0), HEAD, x.at(0), bottom, "zero"),
        words(frame.left, 14, f"← {shortened(b, 150)} better", kind="axis"),
        words(frame.right, 14, f"{shortened(a, 150)} better →", anchor="end", kind="axis"),
    ]
    for place, row in enumerate(rows):
        y = HEAD + ROW * (place + 0.5)
        parts += [
            words(left - 10, y + 4, shortened(row.task, left - 12), anchor="end"),
            mark(_title(row, alpha), *_shapes(row, x, y), href=row.href),
            words(frame.right + 10, y + 4, f"{row.difference:+.3f}{' *' if row.told_apart else ''}", kind="value"),
        ]
    return Plot("differences", title, drawing(frame, title, "differences", parts), _table(rows, alpha))


def _shapes(row: TaskDifference, x: Scale, y: float) -> list[str]:
    shapes = []
    if row.bounds is not None:
        shapes.append(line(x.at(row.bounds[0]), y + 8, x.at(row.bounds[1]), y + 8, "bounds"))
    if row.interval is not None:
        shapes.append(line(x.at(row.interval[0]), y, x.at(row.interval[1]), y, "interval"))
    return [*shapes, circle(x.at(row.difference), y, 4.5, "dot on-front" if row.told_apart else "dot")]


def _title(row: TaskDifference, alpha: float) -> str:
    apart = "told apart" if row.told_apart else "not shown to differ"
    interval = f", {level_text(alpha)} {range_text(row.interval)}" if row.interval is not None else ""
    bounds = f", with all missing trials {range_text(row.bounds)}" if row.bounds is not None else ""
    return f"{row.task}: {row.difference:+.3f}{interval}{bounds}; {apart}"


def _table(rows: Sequence[TaskDifference], alpha: float) -> ResultTable:
    columns = (
        TableColumn("task", left=True),
        TableColumn("difference"),
        TableColumn(level_text(alpha)),
        TableColumn("missing: lowest .. highest"),
        TableColumn("told apart", left=True),
    )
    table_rows = []
    for row in rows:
        ends, apart = (range_text(row.interval), range_text(row.bounds)), "yes" if row.told_apart else "no"
        table_rows.append(TableRow((row.task, f"{row.difference:+.3f}", *ends, apart)))
    note = (
        "Dot: difference of means; thick line: its interval; thin line: what the missing scores could make of it. "
        "A filled dot and a star: told apart at this level, after Holm's correction."
    )
    return ResultTable("", columns, tuple(table_rows), (note,))
