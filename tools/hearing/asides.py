"""Learns `environments/stss/hearing/asides.json` from labelled utterances, or tells how well."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple
from unittest.mock import patch

import environments.stss.hearing.asides as hearing
from environments.stss.hearing import read, recognise
from environments.stss.hearing.asides import NamedSlot, Weighed
from environments.stss.hearing.labelled import Labelled
from environments.stss.hearing.named.clock_words import NOON
from environments.stss.hearing.slots import Situation
from environments.stss.hearing.weights import likelihood
from environments.stss.hearing.words import plain
from environments.stss.town.places import Places
from tools.hearing.fit import logistic

RARE = 4
"""A clue has a weight if it was met so often."""
PULL = 4.0
"""How strongly weights are drawn to 0."""

_SLOTS = {
    "day": {"day"},
    "time": {"start", "end"},
    "place": {"place"},
    "name": {"people"},
}
"""The labels to which a named day, time, place or person may belong."""


class NamedOnce(NamedTuple):
    """A day, time, place or person named in an utterance, the clues to it, and whether it belongs to the meeting."""

    slot: NamedSlot
    clues: frozenset[str]
    belongs: bool


def write(folds: Sequence[Sequence[Labelled]], places: Places) -> None:
    """Learns from all utterances, and writes the weights."""
    stored = dict(sorted(learn([each for fold in folds for each in taught(fold, places)]).items()))
    hearing.WEIGHTS.write_text(json.dumps(stored, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


def learn(taught: Sequence[NamedOnce]) -> dict[str, int]:
    """The weights, in hundredths, by logistic regression."""
    return logistic([each.clues for each in taught], [each.belongs for each in taught], rare=RARE, pull=PULL)


def tell(folds: Sequence[Sequence[Labelled]], places: Places) -> None:
    """Prints of each kind how many are taken wrongly: by the rules alone, and by the weights of all other authors."""
    errors: dict[str, list[tuple[bool, bool]]] = {}
    named = [taught(fold, places) for fold in folds]
    for held in named:
        weights = learn([each for fold in named if fold is not held for each in fold])
        for each in held:
            wrong = Weighed(each.slot, likelihood(weights, each.clues)).belongs != each.belongs
            errors.setdefault(each.slot.kind, []).append((each.slot.denied == each.belongs, wrong))
    for kind, found in errors.items():
        rules, learned = (sum(each) for each in zip(*found, strict=True))
        print(f"{kind}: {len(found)} named, {rules} wrong by the rules, {learned} by the weights")


def taught(said: Sequence[Labelled], places: Places) -> list[NamedOnce]:
    """All days, times, places and people of some utterances."""
    return [each for one in said for each in _of(one, places)]


def _of(said: Labelled, places: Places) -> Iterator[NamedOnce]:
    situation = Situation(places, said.now, said.speaker, said.listener, said.before)
    text = plain(said.text)
    named = hearing.named_slots(text, situation)
    for slot, clues in zip(named, hearing.clues(text, situation, named) if named else (), strict=False):
        if not said.unsure & _SLOTS[slot.kind]:
            yield NamedOnce(slot, frozenset(clues), _belongs(slot, said))


def _belongs(slot: NamedSlot, said: Labelled) -> bool:
    """Whether a label of an utterance has the value that is named."""
    match slot.kind:
        case "time":
            times = (said.slots["start"], said.slots["end"])
            return slot.value in {time % NOON for time in times if isinstance(time, int)}
        case "name":
            people = said.slots["people"]
            return isinstance(people, frozenset) and slot.value in people
        case kind:
            return slot.value == said.slots[kind]


@contextmanager
def heard_with(weights: Mapping[str, int]) -> Iterator[None]:
    """Within it utterances are heard with these weights instead of those that are stored."""
    with patch.object(hearing, "stored", lambda file: weights):
        _forget()
        yield
    _forget()


def _forget() -> None:
    recognise.forget()
    read.forget()
