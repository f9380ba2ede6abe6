"""What people mean to do: rows of a day, commitments, and the agenda that both make."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from environments.stss.town.clock import DAY, time_text
from proctor.types import Value

Kind = Literal["act", "walk", "talk", "sleep"]


class Row(NamedTuple):
    """Something planned: from `start` to before `end`, minutes since the first midnight."""

    start: int
    end: int
    activity: str
    address: str
    fixed: bool = False
    """True for work and classes, which no invitation moves."""


class Commitment(Value):
    """What somebody has agreed to do; `activity` is in the words of whoever asked for it."""

    activity: str
    address: str
    start: int
    end: int
    with_whom: str = ""
    after_previous: bool = False
    """True for the second leg of an errand: it begins once the first is done and the way is walked."""

    def line(self) -> str:
        """The commitment as a reader sees it."""
        return f"{self.activity}, {self.address}, {time_text(self.start)}-{time_text(self.end)}"


class DayPlan(NamedTuple):
    """One day of one person. `bed` may lie after midnight, `wake` before it is not allowed."""

    wake: int
    bed: int
    rows: tuple[Row, ...]


class Block(NamedTuple):
    """A stretch of an agenda."""

    start: int
    end: int
    activity: str
    address: str
    kind: Kind
    prompt: bool = False
    """True where one sets off in time to arrive at the start: a commitment."""


def overlaps(start: int, end: int, other_start: int, other_end: int) -> bool:
    """True where two stretches share a minute."""
    return start < other_end and other_start < end


def agenda(day: int, plan: DayPlan, late: int, commitments: Iterable[Commitment], home: str) -> list[Block]:
    """Without gaps and overlaps, the blocks of a day; commitments stand above rows, rows above sleep and home.

    `late` is when the night before ends in this day: the bedtime of yesterday where that lies after midnight.
    """
    first, last = day * DAY, (day + 1) * DAY
    blocks = [Block(first, last, "at home", home, "act")]
    for start, end in ((max(first, late), plan.wake), (plan.bed, last)):
        blocks = _overlay(blocks, Block(start, end, "sleeping", home, "sleep"))
    for row in plan.rows:
        blocks = _overlay(blocks, Block(row.start, row.end, row.activity, row.address, "act"))
    for promise in commitments:
        block = Block(promise.start, promise.end, promise.activity, promise.address, "act", prompt=True)
        blocks = _overlay(blocks, block)
    return [block for block in blocks if first <= block.start < last]


def _overlay(blocks: Sequence[Block], above: Block) -> list[Block]:
    """The blocks with one more on top of them."""
    if above.start >= above.end:
        return list(blocks)
    result: list[Block] = []
    for block in blocks:
        if not overlaps(block.start, block.end, above.start, above.end):
            result.append(block)
            continue
        if block.start < above.start:
            result.append(block._replace(end=above.start))
        if block.end > above.end:
            result.append(block._replace(start=above.end, prompt=False))
    return sorted([*result, above])
