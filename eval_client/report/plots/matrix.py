"""Pure: the score matrix, agents by tasks."""

from collections.abc import Sequence

from eval_client.report.pair_report import PairReport
from eval_client.report.plots import svg
from eval_client.report.plots.svg import Address, Frame, Plot
from eval_client.report.run_tables import matrix_table
from proctor.tables.table import MISSING, coverage_text

CELL_HEIGHT = 34.0
HEAD = 24.0
CORNER = 9.0
WIDE = 640
"""Labels are not cut before the plot is as wide as this."""
HATCH = "hatch-matrix"
SHADES = 0.06, 0.42
"""Opacities of scores 0 and 1: text stays readable on both."""
NOTES = (
    "Shade: the mean score, from 0 to 1. Hatched: not comparable with published scores. Corner cut off: trials are "
    "missing."
)


def matrix(pairs: Sequence[PairReport], address: Address = svg.nowhere) -> Plot:
    """Agents and tasks in the order of their first pairs; a task that an agent does not play is left empty."""
    agents = list(dict.fromkeys(pair.agent for pair in pairs))
    tasks = list(dict.fromkeys(pair.task for pair in pairs))
    left = round(svg.label_width(agents, 40, max(200, WIDE - 118 * len(tasks)))) + 12
    width = round(svg.label_width(tasks, 58, max(104, (WIDE - left) / max(1, len(tasks)) - 14))) + 14
    right = left + width * len(tasks)
    frame = Frame(right + 2, HEAD + CELL_HEIGHT * len(agents) + 2, left, right, HEAD, 0)
    parts = [_hatching()]
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
    return Plot(
        "matrix", title, svg.drawing(frame, title, "matrix", parts), matrix_table(pairs)._replace(notes=(NOTES,))
    )


def _hatching() -> str:
    stripe = svg.line(3, 0, 3, 6, "stripe")
    pattern = f'<pattern id="{HATCH}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    return f"<defs>{pattern}{stripe}</pattern></defs>"


def _cell(pair: PairReport, x: float, y: float, width: float, href: str) -> str:
    right, bottom, least, most = x + width, y + CELL_HEIGHT - 2, *SHADES
    cut = CORNER if pair.coverage < 1 else 0.0
    corners = [(x, y), (right - cut, y), (right, y + cut), (right, bottom), (x, bottom)]
    shapes = [svg.area(corners, "shade", least + (most - least) * (pair.mean_score or 0.0))]
    if pair.comparable is not None:
        hatched: dict[str, str | float] = {
            "x": x,
            "y": y,
            "width": width,
            "height": CELL_HEIGHT - 2,
            "fill": f"url(#{HATCH})",
        }
        shapes.append(svg.element("rect", hatched))
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
