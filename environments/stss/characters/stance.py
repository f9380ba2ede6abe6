"""Where a character stands in a talk: its next move, and what it has understood so far."""

from typing import Literal, NamedTuple

from environments.stss.hearing.slots import InvitationSlots
from environments.stss.town.schedule import Commitment

Move = Literal[
    "chat",
    "ask",
    "confirm_activity",
    "ask_consent",
    "propose",
    "decline",
    "accept",
    "settled",
    "ask_what_is_wrong",
    "confirm_refusal",
    "called_off",
]


class Stance(NamedTuple):
    """A character's next move after the lines so far."""

    move: Move
    slots: InvitationSlots
    commitments: tuple[Commitment, ...] = ()
    """The commitments that it agrees to (accept, settled) or proposes (propose)."""
    why: str = ""
    """The obstacle, as an utterance (propose, decline)."""
    missing: tuple[str, ...] = ()
    """What it asks for (ask, ask_consent, confirm_activity, confirm_refusal): activity, place, start, day, end."""
    guess: str = ""
    """The activity that it asks whether it is meant (confirm_activity)."""
    named: frozenset[str] = frozenset()
    """Those of whom it asks, or has asked, whether they take part."""
    unclear: frozenset[str] = frozenset()
    """Those of whom it will ask that once there is something to ask about."""
    asks_about_people: bool = False
    doubts: bool = False
    """Whether it asks besides if something is called off (ask, chat, confirm_activity)."""
    in_vain: int = 0
    """Number of texts so far that told nothing new."""
    earlier: tuple[Commitment, ...] = ()
    """The commitments of an earlier invitation in the same talk."""

    @property
    def kept(self) -> tuple[Commitment, ...]:
        """The commitments that hold if the talk ends here."""
        agreed = self.move in ("accept", "settled", "confirm_activity")
        return (*self.earlier, *self.commitments) if agreed else self.earlier


BEGINNING = Stance("chat", InvitationSlots())


def missing_slots(slots: InvitationSlots) -> tuple[str, ...]:
    """The slots without which nothing is agreed, in the order in which they are asked for.

    Day and end are among them only where they are in doubt; who tells the start tells them too.
    """
    known = {"activity": slots.activity, "place": slots.place or (slots.online or None), "start": slots.start}
    doubted = ("day", "end") if slots.start is not None else ()
    return *(name for name, value in known.items() if value is None), *(
        name for name in doubted if name in slots.doubted
    )
