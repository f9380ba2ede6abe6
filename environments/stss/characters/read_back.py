"""What a character has understood, in words that the partner can correct and the parser can read again."""

from collections.abc import Sequence

from environments.stss.hearing.slots import InvitationSlots
from environments.stss.hearing.words import within
from environments.stss.town.clock import DATES, DAY, time_text
from environments.stss.town.schedule import Commitment

HOUR = 60
LEG = 10
"""Minutes for each leg of an errand."""
NIGHT = 6 * HOUR
"""Minutes that something may last past midnight."""


def heard_text(slots: InvitationSlots, now: int) -> str:
    """All slots in words, with the day and the length that are assumed where a time was named without them."""
    first = " ".join(filter(None, (slots.activity, _where(slots), _when(slots, now), _with(slots))))
    return f"{first} and then {slots.then_activity} at {slots.then_place}" if is_errand(slots) else first


def commitments_text(commitments: Sequence[Commitment]) -> str:
    """Commitments in words: an activity, or the two legs of an errand."""
    return heard_text(as_slots(commitments), commitments[0].start)


def as_slots(commitments: Sequence[Commitment]) -> InvitationSlots:
    """The slots of a commitment, or of the two legs of an errand."""
    first, *rest = commitments
    return InvitationSlots(
        activity=first.activity,
        place=first.address,
        day=first.start // DAY,
        start=first.start % DAY,
        end=commitments[-1].end % DAY,
        then_activity=rest[0].activity if rest else None,
        then_place=rest[0].address if rest else None,
    )


def is_errand(slots: InvitationSlots) -> bool:
    """Whether there are two legs."""
    return slots.then_activity is not None and slots.then_place is not None


def day_meant(slots: InvitationSlots, now: int) -> int:
    """The day named; where none was, the second of the two days."""
    return slots.day if slots.day is not None else min(now // DAY + 1, 1)


def end_meant(slots: InvitationSlots, start: int) -> int:
    """The end named; where none fits the start, an hour after it, for an errand at least the time of its legs."""
    legs = start + 2 * LEG
    if slots.end is None or (slots.end <= start and slots.end + DAY - start > NIGHT):
        return legs if is_errand(slots) else start + HOUR
    return legs if is_errand(slots) and start < slots.end < legs else slots.end


def _where(slots: InvitationSlots) -> str:
    if slots.place:
        return f"at {slots.place}"
    return "online" if slots.online and not within("online", slots.activity or "") else ""


def _when(slots: InvitationSlots, now: int) -> str:
    if slots.start is not None:
        end = "an open end" if "end" in slots.doubted else time_text(end_meant(slots, slots.start))
        times = f"{time_text(slots.start)} to {end}"
        return times if "day" in slots.doubted else f"on {_date(day_meant(slots, now))} {times}"
    day = "" if slots.day is None else f"on {_date(slots.day)}"
    return f"{day} until {time_text(slots.end)}".strip() if slots.end is not None else day


def _date(day: int) -> str:
    return DATES[day] if day in (0, 1) else "another day"


def _with(slots: InvitationSlots) -> str:
    """Those who take part, but for those whom the activity names."""
    names = [name for name in sorted(slots.people) if not within(name.split()[0], slots.activity or "")]
    return f"with {listed(names)}" if names else ""


def listed(words: Sequence[str]) -> str:
    """Words as in `one, two and three`."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
