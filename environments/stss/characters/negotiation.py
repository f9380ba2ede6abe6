"""How a rule-driven character negotiates an invitation: a function of the talk so far, without state."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from environments.stss.characters.corrections import (
    agrees,
    amended,
    as_answer,
    begins_with_yes,
    corrected,
    denies,
    is_on_after_all,
    other_activity,
)
from environments.stss.characters.driver import Context
from environments.stss.characters.read_back import HOUR, LEG, day_meant, end_meant, is_errand
from environments.stss.characters.routine import Habits, habits
from environments.stss.hearing.activities.activity import SURE
from environments.stss.hearing.people import people_named
from environments.stss.hearing.read import likely_activity, named_in_answer, read
from environments.stss.hearing.refusals import declines
from environments.stss.hearing.slots import InvitationSlots, Situation
from environments.stss.town.clock import DAY, END, time_text
from environments.stss.town.places import Places
from environments.stss.town.schedule import Commitment, overlaps

Move = Literal[
    "chat",
    "ask",
    "confirm_activity",
    "propose",
    "decline",
    "accept",
    "settled",
    "ask_what_is_wrong",
    "confirm_refusal",
    "called_off",
]
USUAL = 15 * HOUR
"""The time of day to propose if the partner names none."""
STEP = 30
"""Minutes between alternative times to propose."""
PATIENCE = 3
"""Number of texts of the partner that tell nothing new, after which a character ends a talk without an agreement."""


class Stance(NamedTuple):
    """A character's next move after the lines so far."""

    move: Move
    slots: InvitationSlots
    commitments: tuple[Commitment, ...] = ()
    """The commitments that it agrees to (accept, settled) or proposes (propose)."""
    why: str = ""
    """The obstacle, as an utterance (propose, decline)."""
    missing: tuple[str, ...] = ()
    """The slots that it asks for (ask, confirm_activity), of activity, place and start."""
    guess: str = ""
    """The activity that it asks whether it is meant (confirm_activity)."""
    named: frozenset[str] = frozenset()
    """Those of whom it asks, or has asked, whether they take part."""
    asks_about_people: bool = False
    in_vain: int = 0
    """Number of texts so far that told nothing new."""


class _Turn(NamedTuple):
    """A text of the partner, as it is said to a character."""

    text: str
    situation: Situation
    context: Context
    home: str


def negotiate(context: Context, places: Places, home: str) -> Stance:
    """The stance after all lines of the talk so far."""
    stance = Stance("chat", InvitationSlots())
    for index, line in enumerate(context.lines):
        if line.speaker == context.partner:
            situation = Situation(places, context.now, line.speaker, context.persona.name, context.lines[:index])
            turn = _Turn(line.text, situation, context, home)
            stance = _with_people(stance, _after(stance, turn), turn)
    return stance


def _after(before: Stance, turn: _Turn) -> Stance:
    """The stance after one more text of the partner, without the question about people."""
    text, situation = turn.text, turn.situation
    latest = read(text, as_answer(situation) if _asked_what(before) else situation)
    if before.move == "confirm_refusal" and not is_on_after_all(before.slots, latest, text):
        return before._replace(move="called_off", slots=before.slots.merged(latest))
    if before.move != "confirm_refusal" and (latest.negated or _declines(before, latest, text)):
        return before._replace(move="confirm_refusal", slots=before.slots.merged(latest))
    if before.move == "propose" and _takes_up(text, latest, before):
        return before._replace(move="accept", slots=_proposed(before))
    if before.move == "confirm_activity" and latest.activity is None and begins_with_yes(text):
        return _next(before, _renamed(before.slots.merged(latest), before.guess), turn)
    settling = before.move in ("accept", "settled", "ask_what_is_wrong")
    slots = corrected(before.slots, latest, text, situation) if settling else amended(before.slots, latest, text)
    other = other_activity(slots, text, situation) if before.slots.activity is not None else None
    if other and other.likelihood >= SURE:
        return _next(before, _renamed(slots, other.words), turn)
    if other and other.words != before.guess:
        return before._replace(move="confirm_activity", slots=slots, guess=other.words, missing=_missing(slots))
    return _unchanged(before, text) if settling and slots == before.slots else _next(before, slots, turn)


def _asked_what(stance: Stance) -> bool:
    """Whether the last question was for the activity."""
    return stance.move == "confirm_activity" or "activity" in stance.missing


def _declines(before: Stance, latest: InvitationSlots, text: str) -> bool:
    """Whether the partner declines after all what the character has agreed to or asked about."""
    named = (latest.place, latest.start, latest.end)
    return before.move in ("ask", "accept", "settled", "decline") and named == (None, None, None) and declines(text)


def _renamed(slots: InvitationSlots, activity: str) -> InvitationSlots:
    return slots._replace(activity=activity, then_activity=None, then_place=None)


def _unchanged(before: Stance, text: str) -> Stance:
    """The stance to a text that changes nothing of what was read back: settled, unless it denies."""
    if denies(text) and not before.asks_about_people:
        return before._replace(move="ask_what_is_wrong", in_vain=before.in_vain + 1)
    return before._replace(move="settled")


def _next(before: Stance, slots: InvitationSlots, turn: _Turn) -> Stance:
    """The stance to the slots so far: asks for what is missing, else weighs them."""
    in_vain = before.in_vain + (slots == before.slots)
    base = Stance("chat", slots, guess=before.guess, named=before.named, in_vain=in_vain)
    if slots.activity is None:
        return _without_activity(before, base, turn)
    missing, own = _missing(slots), habits(turn.context.persona, turn.situation.places)
    if before.move == "ask" and missing == ("start",) == before.missing:
        return _suggest(base, turn.context, own, turn.home)
    return base._replace(move="ask", missing=missing) if missing else _weigh(base, turn.context, own, turn.home)


def _without_activity(before: Stance, base: Stance, turn: _Turn) -> Stance:
    """The stance where no activity is known: asks for it, by the name of a likely one; talks where nothing is."""
    asked = _asked_what(before)
    find = named_in_answer if asked else likely_activity
    found = find(turn.text, as_answer(turn.situation) if asked else turn.situation)
    if found and found.words != before.guess:
        return base._replace(move="confirm_activity", guess=found.words, missing=_missing(base.slots)[1:])
    empty = base.slots == InvitationSlots() and before.move == "chat"
    return base if empty else base._replace(move="ask", missing=_missing(base.slots))


def _missing(slots: InvitationSlots) -> tuple[str, ...]:
    """The slots without which nothing is agreed, in the order in which they are asked for."""
    known = {"activity": slots.activity, "place": slots.place or (slots.online or None), "start": slots.start}
    return tuple(name for name, value in known.items() if value is None)


def _with_people(before: Stance, after: Stance, turn: _Turn) -> Stance:
    """The stance with the question whether those who were named take part, once for each of them."""
    if before.asks_about_people and agrees(turn.text):
        after = after._replace(slots=after.slots._replace(people=after.slots.people | before.named))
    named = after.named | (people_named(turn.text, turn.situation) - after.slots.people)
    asks = named != before.named and after.move in ("ask", "confirm_activity", "accept")
    return after._replace(named=named, asks_about_people=asks)


def _takes_up(text: str, latest: InvitationSlots, proposed: Stance) -> bool:
    """Whether an utterance accepts a proposal: with a yes, or by naming its time."""
    start = proposed.commitments[0].start % DAY
    return latest.start == start if latest.start is not None else agrees(text)


def _proposed(stance: Stance) -> InvitationSlots:
    """The slots with the time that was proposed."""
    first, last = stance.commitments[0], stance.commitments[-1]
    return stance.slots._replace(day=first.start // DAY, start=first.start % DAY, end=last.end % DAY)


def _weigh(base: Stance, context: Context, own: Habits, home: str) -> Stance:
    wanted = _commitments(base.slots, context, home)
    if wanted is None:
        return base._replace(move="decline", why="that is not a day I can plan for")
    obstacle = _obstacle(wanted, context, own, early=base.slots.early)
    if obstacle is None:
        return base._replace(move="accept", commitments=wanted)
    return _propose(base, wanted, context, own, obstacle)


def _suggest(base: Stance, context: Context, own: Habits, home: str) -> Stance:
    """Proposes a time of its own, after the partner named none when asked."""
    wanted = _commitments(base.slots._replace(start=USUAL, end=None), context, home)
    if wanted is None:
        return base._replace(move="decline", why="that is not a day I can plan for")
    return _propose(base, wanted, context, own, "I need a time")


def _propose(base: Stance, wanted: tuple[Commitment, ...], context: Context, own: Habits, obstacle: str) -> Stance:
    """Proposes the nearest free time of the same day, or declines if there is none."""
    day = wanted[0].start // DAY
    length = wanted[-1].end - wanted[0].start
    starts = sorted(range(day * DAY, (day + 1) * DAY, STEP), key=lambda start: (abs(start - wanted[0].start), start))
    for start in starts:
        moved = tuple(_moved(promise, start - wanted[0].start) for promise in wanted)
        if start + length <= END and _obstacle(moved, context, own, early=False) is None:
            return base._replace(move="propose", commitments=moved, why=obstacle)
    return base._replace(move="decline", why=obstacle)


def _moved(promise: Commitment, minutes: int) -> Commitment:
    return promise.model_copy(update={"start": promise.start + minutes, "end": promise.end + minutes})


def _commitments(slots: InvitationSlots, context: Context, home: str) -> tuple[Commitment, ...] | None:
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
    second = first.model_copy(update={**then, "end": max(end, start + 2 * LEG)})
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
