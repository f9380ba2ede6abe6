"""What is recognised in an utterance before its activity is looked for: day, time, place, people, and a refusal."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from environments.stss.hearing.activities.tokens import Kind, SlotSpan
from environments.stss.hearing.asides import Weighed, parts, spans, weighed
from environments.stss.hearing.named.clock_words import NOON, ClockTime, clock_times
from environments.stss.hearing.named.days import named_days
from environments.stss.hearing.named.people import NamedPerson, people
from environments.stss.hearing.named.spots import Where, where
from environments.stss.hearing.named.times import When, when
from environments.stss.hearing.refusals import refuses
from environments.stss.hearing.slots import MAX_CHARS, NumberSpan, Situation
from environments.stss.hearing.words import plain, within
from environments.stss.town.places import Mention

_OPENING = 5
"""So many characters may stand before the day that opens an answer."""
FAR = 0.5
"""A place or time that is so much less likely than the likeliest one counts no longer, where one must be chosen."""


class Recognised(NamedTuple):
    """What is recognised in a text before its activity is looked for."""

    text: str
    named: Sequence[Weighed]
    """All days, times, places and people, in order."""
    day: int | None
    clock: When
    place: Where
    people: frozenset[str]
    """Those who take part."""
    rule: bool
    """Whether it refuses, by the rules alone."""

    @property
    def spans(self) -> list[SlotSpan]:
        """The parts of the text that name days, times and places, in order."""
        return spans(each.slot for each in self.named)

    @property
    def unclear(self) -> frozenset[str]:
        """Of day and place those of which it is unclear what belongs to the meeting."""
        return frozenset(each.slot.kind for each in self.named if each.unclear)


def recognise(text: str, situation: Situation) -> Recognised:
    """Day, time, place and people of an utterance, and whether the rules hear a refusal. The last ones are kept."""
    return _recognise(text, situation._replace(before=tuple(situation.before)))


def forget() -> None:
    """Forgets the texts that are kept."""
    _recognise.cache_clear()


@lru_cache(maxsize=256)
def _recognise(text: str, situation: Situation) -> Recognised:
    text = plain(text[:MAX_CHARS])
    named = weighed(text, situation)
    days = parts(named, NumberSpan, belonging=True)
    day = _day(text, days, situation)
    place = where(text, parts(named, Mention), parts(_surest(named, "place"), Mention, belonging=True))
    times = parts(named, ClockTime)
    clock = when(text, situation, day, times, parts(named, ClockTime, belonging=True))
    if clock.differ:
        clock = when(text, situation, day, times, parts(_surest(named, "time"), ClockTime, belonging=True))
    asked = {time.minute for time in clock_times(situation.question)}
    another = any(time.minute not in asked for time in times)
    moved = clock.start is not None and clock.start % NOON not in {minute % NOON for minute in asked}
    changed = bool(day is not None or moved or another or place.place)
    rule = refuses(text, situation, changes=changed)
    return Recognised(text, named, day, clock, place, _taking_part(text, situation, named), rule)


def _day(text: str, days: Sequence[NumberSpan], situation: Situation) -> int | None:
    """The last of some days, or the first where an answer to a question for the day opens with it."""
    if not days:
        return None
    asked = named_days(situation.question, situation.now) or within("which|what day|when", situation.question)
    opens = days[0].start <= _OPENING and re.match(r"[.,!;]", text[days[0].end :])
    return days[0 if asked and opens else -1].value


def _surest(named: Sequence[Weighed], kind: Kind) -> list[Weighed]:
    """All of one kind that is named, but for what is far less likely a part of the meeting than the likeliest one."""
    alike = [each for each in named if each.slot.kind == kind]
    most = max((each.likelihood for each in alike), default=0.0)
    return [each for each in alike if each.likelihood >= most - FAR]


def _taking_part(text: str, situation: Situation, named: Sequence[Weighed]) -> frozenset[str]:
    """Those who take part: named as such, or without being named, as in a yes to the question whether they come."""
    told = {one.name for one in parts(named, NamedPerson)}
    come = {one.name for one in parts(named, NamedPerson, belonging=True)}
    return frozenset(come | (people(text, situation) - told))
