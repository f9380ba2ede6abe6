"""The rules of the characters on labelled utterances: what they hear in one, and what they answer to it."""

from functools import cache
from typing import NamedTuple

from environments.stss.characters.driver import Context
from environments.stss.characters.read_back import as_slots, day_meant, end_meant
from environments.stss.characters.rule_driver import RuleDriver
from environments.stss.characters.stance import Stance
from environments.stss.dataset import Town, shipped
from environments.stss.hearing.labelled import Labelled, Slots
from environments.stss.hearing.read import read_in_doubt
from environments.stss.hearing.slots import InvitationSlots, Situation, SpokenLine


class PlayedReply(NamedTuple):
    """A character's next move: its words, whether the talk ends with them, and its stance."""

    text: str
    end: bool
    stance: Stance


@cache
def _town() -> Town:
    return shipped().town


def listen(said: Labelled) -> Slots:
    """What the characters of the shipped town hear in an utterance alone."""
    slots = read_in_doubt(said.text, Situation(_town().places, said.now, said.speaker, said.listener, said.before))
    return _values(slots) | {"negated": slots.negated or None}


def meant(stance: Stance, now: int) -> Slots:
    """What a character takes to be meant by the talk so far, with the day and the length that it assumes."""
    slots = stance.slots
    if slots.start is not None:
        day = slots.day if "day" in slots.doubted else day_meant(slots, now)
        end = slots.end if "end" in slots.doubted else end_meant(slots, slots.start)
        slots = slots._replace(day=day, end=end)
    return _values(slots) | {"negated": stance.move in ("confirm_refusal", "called_off") or None}


def kept(stance: Stance, now: int) -> Slots:
    """What a character will keep of the talk so far, by slot."""
    return meant(stance._replace(slots=as_slots(stance.kept)._replace(people=stance.slots.people)), now)


def _values(slots: InvitationSlots) -> dict[str, str | int | bool | frozenset[str] | None]:
    place = slots.then_place or slots.place
    errand = " and then ".join(filter(None, (slots.activity, slots.then_activity)))
    return {
        "activity": errand or None,
        "place": place and place.partition(":")[0],
        "day": slots.day,
        "start": slots.start,
        "end": slots.end,
        "people": slots.people or None,
    }


class Addressee:
    """The character addressed by an utterance, in the talk that begins with it."""

    def __init__(self, said: Labelled) -> None:
        self._driver = RuleDriver(_town(), 0.0, said.id)
        self._context = Context(_town().personas[said.listener], said.now, partner=said.speaker, doing="at home")

    async def next_move(self, lines: tuple[SpokenLine, ...]) -> PlayedReply:
        """What it answers after these lines."""
        text, end = await self._driver.reply(self._context._replace(lines=lines))
        return PlayedReply(text, end, self.stance(lines))

    def stance(self, lines: tuple[SpokenLine, ...]) -> Stance:
        """Its stance after these lines."""
        return self._driver.stance(self._context._replace(lines=lines))
