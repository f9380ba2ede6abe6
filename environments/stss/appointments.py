"""Checks what replies plan and promise: the days and commitments that can be lived in the town."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

from pydantic import JsonValue

from environments.stss import spellings
from environments.stss.reply import Day, Listed, PerformerReply, PlannedRow, Promise, Text, fitted
from environments.stss.town.schedule import DAY, END, Commitment, DayPlan, Row, day_of, overlaps, time_text
from environments.stss.town.world import Places

HOUR, ERRAND = 60, 20
"""Minutes of a commitment without an end, and of a leg of an errand."""
NIGHT = 6 * 60
"""Minutes after midnight until which a day's bedtime may be."""
EVENING, MORNING = 18 * 60, 12 * 60
"""A row from one to the other, in minutes since midnight, ends at midnight at the earliest."""
EARLIEST, LATEST = 5 * 60, 23 * 60
"""Commitments must start between these times of day, in minutes since midnight."""


class ActionError(ValueError):
    """A readable reply that asks for something not allowed."""


class CannotBeKept(ActionError):
    """A readable commitment that is past, at night, or overlaps another one."""


class RoughDay(PerformerReply):
    """A plan of a day of which only a part may be readable."""

    wake: Text | None = None
    bed: Text | None = None
    schedule: Annotated[tuple[JsonValue, ...], Listed] = ()


def rows_of(planned: tuple[PlannedRow, ...], day: int, places: Places, home: str) -> tuple[Row, ...]:
    """The rows of a day with addresses. Raises ActionError for unknown places, wrong times and overlaps."""
    rows: list[Row] = []
    for row in planned:
        start, end = day * DAY + _time(row.start, day), day * DAY + (_time(row.end, day) or DAY)
        if end % DAY <= MORNING and start % DAY >= EVENING:
            end = max(end, (day + 1) * DAY)
        if end <= start:
            raise ActionError(f"{row.start}-{row.end}: a row must end after it starts")
        if rows and start < rows[-1].end:
            end_text = time_text(rows[-1].end)
            raise ActionError(f"{row.start}: rows must be in order and must not overlap; the last ends {end_text}")
        rows.append(Row(start, end, row.activity, _address(row.place, row.object, places, home)))
    return tuple(rows)


def day_plan_of(reply: Day, day: int, places: Places, home: str) -> DayPlan:
    """The checked plan of a day. Raises ActionError."""
    wake, bed = _time(reply.wake, day), _time(reply.bed, day)
    if wake < 4 * 60 or (4 * 60 <= bed <= wake):
        raise ActionError(f"wake {reply.wake}, bed {reply.bed}: wake at 04:00 or later, and go to bed after that")
    first = day * DAY
    late = DAY if bed < wake else 0
    return DayPlan(first + wake, first + bed + late, rows_of(reply.schedule, day, places, home))


def readable_day(reply: RoughDay, day: int, places: Places, home: str) -> DayPlan:
    """What can be read of a day's plan, without rows that overlap an earlier one. Raises ActionError if nothing."""
    rows = list[Row]()
    for each in reply.schedule:
        with suppress(ValueError):
            (row,) = rows_of((fitted(each, PlannedRow),), day, places, home)
            rows += [row] if not any(overlaps(row.start, row.end, one.start, one.end) for one in rows) else []
    for wake, bed in ((reply.wake, reply.bed), (None, None)):
        with suppress(ActionError):
            if rows or wake or bed:
                times = Day.model_construct(wake=wake or "07:00", bed=bed or "23:00", schedule=())
                return day_plan_of(times, day, places, home)._replace(rows=tuple(sorted(rows)))
    raise ActionError("no row of the schedule can be read")


def day_at_home(day: int) -> DayPlan:
    """A day without a plan."""
    return DayPlan(day * DAY + 7 * 60, day * DAY + 23 * 60, ())


def commitment_of(
    promise: Promise, now: int, existing: Sequence[Commitment], places: Places, home: str, *, length: int = HOUR
) -> Commitment:
    """The checked commitment; without an end it is `length` minutes long.

    Raises ActionError for an unknown place or time, and CannotBeKept if it is past, at night, or overlaps an existing
    one.
    """
    start, end = _span(promise, now, length)
    address = _address(promise.place, None, places, home)
    if end <= start:
        raise ActionError(f"{promise.start}-{promise.end}: a commitment must end after it starts")
    if start <= now:
        raise CannotBeKept(f"{promise.start}: that time is over")
    if start >= END or not EARLIEST <= start % DAY < LATEST:
        raise CannotBeKept(f"{promise.start}: commitments begin from 05:00 to 22:40 of the two days")
    for other in existing:
        if overlaps(start, end, other.start, other.end):
            raise CannotBeKept(f"you are committed then: {other.line()}")
    return Commitment(activity=promise.activity, address=address, start=start, end=end)


def _span(promise: Promise, now: int, length: int) -> tuple[int, int]:
    """Start and end; without a date a start is on day 2, the day of the goals, and an end on the day of its start."""
    try:
        start = spellings.moment(promise.start, day_of(now), 1)
        if promise.end is None or spellings.nothing(promise.end):
            return start, start + length
        if promise.end.startswith("+"):
            return start, start + spellings.length(promise.end[1:])
        end = spellings.moment(promise.end, day_of(now), day_of(start))
    except ValueError as error:
        raise ActionError(str(error)) from error
    return start, end + DAY if end == day_of(start) * DAY else end


def _address(place: str | None, thing: str | None, places: Places, home: str) -> str:
    """The address of a place, or of an object in it where there is one of that name."""
    if place is None or spellings.at_home(place):
        return home
    found = filter(None, map(places.find, spellings.place_names(place)))
    address = next(found, None)
    if address is None:
        raise ActionError(f"{place!r} is no place you know; take one from the list, or `home`")
    longer = f"{address}:{thing}" if thing and address.count(":") == 1 else ""
    return places.find(longer) or address if longer else address


def _time(text: str, day: int) -> int:
    """Minutes since the midnight of a day; the night after it ends at 06:00."""
    try:
        minute = spellings.moment(text, day, day) - day * DAY
    except ValueError as error:
        raise ActionError(str(error)) from error
    if not 0 <= minute < DAY + NIGHT:
        raise ActionError(f"{text!r} is not on the day that is planned")
    return minute
