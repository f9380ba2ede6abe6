"""What an invitation would commit a character to, what stands against that, and the nearest free time."""

from collections.abc import Sequence

from environments.stss.characters.driver import Context
from environments.stss.characters.read_back import HOUR, LEG, day_meant, end_meant, is_errand
from environments.stss.characters.routine import Habits
from environments.stss.hearing.slots import InvitationSlots
from environments.stss.town.clock import DAY, END, time_text
from environments.stss.town.schedule import Commitment, overlaps

STEP = 30
"""Minutes between alternative times to propose."""


def nearest_free(wanted: Sequence[Commitment], context: Context, own: Habits) -> tuple[Commitment, ...]:
    """The commitments at the nearest free time of the same day; empty if there is none."""
    day = wanted[0].start // DAY
    length = wanted[-1].end - wanted[0].start
    starts = sorted(range(day * DAY, (day + 1) * DAY, STEP), key=lambda start: (abs(start - wanted[0].start), start))
    for start in starts:
        moved = tuple(_moved(promise, start - wanted[0].start) for promise in wanted)
        if start + length <= END and obstacle(moved, context, own, early=False) is None:
            return moved
    return ()


def _moved(promise: Commitment, minutes: int) -> Commitment:
    return promise.model_copy(update={"start": promise.start + minutes, "end": promise.end + minutes})


def wanted_commitments(slots: InvitationSlots, context: Context, home: str) -> tuple[Commitment, ...] | None:
    """The requested commitments; None if they are after the two days. Without a named day, day 2 is meant."""
    if slots.activity is None or slots.start is None:
        raise ValueError("an invitation is weighed once it is complete")
    day = day_meant(slots, context.now)
    if day > 1:
        return None
    start, place = day * DAY + slots.start, slots.place or home
    end = day * DAY + end_meant(slots, slots.start)
    end = end if end > start else end + DAY
    first = Commitment(activity=slots.activity, address=place, start=start, end=end, with_whom=context.partner)
    if not is_errand(slots):
        return (first,)
    then = {"activity": slots.then_activity, "address": slots.then_place, "start": start + LEG, "after_previous": True}
    second = first.model_copy(update={**then, "end": end})
    return first.model_copy(update={"end": start + LEG}), second


def obstacle(wanted: Sequence[Commitment], context: Context, own: Habits, *, early: bool) -> str | None:
    """The first obstacle to commitments, as an utterance; None if there is none."""
    start, end = wanted[0].start, wanted[-1].end
    clock, day = start % DAY, start // DAY
    if start <= context.now:
        return "that time is over"
    if start >= END:
        return "that is too late at night"
    awake = own.wake <= clock < own.bed or clock + DAY < own.bed
    if not awake and not (early and 5 * HOUR <= clock < own.wake):
        return "I am asleep then"
    if own.duty is not None:
        opens, closes, work = (day * DAY + own.duty[0], day * DAY + own.duty[1], own.duty[2])
        elsewhere = not all(_within(promise.address, work) for promise in wanted)
        if elsewhere and overlaps(start, min(end, start + HOUR // 2), opens, closes):
            return f"I have to work until {time_text(closes)}"
    for promise in context.commitments:
        if overlaps(start, end, promise.start, promise.end):
            return f"I have promised somebody: {promise.activity}, {time_text(promise.start)}"
    return None


def _within(address: str, work: str) -> bool:
    return address.partition(":")[0] == work.partition(":")[0]
