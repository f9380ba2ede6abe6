"""Pure: how many turns passed and failed trials took."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from eval_client.report.plots.scale import amount
from eval_client.report.plots.svg import Frame, Plot, drawing, label_width, line, mark, outline, rect, shortened, words
from proctor.tables.table import ResultTable, TableColumn, TableRow

MOST_BINS = 16
ROW = 54.0
HEAD, FOOT = 22.0, 40.0
WIDTH = 400.0
GAP = 1.5
NOTES = "Above each line: trials that passed; below it, outlined: trials that failed. Each agent has its own height."


class TurnCounts(NamedTuple):
    """How many scored trials of one agent on one task took so many turns."""

    agent: str
    passed: Mapping[int, int]
    """turns -> trials"""
    failed: Mapping[int, int]
    passed_href: str = ""
    failed_href: str = ""


class _Bins(NamedTuple):
    """Ranges of turns, each `width` wide, from 0."""

    width: int
    number: int

    def label(self, place: int) -> str:
        low = place * self.width
        return str(low) if self.width == 1 else f"{low}–{low + self.width - 1}"

    def counts(self, trials: Mapping[int, int]) -> list[int]:
        found = [0] * self.number
        for turns, count in trials.items():
            found[turns // self.width] += count
        return found


def turns_plot(task: str, pairs: Sequence[TurnCounts]) -> Plot:
    """One task's agents, a row each, over the same ranges of turns."""
    bins = _bins(pairs)
    left = label_width([pair.agent for pair in pairs], 40, 200) + 12
    frame = Frame(left + WIDTH + 20, HEAD + ROW * len(pairs) + FOOT, left, left + WIDTH, HEAD, HEAD + ROW * len(pairs))
    title = f"{task}: turns of passed and failed trials"
    parts = [words(left, 13, "passed (score at least 1) above, failed below", kind="axis")]
    parts += [_row(pair, bins, frame, HEAD + ROW * (place + 0.5)) for place, pair in enumerate(pairs)]
    every = max(1, -(-bins.number // 10))
    step = WIDTH / bins.number
    parts += [
        words(left + step * (place + 0.5), frame.bottom + 15, amount(place * bins.width), anchor="middle", kind="tick")
        for place in range(0, bins.number, every)
    ]
    per_bar = "" if bins.width == 1 else f", {bins.width} a bar"
    parts.append(words(left + WIDTH / 2, frame.bottom + 31, f"turns{per_bar}", anchor="middle", kind="axis"))
    return Plot("turns", title, drawing(frame, title, "turns", parts), _table(pairs, bins))


def _bins(pairs: Sequence[TurnCounts]) -> _Bins:
    most = max((turns for pair in pairs for trials in (pair.passed, pair.failed) for turns in trials), default=0)
    width = -(-(most + 1) // MOST_BINS)
    return _Bins(width, most // width + 1)


def _row(pair: TurnCounts, bins: _Bins, frame: Frame, middle: float) -> str:
    passed, failed = bins.counts(pair.passed), bins.counts(pair.failed)
    highest = max([*passed, *failed, 1])
    step, room = WIDTH / bins.number, ROW / 2 - 6
    parts = [
        words(frame.left - 10, middle + 4, shortened(pair.agent, frame.left - 12), anchor="end"),
        line(frame.left, middle, frame.right, middle, "grid"),
    ]
    for outcome, counts, href in (("passed", passed, pair.passed_href), ("failed", failed, pair.failed_href)):
        for place, count in enumerate(counts):
            if count:
                height = max(1.0, room * count / highest)
                top = middle - 1 - height if outcome == "passed" else middle + 1
                shape = rect if outcome == "passed" else outline
                bar = shape(frame.left + step * place + GAP / 2, top, max(1.0, step - GAP), height, outcome)
                turns = f"{bins.label(place)} turn{'' if bins.label(place) == '1' else 's'}"
                parts.append(mark(f"{pair.agent}: {count:,} {outcome} with {turns}", bar, href=href))
    return "".join(parts)


def _table(pairs: Sequence[TurnCounts], bins: _Bins) -> ResultTable:
    columns = (
        TableColumn("agent", left=True),
        TableColumn("trials", left=True),
        *(TableColumn(bins.label(place)) for place in range(bins.number)),
    )
    rows = [
        TableRow((pair.agent, outcome, *bins.counts(trials)))
        for pair in pairs
        for outcome, trials in (("passed", pair.passed), ("failed", pair.failed))
    ]
    return ResultTable("", columns, tuple(rows), (NOTES,))
