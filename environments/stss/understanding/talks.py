"""Talks of a character with a polite partner that begin with a labelled utterance, and what they come to."""

from collections.abc import Mapping
from typing import NamedTuple

from environments.stss.characters.driver import SIDE_LIMIT
from environments.stss.characters.stance import Stance
from environments.stss.hearing.labelled import SLOTS, Labelled, Slot, verdict
from environments.stss.hearing.named.days import OUT_OF_REACH
from environments.stss.hearing.slots import SpokenLine
from environments.stss.understanding.listener import Addressee, kept, listen, meant
from environments.stss.understanding.partner import PolitePartner


class PlayedTalk(NamedTuple):
    """The lines of a talk from the utterance on, and whether what it comes to is right."""

    lines: tuple[SpokenLine, ...]
    right: bool


async def talked(said: Labelled) -> PlayedTalk:
    """Plays the talk to its end, at most eight utterances of each side."""
    partner, addressee = PolitePartner(said), Addressee(said)
    lines = (*said.before, SpokenLine(said.speaker, said.text))
    for _ in range(SIDE_LIMIT):
        reply = await addressee.next_move(lines)
        lines = (*lines, SpokenLine(said.listener, reply.text))
        if reply.end:
            break
        text, leaves = partner.answer(reply)
        lines = (*lines, SpokenLine(said.speaker, text))
        if leaves:
            break
    return PlayedTalk(lines[len(said.before) :], is_right(said, partner.wanted, addressee.stance(lines)))


def is_right(said: Labelled, wanted: Mapping[str, Slot], final: Stance) -> bool:
    """Whether a talk comes to what its utterance meant.

    A refusal: it is taken for one. Small talk: nothing is agreed. What is after the two days: nothing is agreed, and no
    slot is wrong. All else: there is a commitment or a clash of times, every slot of it that was said or chosen since
    is right, and nothing that was never said was added.
    """
    agreed = bool(final.kept)
    if said.slots["negated"]:
        return final.move in ("confirm_refusal", "called_off")
    if said.meaning == "smalltalk":
        return not agreed
    heard, alone = kept(final, said.now) if agreed else meant(final, said.now), listen(said)
    if all(value is None for value in said.slots.values()):
        return all(alone[name] is None for name in SLOTS) or not agreed
    added = {name for name in SLOTS if alone[name] is not None} - {"day", *(["end"] if final.slots.end is None else [])}
    slots = [name for name in SLOTS if wanted[name] is not None or name in added]
    if said.slots["day"] == OUT_OF_REACH:
        return not agreed and heard["day"] == OUT_OF_REACH and "wrong" not in [verdict(s, wanted, heard) for s in slots]
    return (agreed or final.move == "decline") and all(verdict(name, wanted, heard) == "right" for name in slots)
