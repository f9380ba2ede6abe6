"""Pure: how trials ended, as shares of the scored ones; faults stand beside."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from eval_client.report.plots.svg import Frame, Plot, drawing, label_width, mark, rect, shortened, text_width, words
from proctor.tables.table import Figure, ResultTable, TableColumn, TableRow

ROW = 22.0
WIDTH = 420.0
FAULTS_ROOM = 90.0
LEGEND_ROW = 18.0
NOTES = "Shares of the scored trials. Faults are trials without a score: they are beside the bars and in no share."


class ReasonShares(NamedTuple):
    """How the trials of one agent on one task ended."""

    agent: str
    task: str
    shares: Mapping[str, float]
    """finish reason -> share of the scored trials; empty where nothing is scored."""
    faults: int
    """Trials without a score."""
    hrefs: Mapping[str, str] = MappingProxyType({})
    """finish reason -> where its share leads to"""
    href: str = ""
    """Where the faults lead to."""


def reasons_plot(pairs: Sequence[ReasonShares], reasons: Sequence[str]) -> Plot:
    """A bar for each pair; `reasons` gives their order, and each its own colour whichever of them occur."""
    used = {reason: place for place, reason in enumerate(reasons) if any(pair.shares.get(reason) for pair in pairs)}
    labels = [f"{pair.agent}, {pair.task}" for pair in pairs]
    left = label_width(labels, 60, 260) + 12
    right = left + WIDTH
    keys, legend_rows = _legend(used, left, right)
    top = 8 + LEGEND_ROW * legend_rows
    frame = Frame(right + FAULTS_ROOM, top + ROW * len(pairs) + 6, left, right, top, top + ROW * len(pairs))
    title = "Reasons why trials ended"
    parts = [*keys]
    for place, (pair, label) in enumerate(zip(pairs, labels, strict=True)):
        y = top + ROW * place
        parts.append(words(left - 10, y + 15, shortened(label, left - 12), anchor="end"))
        parts += _bar(pair, used, left, y + 2)
        if pair.faults:
            faults = f"{pair.faults:,} fault{'s' if pair.faults > 1 else ''}"
            parts.append(
                mark(f"{label}: {faults}", words(right + 8, y + 15, f"+ {faults}", kind="fault"), href=pair.href)
            )
    return Plot("reasons", title, drawing(frame, title, "reasons", parts), _table(pairs, list(used)))


def _legend(reasons: Mapping[str, int], left: float, right: float) -> tuple[list[str], int]:
    """The keys of the colours, in as many rows as they need."""
    parts, x, row = [], left, 0
    for reason, place in reasons.items():
        width = 16 + text_width(_name(reason)) + 14
        if x + width > right and x > left:
            x, row = left, row + 1
        parts.append(rect(x, 4 + LEGEND_ROW * row, 11, 11, f"reason reason-{place}", opacity=_opacity(place)))
        parts.append(words(x + 16, 14 + LEGEND_ROW * row, _name(reason), kind="key"))
        x += width
    return parts, row + 1 if reasons else 0


def _bar(pair: ReasonShares, reasons: Mapping[str, int], left: float, y: float) -> list[str]:
    parts, x = [], left
    for reason, place in reasons.items():
        share = pair.shares.get(reason, 0.0)
        width = WIDTH * share
        if share:
            shapes = [rect(x, y, width, ROW - 4, f"reason reason-{place}", opacity=_opacity(place))]
            if width >= 36:
                shapes.append(words(x + width / 2, y + 13, f"{share:.0%}", anchor="middle", kind="share"))
            title = f"{pair.agent}, {pair.task}: {_name(reason)} {share:.1%}"
            parts.append(mark(title, *shapes, href=pair.hrefs.get(reason, "")))
        x += width
    return parts


def _opacity(place: int) -> float:
    return (0.3, 0.16, 0.45, 0.08, 0.22)[place % 5]


def _name(reason: str) -> str:
    return reason.replace("_", " ")


def _table(pairs: Sequence[ReasonShares], reasons: Sequence[str]) -> ResultTable:
    columns = (
        TableColumn("agent", left=True),
        TableColumn("task", left=True),
        *(TableColumn(_name(reason)) for reason in reasons),
        TableColumn("faults"),
    )
    rows = []
    for pair in pairs:
        shares = (Figure(pair.shares.get(reason), ".1%") for reason in reasons)
        rows.append(TableRow((pair.agent, pair.task, *shares, pair.faults)))
    return ResultTable("", columns, tuple(rows), (NOTES,))
