"""Pure: plots of all pairs of a run: the score matrix, and how trials ended."""

from collections.abc import Mapping, Sequence

from eval_client.report.pair_report import VALIDITY, PairReport
from eval_client.report.plots import svg
from eval_client.report.plots.svg import Address, Frame, Plot
from eval_client.report.run_tables import matrix_table
from proctor.tables.table import MISSING, Figure, ResultTable, TableColumn, TableRow, coverage_text

CELL_HEIGHT = 34.0
HEAD = 24.0
CORNER = 9.0
WIDE = 640
"""Labels are not cut before the score matrix is as wide as this."""
HATCH = "hatch-matrix"
SHADES = 0.06, 0.42
"""Opacities of scores 0 and 1: text stays readable on both."""
MATRIX_NOTES = (
    "Shade: the mean score, from 0 to 1. Hatched: not comparable with published scores. Corner cut off: trials are "
    "missing."
)
ROW = 22.0
WIDTH = 420.0
FAULTS_ROOM = 90.0
LEGEND_ROW = 18.0
REASONS_NOTES = (
    "Shares of the scored trials. Faults are trials without a score: they are beside the bars and in no share."
)


def matrix(pairs: Sequence[PairReport], address: Address = svg.nowhere) -> Plot:
    """Agents and tasks in the order of their first pairs; a task that an agent does not play is left empty."""
    agents = list(dict.fromkeys(pair.agent for pair in pairs))
    tasks = list(dict.fromkeys(pair.task for pair in pairs))
    left = round(svg.label_width(agents, 40, max(200, WIDE - 118 * len(tasks)))) + 12
    width = round(svg.label_width(tasks, 58, max(104, (WIDE - left) / max(1, len(tasks)) - 14))) + 14
    right = left + width * len(tasks)
    frame = Frame(right + 2, HEAD + CELL_HEIGHT * len(agents) + 2, left, right, HEAD, 0)
    pattern = f'<pattern id="{HATCH}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    parts = [f"<defs>{pattern}{svg.line(3, 0, 3, 6, 'stripe')}</pattern></defs>"]
    for place, task in enumerate(tasks):
        parts.append(svg.words(left + width * (place + 0.5), HEAD - 8, svg.shortened(task, width - 6), anchor="middle"))
    for place, agent in enumerate(agents):
        parts.append(svg.row_label(left, HEAD + CELL_HEIGHT * (place + 0.5) + 4, agent))
    parts.append('<g text-anchor="middle">')
    for pair in pairs:
        x, y = left + width * tasks.index(pair.task), HEAD + CELL_HEIGHT * agents.index(pair.agent)
        parts.append(_cell(pair, x + 1, y + 1, width - 2, address(pair.agent, pair.task)))
    parts.append("</g>")
    title = "Scores: agents by tasks"
    return Plot(title, svg.drawing(frame, title, "matrix", parts), matrix_table(pairs)._replace(notes=(MATRIX_NOTES,)))


def _cell(pair: PairReport, x: float, y: float, width: float, href: str) -> str:
    right, bottom, least, most = x + width, y + CELL_HEIGHT - 2, *SHADES
    cut = CORNER if pair.coverage < 1 else 0.0
    corners = [(x, y), (right - cut, y), (right, y + cut), (right, bottom), (x, bottom)]
    shapes = [svg.area(corners, "shade", least + (most - least) * (pair.mean_score or 0.0))]
    if pair.comparable is not None:
        shapes.append(svg.rect(x, y, width, CELL_HEIGHT - 2, fill=f"url(#{HATCH})"))
    middle, figure = x + width / 2, pair.figure
    if figure.value is None:
        shapes.append(svg.words(middle, y + 20, MISSING))
    elif figure.standard_error is None and figure.interval is None:
        shapes.append(svg.words(middle, y + 20, _short(figure.value), kind="value"))
    else:
        shapes.append(svg.words(middle, y + 15, _short(figure.value), kind="value"))
        ends = figure.interval and "–".join(map(_end, figure.interval))
        shapes.append(svg.words(middle, y + 28, ends or f"±{_short(figure.standard_error or 0)}", kind="error"))
    return svg.mark(_title(pair), *shapes, href=href)


def _short(value: float) -> str:
    """Three decimals, as tables have them, where there is room."""
    text = f"{value:.3f}"
    return text if svg.text_width(text) < 58 else f"{value:.3g}"


def _end(value: float) -> str:
    """An end of an interval in two digits: there is room for no more."""
    digits = 0 if value >= 10 else 1 if value > 1 else 2
    return f"{value:.{digits}f}".removeprefix("0") if 0 < value < 1 else f"{value:.{digits}f}".removesuffix(".00")


def _title(pair: PairReport) -> str:
    value = "no score" if pair.value is None else " ".join(pair.figure.lines())
    missing = "" if pair.coverage == 1 else f", {coverage_text(pair.coverage)} of the trials"
    unlike = "" if pair.comparable is None else f". Not comparable with published scores: {pair.comparable}"
    return f"{pair.agent}, {pair.task}: {value}{missing}{unlike}"


def reasons(pairs: Sequence[PairReport], address: Address = svg.nowhere) -> Plot:
    """A bar for each pair; each reason has its own colour whichever of them occur."""
    used = {reason: place for place, reason in enumerate(VALIDITY) if any(pair.validity.get(reason) for pair in pairs)}
    left = svg.label_width([_name(pair) for pair in pairs], 60, 260) + 12
    right = left + WIDTH
    parts, legend_rows = _legend(used, left, right)
    top = 8 + LEGEND_ROW * legend_rows
    frame = Frame(right + FAULTS_ROOM, top + ROW * len(pairs) + 6, left, right, top, top + ROW * len(pairs))
    title = "Reasons why trials ended"
    for place, pair in enumerate(pairs):
        y = top + ROW * place
        parts += [svg.row_label(left, y + 15, _name(pair)), *_bar(pair, used, left, y + 2, address)]
        if count := pair.unscored:
            faults = f"{count:,} fault{'s' if count > 1 else ''}"
            shape = svg.words(right + 8, y + 15, f"+ {faults}", kind="fault")
            parts.append(svg.mark(f"{_name(pair)}: {faults}", shape, href=address(pair.agent, pair.task, score="none")))
    return Plot(title, svg.drawing(frame, title, "reasons", parts), _table(pairs, list(used)))


def _name(pair: PairReport) -> str:
    return f"{pair.agent}, {pair.task}"


def _legend(used: Mapping[str, int], left: float, right: float) -> tuple[list[str], int]:
    """The keys of the colours, in as many rows as they need."""
    parts, x, row = [], left, 0
    for reason, place in used.items():
        width = 16 + svg.text_width(_spaced(reason)) + 14
        if x + width > right and x > left:
            x, row = left, row + 1
        parts.append(svg.rect(x, 4 + LEGEND_ROW * row, 11, 11, f"reason reason-{place}"))
        parts.append(svg.words(x + 16, 14 + LEGEND_ROW * row, _spaced(reason), kind="key"))
        x += width
    return parts, row + 1 if used else 0


def _bar(pair: PairReport, used: Mapping[str, int], left: float, y: float, address: Address) -> list[str]:
    parts, x = [], left
    for reason, place in used.items():
        share = pair.validity.get(reason, 0.0)
        width = WIDTH * share
        if share:
            shapes = [svg.rect(x, y, width, ROW - 4, f"reason reason-{place}")]
            if width >= 36:
                shapes.append(svg.words(x + width / 2, y + 13, f"{share:.0%}", anchor="middle", kind="share"))
            href = address(pair.agent, pair.task, reason=reason)
            parts.append(svg.mark(f"{_name(pair)}: {_spaced(reason)} {share:.1%}", *shapes, href=href))
        x += width
    return parts


def _spaced(reason: str) -> str:
    return reason.replace("_", " ")


def _table(pairs: Sequence[PairReport], used: Sequence[str]) -> ResultTable:
    names = (TableColumn("agent", left=True), TableColumn("task", left=True))
    columns = (*names, *(TableColumn(_spaced(reason)) for reason in used), TableColumn("faults"))
    rows = []
    for pair in pairs:
        shares = (Figure(pair.validity.get(reason), ".1%") for reason in used)
        rows.append(TableRow((pair.agent, pair.task, *shares, pair.unscored)))
    return ResultTable("", columns, tuple(rows), (REASONS_NOTES,))
