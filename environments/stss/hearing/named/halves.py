"""In which half of the day a time is that a text names."""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from environments.stss.hearing.named.clock_words import HOURS, NOON, ClockTime, DayPart, clock_times, day_parts, in_part
from environments.stss.hearing.slots import Situation
from environments.stss.hearing.words import within
from environments.stss.town.clock import DAY

_BY_A_TIME = re.compile(r"[ ,]*(?:(?:in the|at|this|today|tomorrow|on \w+)\W+)?", re.IGNORECASE)
"""What stands between a time and the part of the day that belongs to it, as in `six in the evening`."""
_LEADS_TO_A_TIME = re.compile(r"[ ,]*(?:(?:at|by|from|about|around)\W+){0,2}", re.IGNORECASE)
"""What stands between a part of the day and a time that belongs to it, as in `tomorrow morning at six`."""
_MORNING = re.compile(r"\W*(?:in the )?morning\b", re.IGNORECASE)
OPENS_WITH_HALF = re.compile(r"(?:in the )?(?:morning|afternoon|evening)[.,!]", re.IGNORECASE)
"""How an answer begins that first tells the half of the day, without a time."""
_TO = re.compile(r"\s*(?:to|until|till|-|–)\s*", re.IGNORECASE)
_OPENING = 12
"""Characters within which an answer names the half of the day."""
Source = Literal["itself", "text", "before", "near", "usual"]
"""What tells the half of the day: the time itself, a part of the day in the text or in what was said before, a time
that was said before, or what is usual."""


class HalfClues(NamedTuple):
    """What tells the half of the day."""

    text: str
    parts: Sequence[DayPart]
    told: Sequence[str]
    """Halves of the day in what was said before, latest first."""
    before: Sequence[int]
    """Times that were named before, latest first."""
    situation: Situation
    day: int | None

    def is_of(self, part: DayPart, time: ClockTime) -> bool:
        """Whether a part of the day stands right after a time, or right before it."""
        if part.start >= time.end:
            return _BY_A_TIME.fullmatch(self.text, time.end, part.start) is not None
        return _LEADS_TO_A_TIME.fullmatch(self.text, part.end, time.start) is not None


def half_clues(text: str, situation: Situation, day: int | None) -> HalfClues:
    """What a text and what was said before it tell of the half of the day."""
    return HalfClues(text, day_parts(text), told_before(situation), times_before(situation), situation, day)


def told_before(situation: Situation) -> list[str]:
    """Halves of the day in what was said before, latest line first; in each line those beside a time come first."""
    return [part.half for line in reversed(situation.before) for part in _by_times(line.text)]


def _by_times(text: str) -> list[DayPart]:
    """The parts of the day that a text names, latest first, after those that stand by a time."""
    ends = [time.end for time in clock_times(text)]
    parts = reversed(day_parts(text))
    return sorted(parts, key=lambda part: not any(_BY_A_TIME.fullmatch(text, end, part.start) for end in ends))


def part_only(text: str, situation: Situation) -> int | None:
    """The time that was in question, if the text names only its half of the day."""
    asked, parts = clock_times(situation.question), day_parts(text)
    if not asked or asked[-1].exact:
        return None
    if _MORNING.match(text) and within("morning", situation.question):  # an answer, no greeting
        return in_part(asked[-1].minute, "am")
    return in_part(asked[-1].minute, parts[0].half) if parts and parts[0].start <= _OPENING else None


def times_before(situation: Situation) -> list[int]:
    """Minutes since midnight of the times that were named before, latest first, where they are clear.

    Of a range that closes a line only the first time counts.
    """
    found = []
    for line in reversed(situation.before):
        parts = [part.half for part in day_parts(line.text)]
        times = clock_times(line.text)
        if len(times) > 1 and _TO.fullmatch(line.text, times[-2].end, times[-1].start):
            times = times[:-1]
        for time in reversed(times):
            moved = [minute for half in parts if (minute := in_part(time.minute, half)) is not None]
            clear = time.minute if time.exact else moved[0] if moved else _usual(time.minute, situation, None)
            found += [] if clear is None else [clear]
    return found


def resolved(time: ClockTime, clues: HalfClues) -> int | None:
    """Minutes since midnight; None if the half of the day is not clear."""
    return with_source(time, clues)[0]


def with_source(time: ClockTime, clues: HalfClues) -> tuple[int | None, Source]:
    """Minutes since midnight, and what tells the half of the day."""
    if time.exact:
        return time.minute, "itself"
    before = clues.before[0] if clues.before else None
    own = any(clues.is_of(part, time) for part in clues.parts)
    if before is not None and not own and before % NOON == time.minute % NOON:
        return before, "near"
    halves: Sequence[tuple[str, Source]] = (
        *((half, "text") for half in _nearest(time, clues.parts)),
        *((half, "before") for half in clues.told),
    )
    for half, source in halves:
        found = in_part(time.minute, half)
        if found is not None:
            return found, source
    if before is not None:
        return min((time.minute, time.minute + NOON), key=lambda minute: abs(minute - before)), "near"
    return _usual(time.minute, clues.situation, clues.day), "usual"


def _nearest(time: ClockTime, parts: Sequence[DayPart]) -> list[str]:
    """The halves of the day, nearest first; what stands before the time is twice as far."""

    def distance(part: DayPart) -> int:
        return part.start - time.end if part.start >= time.end else 2 * (time.start - part.end)

    return [part.half for part in sorted(parts, key=distance)]


def _usual(minute: int, situation: Situation, day: int | None) -> int | None:
    """Without a word on the half of the day: the only one that is left of today, or that people are out and about."""
    if minute < 6 * HOURS:
        return minute + NOON
    today = day is not None and day == situation.now // DAY
    if today and minute <= situation.now % DAY:
        return minute + NOON
    return minute if minute >= 9 * HOURS else None
