"""What a character asks besides, where it is in doubt: its own question again, who takes part, what is called off."""

from environments.stss.characters.corrections import agrees, not_coming
from environments.stss.characters.own_words import asked_for, asked_who, own_invitation
from environments.stss.characters.stance import Stance, missing_slots
from environments.stss.hearing.named.people import people_named, people_out
from environments.stss.hearing.read import may_refuse
from environments.stss.hearing.refusals import may_call_off, offers
from environments.stss.hearing.slots import InvitationSlots, Situation
from environments.stss.hearing.words import sentences

_ASKS_WHO = frozenset({"ask", "ask_consent", "confirm_activity", "accept", "decline"})
"""Moves that leave room for the question who takes part."""


def with_doubts(before: Stance, after: Stance, text: str, situation: Situation) -> Stance:
    """The stance after a text, with the questions that its doubts ask."""
    doubting = _not_agreed_yet(before, _asked_again(after, text, situation), text, situation)
    asked = _with_people(before, doubting, text, situation)
    return asked._replace(doubts=_may_be_off(asked, text, situation))


def _not_agreed_yet(before: Stance, after: Stance, text: str, situation: Situation) -> Stance:
    """The stance, without an agreement where the text that leads to it may refuse, unless that was asked already."""
    leads = after.move in ("accept", "propose") and before.move in ("chat", "ask", "confirm_activity")
    if not leads or before.doubts or not may_refuse(text, situation):
        return after
    return after._replace(move="ask", missing=(), commitments=(), why="")


def _may_be_off(stance: Stance, text: str, situation: Situation) -> bool:
    """Whether to ask besides if something is called off."""
    match stance.move:
        case "chat" | "confirm_activity":
            return may_call_off(text) or may_refuse(text, situation)
        case "ask":
            return may_refuse(text, situation)
        case _:
            return False


def missing_of_refusal(slots: InvitationSlots, *, sure: bool) -> tuple[str, ...]:
    """What a character asks for that hears a refusal: what is called off, if it can't tell, and where and when.

    It asks for the latter where neither day nor time is known, and where the text may be no refusal but a change
    (not `sure`).
    """
    unknown = missing_slots(slots)
    if not sure:
        unknown = ("place", "start")
    elif slots.day is not None or slots.start is not None:
        unknown = ()
    return unknown if slots.activity else ("activity", *(name for name in unknown if name != "activity"))


def _asked_again(after: Stance, text: str, situation: Situation) -> Stance:
    """The stance with the character's own question once more, where nothing was heard in answer.

    Where a text names nothing for sure and is no plain refusal of its invitation, it asks whether that was a yes.
    """
    nothing = after.move == "chat" or (after.move == "confirm_activity" and after.slots == InvitationSlots())
    own = own_invitation(situation) if nothing else None
    if own and not all(sentence.endswith("?") for sentence in sentences(text)):
        return after._replace(move="ask_consent", slots=own, missing=("place", "start") if offers(text) else ())
    if after.move != "chat":
        return after
    missing = tuple(name for name in missing_slots(after.slots) if name in asked_for(situation))
    return after._replace(move="ask", missing=missing) if missing else after


def _with_people(before: Stance, after: Stance, text: str, situation: Situation) -> Stance:
    """The stance with the question whether those who were named take part, once for each of them."""
    if before.asks_about_people and any(agrees(sentence) for sentence in sentences(text)):
        come = before.named - not_coming(text, situation)
        after = after._replace(slots=after.slots._replace(people=after.slots.people | come))
    told = people_named(text, situation) - people_out(text, situation)
    unclear = (before.unclear | told) - after.named - after.slots.people
    unheard = asked_who(text, situation) and not (before.asks_about_people or after.slots.people)
    if after.move == "chat" and unheard:
        after = after._replace(move="ask", missing=())
    if not (unclear or unheard) or after.move not in _ASKS_WHO:
        return after._replace(unclear=unclear, asks_about_people=False)
    return after._replace(named=after.named | unclear, unclear=frozenset(), asks_about_people=True)
