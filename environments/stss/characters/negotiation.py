"""How a rule-driven character negotiates an invitation: a function of the talk so far, without state."""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from environments.stss.characters.driver import Context
from environments.stss.characters.routine import Habits, habits
from environments.stss.hearing.read import read
from environments.stss.hearing.slots import InvitationSlots, Situation
from environments.stss.town.clock import DAY, END, stamp, time_text
from environments.stss.town.places import Places
from environments.stss.town.schedule import Commitment, overlaps

Move = Literal["chat", "ask_activity", "ask_time", "ask_place", "propose", "decline", "accept", "settled", "called_off"]
HOUR = 60
LEG = 10
"""Minutes for each leg of an errand."""
USUAL = 15 * HOUR
"""The time of day to propose if the partner names none."""
STEP = 30
"""Minutes between alternative times to propose."""
PATIENCE = 3
"""Number of own turns without an agreement after which a character ends the talk."""
_YES = re.compile(
    r"\b(?:yes|yeah|sure|ok|okay|fine|great|perfect|agreed?|deal|works|good|see you|of course|sounds)\b", re.IGNORECASE
)
_NO = re.compile(r"\b(?:no|not|can't|cannot|unfortunately|sorry|pity|too bad)\b", re.IGNORECASE)


class Stance(NamedTuple):
    """A character's next move after the lines so far."""

    move: Move
    slots: InvitationSlots
    commitments: tuple[Commitment, ...] = ()
    """The commitments that it agrees to (accept, settled) or proposes (propose)."""
    why: str = ""
    """The obstacle, as an utterance (propose, decline)."""


def negotiate(context: Context, places: Places, home: str) -> Stance:
    """The stance after all lines of the talk so far."""
    stance = Stance("chat", InvitationSlots())
    for index, line in enumerate(context.lines):
        if line.speaker == context.partner:
            situation = Situation(places, context.now, line.speaker, context.persona.name, context.lines[:index])
            stance = _after(stance, line.text, situation, context, home)
    return stance


def _after(before: Stance, text: str, situation: Situation, context: Context, home: str) -> Stance:
    latest, places = read(text, situation), situation.places
    if latest.negated:
        return Stance("called_off", before.slots)
    if before.move in ("accept", "settled"):
        return before._replace(move="settled")
    if before.move == "propose" and _agrees(text, latest, before):
        return before._replace(move="accept")
    slots = before.slots.merged(latest)
    if slots.activity is None:
        return Stance("ask_activity" if slots.place or slots.start is not None else "chat", slots)
    if slots.place is None and not slots.online:
        return Stance("ask_place", slots)
    if slots.start is None:
        asked = before.move == "ask_time"
        return _suggest(slots, context, habits(context.persona, places), home) if asked else Stance("ask_time", slots)
    return _weigh(slots, context, habits(context.persona, places), home)


def _agrees(text: str, latest: InvitationSlots, proposed: Stance) -> bool:
    """Whether an utterance accepts a proposal: with a yes, or by naming its time."""
    start = proposed.commitments[0].start % DAY
    if latest.start is not None:
        return latest.start == start
    return bool(_YES.search(text)) and not _NO.search(text)


def _weigh(slots: InvitationSlots, context: Context, own: Habits, home: str) -> Stance:
    wanted = _commitments(slots, context, home)
    if wanted is None:
        return Stance("decline", slots, why="that is not a day I can plan for")
    obstacle = _obstacle(wanted, context, own, early=slots.early)
    if obstacle is None:
        return Stance("accept", slots, wanted)
    return _propose(slots, wanted, context, own, obstacle)


def _suggest(slots: InvitationSlots, context: Context, own: Habits, home: str) -> Stance:
    """Proposes a time of its own, after the partner named none when asked."""
    wanted = _commitments(slots._replace(start=USUAL, end=None), context, home)
    if wanted is None:
        return Stance("decline", slots, why="that is not a day I can plan for")
    return _propose(slots, wanted, context, own, "I need a time")


def _propose(
    slots: InvitationSlots, wanted: tuple[Commitment, ...], context: Context, own: Habits, obstacle: str
) -> Stance:
    """Proposes the nearest free time of the same day, or declines if there is none."""
    day = wanted[0].start // DAY
    length = wanted[-1].end - wanted[0].start
    starts = sorted(range(day * DAY, (day + 1) * DAY, STEP), key=lambda start: (abs(start - wanted[0].start), start))
    for start in starts:
        moved = tuple(_moved(promise, start - wanted[0].start) for promise in wanted)
        if start + length <= END and _obstacle(moved, context, own, early=False) is None:
            return Stance("propose", slots, moved, why=obstacle)
    return Stance("decline", slots, why=obstacle)


def _moved(promise: Commitment, minutes: int) -> Commitment:
    return promise.model_copy(update={"start": promise.start + minutes, "end": promise.end + minutes})


def _commitments(slots: InvitationSlots, context: Context, home: str) -> tuple[Commitment, ...] | None:
    """The requested commitments; None if they are after the two days. Without a named day, day 2 is meant."""
    if slots.activity is None or slots.start is None:
        raise ValueError("an invitation is weighed once it is complete")
    day = slots.day if slots.day is not None else min(context.now // DAY + 1, 1)
    if day > 1:
        return None
    start, place = day * DAY + slots.start, slots.place or home
    first = Commitment(activity=slots.activity, address=place, start=start, end=start + HOUR, with_whom=context.partner)
    if slots.then_activity is None or slots.then_place is None:
        end = day * DAY + slots.end if slots.end is not None else start + HOUR
        return (first.model_copy(update={"end": end if end > start else end + DAY}),)
    second = first.model_copy(
        update={
            "activity": slots.then_activity,
            "address": slots.then_place,
            "start": start + LEG,
            "end": start + 2 * LEG,
            "after_previous": True,
        }
    )
    return first.model_copy(update={"end": start + LEG}), second


def _obstacle(wanted: Sequence[Commitment], context: Context, own: Habits, *, early: bool) -> str | None:
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


def commitments_text(commitments: Sequence[Commitment]) -> str:
    """Commitments in words from which the slots can be parsed again."""
    first, *rest = commitments
    where = "" if first.address == "" else f" at {first.address}"
    then = "".join(f" and then {leg.activity} at {leg.address}" for leg in rest)
    return f"{first.activity}{where} on {stamp(first.start)}{then}"
