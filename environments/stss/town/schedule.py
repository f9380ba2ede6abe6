"""Plans of people: rows of a day, commitments, and the agenda made from both."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from environments.stss.town.clock import DAY, time_text
from proctor.types import Value

Kind = Literal["act", "walk", "talk", "sleep"]


class Row(NamedTuple):
    """A planned activity from `start` to before `end`, minutes since the first midnight."""

    start: int
    end: int
    activity: str
    address: str
    fixed: bool = False
    """Whether it is work or a class."""


class Commitment(Value):
    """An agreed activity; `activity` is in the words of the person who asked for it."""

    activity: str
    address: str
    start: int
    end: int
    with_whom: str = ""
    after_previous: bool = False
    """Whether it is the second leg of an errand, which begins after the first leg and the way between them."""

    def line(self) -> str:
        """The commitment as text."""
        return f"{self.activity}, {self.address}, {time_text(self.start)}-{time_text(self.end)}"


class DayPlan(NamedTuple):
    """One day of one person. `bed` may be after midnight."""

    wake: int
    bed: int
    rows: tuple[Row, ...]


class Block(NamedTuple):
    """An interval of an agenda."""

    start: int
    end: int
    activity: str
    address: str
    kind: Kind
    prompt: bool = False
    """Whether the person leaves early enough to arrive at the start, as for commitments."""


def overlaps(start: int, end: int, other_start: int, other_end: int) -> bool:
    """Whether two intervals share a minute."""
    return start < other_end and other_start < end


def agenda(day: int, plan: DayPlan, late: int, commitments: Iterable[Commitment], home: str) -> list[Block]:
    """The blocks of a day, without gaps and overlaps. Commitments override rows; rows override sleep and home.

    `late`: yesterday's bedtime, which counts if it is after midnight.
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
    """The blocks with `above` in place of the parts that it overlaps."""
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
