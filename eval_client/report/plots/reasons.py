"""Pure: how trials ended, as shares of the scored ones; faults stand beside."""

from collections.abc import Mapping, Sequence

from eval_client.report.pair_report import VALIDITY, PairReport
from eval_client.report.plots import svg
from eval_client.report.plots.svg import Address, Frame, Plot
from proctor.tables.table import Figure, ResultTable, TableColumn, TableRow

ROW = 22.0
WIDTH = 420.0
FAULTS_ROOM = 90.0
LEGEND_ROW = 18.0
NOTES = "Shares of the scored trials. Faults are trials without a score: they are beside the bars and in no share."
OPACITIES = 0.3, 0.16, 0.45, 0.08, 0.22


def reasons(pairs: Sequence[PairReport], address: Address = svg.nowhere) -> Plot:
    """A bar for each pair; each reason has its own colour whichever of them occur."""
    used = {reason: place for place, reason in enumerate(VALIDITY) if any(pair.validity.get(reason) for pair in pairs)}
    left = svg.label_width([_name(pair) for pair in pairs], 60, 260) + 12
    right = left + WIDTH
    keys, legend_rows = _legend(used, left, right)
    top = 8 + LEGEND_ROW * legend_rows
    frame = Frame(right + FAULTS_ROOM, top + ROW * len(pairs) + 6, left, right, top, top + ROW * len(pairs))
    title = "Reasons why trials ended"
    parts = [*keys]
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
        parts.append(_block(place, x, 4 + LEGEND_ROW * row, 11, 11))
        parts.append(svg.words(x + 16, 14 + LEGEND_ROW * row, _spaced(reason), kind="key"))
        x += width
    return parts, row + 1 if used else 0


def _bar(pair: PairReport, used: Mapping[str, int], left: float, y: float, address: Address) -> list[str]:
    parts, x = [], left
    for reason, place in used.items():
        share = pair.validity.get(reason, 0.0)
        width = WIDTH * share
        if share:
            shapes = [_block(place, x, y, width, ROW - 4)]
            if width >= 36:
                shapes.append(svg.words(x + width / 2, y + 13, f"{share:.0%}", anchor="middle", kind="share"))
            href = address(pair.agent, pair.task, reason=reason)
            parts.append(svg.mark(f"{_name(pair)}: {_spaced(reason)} {share:.1%}", *shapes, href=href))
        x += width
    return parts


def _block(place: int, x: float, y: float, width: float, height: float) -> str:
    return svg.rect(x, y, width, height, f"reason reason-{place}", opacity=OPACITIES[place % len(OPACITIES)])


def _spaced(reason: str) -> str:
    return reason.replace("_", " ")


def _table(pairs: Sequence[PairReport], used: Sequence[str]) -> ResultTable:
    names = (TableColumn("agent", left=True), TableColumn("task", left=True))
    columns = (*names, *(TableColumn(_spaced(reason)) for reason in used), TableColumn("faults"))
    rows = []
    for pair in pairs:
        shares = (Figure(pair.validity.get(reason), ".1%") for reason in used)
        rows.append(TableRow((pair.agent, pair.task, *shares, pair.unscored)))
    return ResultTable("", columns, tuple(rows), (NOTES,))
