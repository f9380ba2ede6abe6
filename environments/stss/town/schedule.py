"""Simulated time, in minutes since the midnight before 2023-02-13, and plans in it (arXiv 2404.05337, section 3)."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from proctor.types import Value

DATES = ("2023-02-13", "2023-02-14")
"""Day 1 is for invitations, day 2 for the activity."""
NAMES = ("Monday", "Tuesday")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
DAY = 24 * 60
START = 6 * 60
END = DAY + 22 * 60 + 40
"""The simulation runs from 06:00 of day 1 to 22:40 of day 2."""
REVIEW = 22 * 60
"""The minute of the performer's review of day 1."""
_TIME = re.compile(r"(\d{1,2}):(\d{2})")
_SPOKEN = re.compile(r"(?:(\d{1,2}):(\d{2})(?::\d{2}(?:\.\d+)?)?(?:z|[+-]00:?00)?|(\d{1,2})) ?(?:([ap])\.? ?m\.?)?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_NAMED = {"noon": 12 * 60, "midnight": DAY}
_STAMP = re.compile(r"(\d{4}-\d{2}-\d{2}) (\d{2}):(\d{2})")


def day_of(minute: int) -> int:
    """0 on day 1, 1 on day 2."""
    return minute // DAY


def time_text(minute: int) -> str:
    """The time of day, such as `19:05`."""
    return f"{minute % DAY // 60:02d}:{minute % 60:02d}"


def stamp(minute: int) -> str:
    """Date and time, such as `2023-02-14 19:05`; the midnight after the two days is 2023-02-15."""
    return f"{(*DATES, '2023-02-15')[day_of(minute)]} {time_text(minute)}"


def spoken(minute: int) -> str:
    """Weekday, date and time for requests, such as `Tuesday 2023-02-14, 19:05`."""
    return f"{NAMES[day_of(minute)]} {DATES[day_of(minute)]}, {time_text(minute)}"


def read_time(text: str) -> int:
    """Minutes since midnight for an `HH:MM` text, 24-hour clock. Raises ValueError."""
    match = _TIME.fullmatch(text.strip())
    if match is None or int(match[1]) > 23 or int(match[2]) > 59:
        raise ValueError(f"{text!r} is no time; write HH:MM from 00:00 to 23:59")
    return int(match[1]) * 60 + int(match[2])


def spoken_time(text: str) -> int:
    """Minutes since midnight for `19:00`, `19:00:00`, `7 pm`, `7:30 PM`, `noon`, `midnight` or `24:00`.

    Midnight is the end of a day, 24:00. Raises ValueError.
    """
    named = " ".join(text.lower().split())
    if named in _NAMED:
        return _NAMED[named]
    if match := _SPOKEN.fullmatch(named):
        hour, minute, half = int(match[1] or match[3]), int(match[2] or 0), match[4]
        known = match[1] is not None or (half is not None and hour <= 12)
        if half is not None and hour <= 12:
            hour = hour % 12 + 12 * (half == "p")
        if known and minute <= 59 and hour * 60 + minute <= DAY and not (half == "a" and hour > 12):
            return hour * 60 + minute
    raise ValueError(f"{text!r} is no time; write HH:MM from 00:00 to 24:00")


def day_named(word: str, today: int) -> int | None:
    """The day that `2023-02-14`, `today`, `tomorrow` or `Tuesday` names; None for other words.

    0 and 1 are the two simulated days, 2 is any other. `today`: the day on which it is said.
    """
    word = word.lower()
    if word in ("today", "tomorrow"):
        return today + (word == "tomorrow")
    known = WEEKDAYS if word in WEEKDAYS else DATES if _DATE.fullmatch(word) else None
    return None if known is None else min(known.index(word), 2) if word in known else 2


def read_stamp(text: str) -> int:
    """The minute of a `YYYY-MM-DD HH:MM` text within the two days. Raises ValueError."""
    match = _STAMP.fullmatch(text.strip())
    if match is None or match[1] not in DATES:
        raise ValueError(f"{text!r} is no time of {DATES[0]} or {DATES[1]}; write it as {DATES[1]} 19:00")
    return DATES.index(match[1]) * DAY + read_time(f"{match[2]}:{match[3]}")


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
        return f"{self.activity}, {self.address}, {stamp(self.start)}-{time_text(self.end)}"


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
