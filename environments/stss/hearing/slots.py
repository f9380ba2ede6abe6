"""The slots of an invitation, and what a listener knows when it hears one."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from environments.stss.town.clock import DAY
from environments.stss.town.places import Places

MAX_CHARS = 4_000
"""Limit of characters read of an utterance."""

_TIME = frozenset({"day", "start", "end"})


class SpokenLine(NamedTuple):
    """One utterance."""

    speaker: str
    text: str


class Situation(NamedTuple):
    """Who talks to whom, when, and what was said before."""

    places: Places
    now: int
    """Minutes since the first midnight."""
    speaker: str = ""
    listener: str = ""
    before: Sequence[SpokenLine] = ()

    @property
    def question(self) -> str:
        """What the listener said last."""
        last = self.before[-1] if self.before else None
        return last.text if last and last.speaker != self.speaker else ""


class InvitationSlots(NamedTuple):
    """The slots of one or more utterances; None if not named."""

    activity: str | None = None
    place: str | None = None
    online: bool = False
    day: int | None = None
    """0 and 1 are the two simulated days; other values are days outside of the simulation."""
    start: int | None = None
    """Minutes since midnight."""
    end: int | None = None
    then_activity: str | None = None
    """The second leg of an errand."""
    then_place: str | None = None
    early: bool = False
    """Whether the request is to get up for it."""
    people: frozenset[str] = frozenset()
    """Those who take part, without speaker and listener."""
    negated: bool = False
    """Whether it will not happen, or the speaker won't take part."""
    doubted: frozenset[str] = frozenset()
    """Of place, day, start and end those that may have been misheard in the last utterance, and are to be asked for."""

    def sure(self, asked: Collection[str]) -> "InvitationSlots":
        """These slots without what is doubted, but for what was asked for (with the start also day and end)."""
        doubted = self.doubted - frozenset(asked) - (_TIME if "start" in asked else frozenset())
        kept = {name: value for name, value in self._asdict().items() if name not in doubted}
        return InvitationSlots(**kept | {"doubted": doubted})

    def merged(self, later: "InvitationSlots") -> "InvitationSlots":
        """The slots of two utterances: the first activity, and the last value of every other slot."""
        newer = later._asdict()
        merged = {
            name: new if new is not None else old
            for (name, old), new in zip(self._asdict().items(), newer.values(), strict=True)
        }
        merged["online"] = self.online or later.online
        merged["early"] = self.early or later.early
        merged["people"] = self.people | later.people
        if later.start is not None and later.end is None and self.end is not None:
            merged["end"] = self._moved_end(self.end, later.start)
        merged |= dict.fromkeys(later.doubted)
        if self.activity is not None:
            merged |= {"activity": self.activity}
            if self.then_activity is not None:
                merged |= {"then_activity": self.then_activity}
        return InvitationSlots(**merged)

    def _moved_end(self, end: int, start: int) -> int | None:
        """The end if only the start is changed: as long after it as before."""
        if self.start is None:
            return end if end > start else None
        return (start + end - self.start) % DAY

    def or_else(self, other: "InvitationSlots") -> "InvitationSlots":
        """These slots, with those of `other` in place of None."""
        return self._replace(**{name: given for name, given in other._asdict().items() if getattr(self, name) is None})


class NumberSpan(NamedTuple):
    """A part of a text, and the number it stands for."""

    start: int
    end: int
    value: int
