"""How good a character's next move on an utterance is: understood, asked about, read back, or silently wrong."""

from typing import Literal

from environments.stss.hearing.labelled import SLOTS, Labelled, Slot, Slots, verdict
from environments.stss.hearing.slots import SpokenLine
from environments.stss.town.clock import DATES, time_text
from environments.stss.understanding.listener import Addressee, PlayedReply, listen, meant

Outcome = Literal["understood", "asked", "read_back", "silent"]
_TIME = frozenset({"day", "start", "end"})

_ON = ("ask", "accept", "propose", "confirm_activity")
"""Moves by which a character says that it takes something to take place."""


async def answered(said: Labelled) -> tuple[PlayedReply, Outcome]:
    """The character's next move on an utterance, and how good it is."""
    reply = await Addressee(said).next_move((*said.before, SpokenLine(said.speaker, said.text)))
    return reply, outcome(said.slots, understood(said, reply), reply)


def understood(said: Labelled, reply: PlayedReply) -> Slots:
    """What the character took from an utterance, by slot.

    What was not said counts only where it was heard in this utterance, not before it. The activity may be in words
    that were used before.
    """
    alone, known = listen(said), meant(reply.stance, said.now)
    taken = {name: known[name] if said.slots[name] is not None else _added(name, alone, known) for name in SLOTS}
    if said.slots["activity"] is not None and verdict("activity", said.slots, alone) == "right":
        taken["activity"] = alone["activity"]
    return taken


def _added(name: str, alone: Slots, known: Slots) -> Slot:
    return known[name] if alone[name] is not None else None


def outcome(said: Slots, heard: Slots, reply: PlayedReply) -> Outcome:
    """Whether each slot is right, and if not, whether the reply asks about what is missing or states what is wrong."""
    missed = [name for name in SLOTS if verdict(name, said, heard) != "right"]
    if not missed:
        return "understood"
    asked = {name for name in missed if heard[name] is None and name in asks(reply)}
    stated = {name for name in missed if states(name, heard[name], reply)}
    if asked | stated != set(missed):
        return "silent"
    return "read_back" if stated - asked else "asked"


def asks(reply: PlayedReply) -> frozenset[str]:
    """The slots that a reply asks about."""
    stance, found = reply.stance, frozenset[str]()
    if stance.move in ("ask", "confirm_activity", "confirm_refusal", "ask_consent"):
        found |= {*stance.missing, *(_TIME if "start" in stance.missing else ())}
    if stance.asks_about_people:
        found |= {"people"}
    if stance.move == "ask_consent" or (stance.doubts and not reply.end):
        found |= {"negated"}
    names_none = stance.move == "confirm_activity" or (stance.move == "chat" and not reply.end)
    return found | {"activity"} if names_none else found


def states(name: str, heard: Slot, reply: PlayedReply) -> bool:
    """Whether a reply says aloud what the character takes a slot to be."""
    if name == "negated":
        return "won't take place" in reply.text if heard else reply.stance.move in _ON
    return heard is not None and all(words in reply.text.lower() for words in _words(name, heard))


def _words(name: str, heard: Slot) -> list[str]:
    """What a reply must contain to state a value, in lower case."""
    match name:
        case "day" if isinstance(heard, int):
            return [DATES[heard] if heard < len(DATES) else "another day"]
        case "start" if isinstance(heard, int):
            return [f"{time_text(heard)} to "]
        case "end" if isinstance(heard, int):
            return [time_text(heard)]
        case "people" if isinstance(heard, frozenset):
            return [person.split()[0].lower() for person in heard]
        case _:
            return str(heard).lower().split(" and then ")
