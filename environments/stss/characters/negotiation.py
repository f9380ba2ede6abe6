"""How a rule-driven character negotiates an invitation: a function of the talk so far, without state."""

from typing import NamedTuple

from environments.stss.characters.corrections import (
    agrees,
    amended,
    as_answer,
    corrected,
    is_on_after_all,
    other_activity,
    refuses_time,
    second_invitation,
    without_denied,
)
from environments.stss.characters.doubts import missing_of_refusal, with_doubts
from environments.stss.characters.driver import Context
from environments.stss.characters.obstacles import nearest_free, obstacle, wanted_commitments
from environments.stss.characters.own_words import asked_for, own_invitation
from environments.stss.characters.read_back import HOUR
from environments.stss.characters.remarks import begins_with_yes, confirms, corrects, halts, settles, what_counts
from environments.stss.characters.routine import Habits, habits
from environments.stss.characters.stance import BEGINNING, Stance, missing_slots
from environments.stss.hearing.activities.activity import SURE
from environments.stss.hearing.named.people import people
from environments.stss.hearing.read import framed, likely_activity, named_in_answer, read, read_in_doubt
from environments.stss.hearing.recognise import recognise
from environments.stss.hearing.refusals import calls_off, declines
from environments.stss.hearing.slots import InvitationSlots, Situation
from environments.stss.hearing.words import within
from environments.stss.town.clock import DAY
from environments.stss.town.places import Places
from environments.stss.town.schedule import Commitment

USUAL = 15 * HOUR
"""The time of day to propose if the partner names none."""
NOT_A_DAY = "I can plan for today and tomorrow only. Would one of the two do?"
"""What stands against a day that is not simulated."""
PATIENCE = 3
"""Number of texts of the partner that tell nothing new, after which a character ends a talk without an agreement."""

_OF_A_TIME = "half past|quarter (?:past|to)|later|earlier|sooner|same (?:time|hour)"
"""Words of a text that speaks of a time which is not understood."""
_WHEN_AND_WHERE = ("place", "then_place", "day", "start", "end")


class _Turn(NamedTuple):
    """A text of the partner, as it is said to a character."""

    text: str
    situation: Situation
    context: Context
    home: str


def negotiate(context: Context, places: Places, home: str, heard: int = 0, stance: Stance = BEGINNING) -> Stance:
    """The stance after all lines of the talk so far, from `stance`, the one after the first `heard` of them."""
    for index, line in enumerate(context.lines[heard:], heard):
        if line.speaker == context.partner:
            situation = Situation(places, context.now, line.speaker, context.persona.name, context.lines[:index])
            turn = _Turn(line.text, situation, context, home)
            stance = with_doubts(stance, _after(stance, turn), turn.text, turn.situation)
    return stance


def _after(before: Stance, turn: _Turn) -> Stance:
    """The stance after one more text of the partner, without the question about people."""
    if before.move in ("accept", "settled"):
        return _after_agreement(before, turn)
    text, situation = without_denied(turn.text, before.guess), turn.situation
    latest = read_in_doubt(text, as_answer(situation) if _asked_what(before) else situation, before.missing)
    if before.move == "confirm_refusal":
        return _after_refusal(before, latest, turn)
    off = before.doubts and calls_off(text, before.slots.activity or "")
    if latest.negated or off or _declines(before, latest, text, situation):
        return _refused(before, latest, turn)
    if before.move == "propose" and _takes_up(text, latest, before):
        return _taken_up(before, turn)
    if before.move == "confirm_activity" and latest.activity is None and confirms(turn.text):
        return _next(before, _with_activity(before.slots.merged(latest), before.guess), turn)
    if before.move == "confirm_activity" and before.commitments and begins_with_yes(text):
        return before._replace(move="settled")
    if before.move == "ask_what_is_wrong":
        return _changed(before, corrected(before.slots, latest, text, situation), turn, text)
    return _changed(before, amended(before.slots, latest, text), turn, text)


def _after_agreement(before: Stance, turn: _Turn) -> Stance:
    """The stance after a text to what was agreed: only what corrects it, calls it off or asks changes something."""
    if more := second_invitation(before.slots, turn.text, turn.situation):
        return _next(Stance("chat", InvitationSlots(), named=before.named, earlier=before.kept), more, turn)
    answers = "?" in turn.situation.question and not before.asks_about_people
    text = turn.text if answers else what_counts(turn.text, before.slots, turn.situation)
    if calls_off(text, before.slots.activity or "") or (declines(turn.text) and not begins_with_yes(turn.text)):
        return _refused(before, InvitationSlots(people=people(turn.text, turn.situation)), turn)
    heard = read_in_doubt if corrects(text) else read
    latest = heard(text, turn.situation)._replace(people=people(turn.text, turn.situation), negated=False)
    slots = corrected(before.slots, latest, text, turn.situation)
    return _changed(before, slots, turn, text, may_rename=answers and within("what", turn.situation.question))


def _after_refusal(before: Stance, latest: InvitationSlots, turn: _Turn) -> Stance:
    """The stance after the answer to whether something won't take place."""
    if is_on_after_all(latest, turn.text, asked=bool(before.missing)):
        return _changed(before, amended(before.slots, latest, turn.text), turn, turn.text)
    return _refused(before, latest, turn)._replace(move="called_off")


def _refused(before: Stance, latest: InvitationSlots, turn: _Turn) -> Stance:
    """The question whether what was talked of, or what was named just now, won't take place, and which that is."""
    known = before.slots._replace(people=before.slots.people | latest.people)
    if not known.activity:
        known = known.merged(own_invitation(turn.situation) or InvitationSlots()).merged(latest)
    sure = calls_off(turn.text, known.activity or "") or declines(turn.text)
    return before._replace(move="confirm_refusal", slots=known, missing=missing_of_refusal(known, sure=sure))


def _changed(before: Stance, slots: InvitationSlots, turn: _Turn, text: str, *, may_rename: bool = False) -> Stance:
    """The stance to what a text changed, of which the part `text` counts; a correction may name another activity."""
    agreed = before.move in ("accept", "settled", "ask_what_is_wrong")
    moved = any(getattr(before.slots, name) not in (None, getattr(slots, name)) for name in _WHEN_AND_WHERE)
    renames = may_rename or (corrects(text) and (not moved or framed(text, turn.situation) is not None))
    other = other_activity(slots, text, turn.situation) if renames and before.slots.activity is not None else None
    if other and other.likelihood >= SURE:
        return _next(before, _with_activity(slots, other.words), turn)
    if other and other.words != before.guess:
        kept = before.commitments if agreed else ()
        asks = before._replace(move="confirm_activity", slots=slots, guess=other.words, missing=missing_slots(slots))
        return asks._replace(commitments=kept)
    return _unchanged(before, turn.text) if agreed and slots == before.slots else _next(before, slots, turn)


def _asked_what(stance: Stance) -> bool:
    """Whether the last question was for the activity."""
    return stance.move == "confirm_activity" or "activity" in stance.missing


def _declines(before: Stance, latest: InvitationSlots, text: str, situation: Situation) -> bool:
    """Whether the partner declines after all what the character has asked about or proposed."""
    if before.move == "propose":
        same = latest.start in (None, before.commitments[0].start % DAY)
        unnamed = same and (latest.place, latest.day, latest.end) == (None, None, None)
        return unnamed and refuses_time(text) and framed(text, situation) is None
    named = (latest.place, latest.start, latest.end)
    asked = before.move in ("ask", "confirm_activity", "decline", "ask_consent") and named == (None, None, None)
    return asked and declines(text) and not begins_with_yes(text)


def _with_activity(slots: InvitationSlots, activity: str) -> InvitationSlots:
    return slots._replace(activity=activity, then_activity=None, then_place=None)


def _unchanged(before: Stance, text: str) -> Stance:
    """The stance to a text that changes nothing of what was read back: settled, unless it denies or asks.

    One that is neither a yes nor a leave has it read back once more, since it may have called it off.
    """
    in_vain = before.in_vain + 1
    if before.move == "ask_what_is_wrong" and not (begins_with_yes(text) or text.startswith("Nothing")):
        return before._replace(in_vain=in_vain)
    if halts(text) and not before.asks_about_people:
        return before._replace(move="ask_what_is_wrong", in_vain=in_vain)
    plain = settles(text) or before.in_vain or before.asks_about_people
    if text.rstrip().endswith("?") or not plain:
        return before._replace(move="accept", in_vain=in_vain)
    return before._replace(move="settled")


def _next(before: Stance, slots: InvitationSlots, turn: _Turn) -> Stance:
    """The stance to the slots so far: asks for what is missing, else weighs them."""
    in_vain = before.in_vain + (slots == before.slots)
    base = Stance("chat", slots, guess=before.guess, named=before.named, in_vain=in_vain, earlier=before.earlier)
    context = turn.context._replace(commitments=(*turn.context.commitments, *before.earlier))
    if slots.activity is None:
        return _without_activity(before, base, turn)
    missing, own = missing_slots(slots), habits(turn.context.persona, turn.situation.places)
    asked = before.move == "ask" and missing == ("start",) == before.missing and "start" in asked_for(turn.situation)
    names = recognise(turn.text, turn.situation).clock.differ or within(_OF_A_TIME, turn.text)
    if asked and not names:
        return _suggest(base, context, own, turn.home)
    return base._replace(move="ask", missing=missing) if missing else _weigh(base, context, own, turn.home)


def _without_activity(before: Stance, base: Stance, turn: _Turn) -> Stance:
    """The stance where no activity is known: asks for it, by the name of a likely one; talks where nothing is."""
    asked = _asked_what(before)
    find = named_in_answer if asked else likely_activity
    found = find(without_denied(turn.text, before.guess), as_answer(turn.situation) if asked else turn.situation)
    if found and found.likelihood >= SURE:
        return _next(before, _with_activity(base.slots, found.words), turn)
    if found and found.words != before.guess:
        return base._replace(move="confirm_activity", guess=found.words, missing=missing_slots(base.slots)[1:])
    named = recognise(turn.text, turn.situation).spans
    empty = base.slots == InvitationSlots() and before.move == "chat" and not named
    return base if empty else base._replace(move="ask", missing=missing_slots(base.slots))


def _takes_up(text: str, latest: InvitationSlots, proposed: Stance) -> bool:
    """Whether an utterance accepts a proposal: with a yes, or by naming its time."""
    if latest.start is not None:
        return latest.start == proposed.commitments[0].start % DAY and not refuses_time(text)
    return agrees(text)


def _taken_up(proposed: Stance, turn: _Turn) -> Stance:
    """The stance after a yes to a proposal, which may change something else."""
    first, last = proposed.commitments[0], proposed.commitments[-1]
    end = None if proposed.slots.end is None else last.end % DAY
    slots = proposed.slots._replace(day=first.start // DAY, start=first.start % DAY, end=end)
    text = what_counts(turn.text, slots, turn.situation)
    latest = read(text, turn.situation)._replace(people=people(turn.text, turn.situation))
    return _next(proposed, amended(slots, latest, text), turn)


def _weigh(base: Stance, context: Context, own: Habits, home: str) -> Stance:
    wanted = wanted_commitments(base.slots, context, home)
    if wanted is None:
        return base._replace(move="decline", why=NOT_A_DAY)
    why = obstacle(wanted, context, own, early=base.slots.early)
    if why is None:
        return base._replace(move="accept", commitments=wanted)
    return _propose(base, wanted, context, own, why)


def _suggest(base: Stance, context: Context, own: Habits, home: str) -> Stance:
    """Proposes a time of its own, after the partner named none when asked."""
    wanted = wanted_commitments(base.slots._replace(start=USUAL, end=None), context, home)
    if wanted is None:
        return base._replace(move="decline", why=NOT_A_DAY)
    return _propose(base, wanted, context, own, "I need a time")


def _propose(base: Stance, wanted: tuple[Commitment, ...], context: Context, own: Habits, why: str) -> Stance:
    """Proposes the nearest free time of the same day, or declines if there is none."""
    free = nearest_free(wanted, context, own)
    return base._replace(move="propose" if free else "decline", commitments=free, why=why)
