"""Reads a talk as a dialogue: what was proposed, what took its place, and whether it ends in agreement."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from environments.stss.hearing.read import read
from environments.stss.hearing.slots import MAX_CHARS, Situation, SpokenLine
from environments.stss.hearing.words import plain
from environments.stss.language.ending import ends_agreed
from environments.stss.language.talk_state import TalkState
from environments.stss.language.whereabouts import pointed_to
from environments.stss.town.places import Places

STATE_ODDS = {"agreed": 0.5, "open": -0.5, "declined": -1.7}
"""How far the state of a talk speaks for an agreement, as logarithms of odds: from 121 talks no rule was made with."""
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
    agreed: bool
    declined: bool


class HeardTalk(NamedTuple):
    """What the state of a talk is at its end."""

    days: tuple[int, ...]
    starts: tuple[int, ...]
    outcome: Literal["agreed", "open", "declined"]

    @property
    def standing(self) -> int | None:
        """The time that stands."""
        return self.starts[0] if self.starts else None


def dialogue(lines: Sequence[SpokenLine], places: Places, owned: Mapping[str, Sequence[str]]) -> DialogueSlots:
    """What a talk comes to, from its first line to its last; `owned`: the sectors that belong to each person."""
    spots = (
        Spot(situation.speaker, address)
        for sentence, situation in _told(lines, places)
        for address in pointed_to(sentence, situation, owned)
    )
    heard = heard_talk(lines, places)
    agreed = _agreed(lines, heard, places)
    return DialogueSlots(
        heard.days,
        heard.starts,
        tuple(spots),
        agreed=agreed,
        declined=heard.outcome == "declined" and not agreed,
    )


def activities(lines: Sequence[SpokenLine], places: Places) -> Iterator[str]:
    """All activities that are named in a talk, each looked for when it is asked for."""
    found = (read(sentence, situation).activity for sentence, situation in _told(lines, places))
    return filter(None, found)


def _agreed(lines: Sequence[SpokenLine], heard: HeardTalk, places: Places) -> bool:
    """Whether a talk ends in an agreement; of one voice, such as a summary, only what it tells counts."""
    if len({line.speaker for line in lines}) <= 1:
        return heard.outcome == "agreed"
    return ends_agreed(lines, heard.standing, name_words(places), STATE_ODDS[heard.outcome])


def heard_talk(lines: Sequence[SpokenLine], places: Places) -> HeardTalk:
    """Follows a talk sentence by sentence."""
    first = lines[0].speaker if lines else ""
    talk = TalkState(first, [name.split()[0] for name in places.homes if name not in {line.speaker for line in lines}])
    for line in lines:
        for sentence in _sentences(line.text):
            talk.hear(sentence, line.speaker)
    outcome: Literal["agreed", "open", "declined"]
    outcome = "agreed" if talk.agreed else "declined" if talk.declined else "open"
    return HeardTalk(talk.day.values, talk.time.values, outcome)


def name_words(places: Places) -> frozenset[str]:
    """The words of everybody's name, in lower case."""
    return frozenset(word for name in places.homes for word in name.lower().split())


def _sentences(text: str) -> Iterator[str]:
    return filter(None, _SENTENCE.split(plain(text[:MAX_CHARS])))


def _told(lines: Sequence[SpokenLine], places: Places) -> Iterator[tuple[str, Situation]]:
    """Each sentence of a talk, and when it was said."""
    for index, line in enumerate(lines):
        situation = _situation(lines, index, places)
        yield from ((sentence, situation) for sentence in _sentences(line.text))


def _situation(lines: Sequence[SpokenLine], index: int, places: Places) -> Situation:
    speaker = lines[index].speaker
    listener = next((other.speaker for other in lines if other.speaker != speaker), "")
    return Situation(places, 0, speaker, listener, lines[:index])
