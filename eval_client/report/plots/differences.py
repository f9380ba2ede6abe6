"""Pure: the differences of a comparison, task by task, as a forest plot."""

from eval_client.core.statistics.samples import Interval
from eval_client.report.compare.values import Comparison, TaskComparison, level_text, range_text
from eval_client.report.plots import svg
from eval_client.report.plots.svg import Frame, Plot, Scale
from proctor.tables.table import ResultTable, TableColumn, TableRow

ROW = 26.0
HEAD = 26.0
WIDTH = 380.0
VALUE_ROOM = 76.0
NOTES = (
    "Dot: difference of means; thick line: its interval; thin line: what the missing scores could make of it. "
    "A filled dot and a star: told apart at this level, after Holm's correction."
)


def differences(found: Comparison) -> Plot:
    """A row for each task."""
    a, b, rows = found.a.agent, found.b.agent, found.tasks
    left = svg.label_width([row.name for row in rows], 50, 200) + 12
    bottom = HEAD + ROW * len(rows)
    frame = Frame(left + WIDTH + VALUE_ROOM, bottom + 42, left, left + WIDTH, HEAD, bottom)
    ends = [end for row in rows for ends in (row.interval, _bounds(row), (row.difference,)) if ends for end in ends]
    widest = min(1.0, max(map(abs, ends), default=1.0))  # an interval may end beyond: its line is cut there
    x = svg.linear([-widest, widest], frame.left, frame.right)
    title = f"{a} less {b}: differences by task"
    parts = [
        svg.horizontal_axis(x, frame, f"{svg.shortened(a, 120)} less {svg.shortened(b, 120)}"),
        svg.line(x.at(0), HEAD, x.at(0), bottom, "zero"),
        svg.words(frame.left, 14, f"← {svg.shortened(b, 150)} better", kind="axis"),
        svg.words(frame.right, 14, f"{svg.shortened(a, 150)} better →", anchor="end", kind="axis"),
    ]
    for place, row in enumerate(rows):
        y, apart = HEAD + ROW * (place + 0.5), row.p_holm < found.alpha
        parts += [
            svg.row_label(left, y + 4, row.name),
            svg.mark(_title(row, found.alpha), *_shapes(row, x, y, apart=apart)),
            svg.words(frame.right + 10, y + 4, f"{row.difference:+.3f}{' *' if apart else ''}", kind="value"),
        ]
    return Plot(title, svg.drawing(frame, title, "differences", parts), _table(found))


def _bounds(row: TaskComparison) -> Interval | None:
    """What the missing scores allow; None where none is missing."""
    return row.bounds if row.missing.a + row.missing.b else None


def _shapes(row: TaskComparison, x: Scale, y: float, *, apart: bool) -> list[str]:
    lines = ((_bounds(row), y + 8, "bounds"), (row.interval, y, "interval"))
    shapes = [svg.line(x.at(ends[0]), at, x.at(ends[1]), at, kind) for ends, at, kind in lines if ends is not None]
    return [*shapes, svg.circle(x.at(row.difference), y, 4.5, "dot on-front" if apart else "dot")]


def _title(row: TaskComparison, alpha: float) -> str:
    apart, bounds = "told apart" if row.p_holm < alpha else "not shown to differ", _bounds(row)
    interval = f", {level_text(alpha)} {range_text(row.interval)}" if row.interval is not None else ""
    missing = f", with all missing trials {range_text(bounds)}" if bounds is not None else ""
    return f"{row.name}: {row.difference:+.3f}{interval}{missing}; {apart}"


def _table(found: Comparison) -> ResultTable:
    titles = ("task", "difference", level_text(found.alpha), "missing: lowest .. highest", "told apart")
    columns = tuple(TableColumn(title, left=title in ("task", "told apart")) for title in titles)
    rows = []
    for row in found.tasks:
        ends, apart = (range_text(row.interval), range_text(_bounds(row))), row.p_holm < found.alpha
        rows.append(TableRow((row.name, f"{row.difference:+.3f}", *ends, "yes" if apart else "no")))
    return ResultTable("", columns, tuple(rows), (NOTES,))
