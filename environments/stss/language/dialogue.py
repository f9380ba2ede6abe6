"""Reads a talk as a dialogue: what was proposed, what took its place, and whether it ends in agreement."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from environments.stss.hearing.read import read
from environments.stss.hearing.slots import MAX_CHARS, Situation, SpokenLine
from environments.stss.hearing.words import plain
from environments.stss.language.talk_state import TalkState
from environments.stss.language.whereabouts import pointed_to
from environments.stss.town.places import Places

_SENTENCE = re.compile(r"(?<=[.!?;])\s+")


class Spot(NamedTuple):
    """A place that somebody named or pointed to."""

    speaker: str
    address: str


class DialogueSlots(NamedTuple):
    """What stands at the end of a talk."""

    days: tuple[int, ...]
    """The days that may be meant, likeliest first."""
    starts: tuple[int, ...]
    """The times that may be meant, of the half of a day."""
    spots: tuple[Spot, ...]
    activities: tuple[str, ...]
    """All activities that were named."""
    agreed: bool
    declined: bool


def dialogue(lines: Sequence[SpokenLine], places: Places, owned: Mapping[str, Sequence[str]]) -> DialogueSlots:
    """What a talk comes to, from its first line to its last; `owned`: the sectors that belong to each person."""
    first = lines[0].speaker if lines else ""
    talk = TalkState(first, [name.split()[0] for name in places.homes if name not in {line.speaker for line in lines}])
    spots: list[Spot] = []
    activities: list[str] = []
    for index, line in enumerate(lines):
        situation = _situation(lines, index, places)
        for sentence in _sentences(line.text):
            talk.hear(sentence, line.speaker)
            spots += (Spot(line.speaker, address) for address in pointed_to(sentence, situation, owned))
            slots = read(sentence, situation)
            activities += [slots.activity] if slots.activity else []
    return DialogueSlots(
        talk.day.values,
        talk.time.values,
        tuple(spots),
        tuple(activities),
        agreed=talk.agreed,
        declined=talk.declined,
    )


def _sentences(text: str) -> Iterator[str]:
    return filter(None, _SENTENCE.split(plain(text[:MAX_CHARS])))


def _situation(lines: Sequence[SpokenLine], index: int, places: Places) -> Situation:
    speaker = lines[index].speaker
    listener = next((other.speaker for other in lines if other.speaker != speaker), "")
    return Situation(places, 0, speaker, listener, lines[:index])
