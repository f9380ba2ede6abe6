"""Learns `environments/stss/hearing/doubting.json` from labelled utterances, or tells how well."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import environments.stss.hearing.doubting as hearing
from environments.stss.hearing.clock_words import clock_times
from environments.stss.hearing.labelled import labelled, utterances
from environments.stss.hearing.read import read, recognise
from environments.stss.hearing.slots import Situation
from environments.stss.town.places import Places
from tools.hearing.fit import logistic
from tools.hearing.lessons import LABELLED

WEIGHTS = Path(hearing.__file__).with_name("doubting.json")
RARE = 4
"""A clue has a weight if it was met so often."""
PULL = 1.0
"""How strongly weights are drawn to 0."""
SLOTS = ("start", "end")


class Doubted(NamedTuple):
    """The clues of an utterance, its author, and whether its start and its end are read wrongly."""

    author: str
    clues: frozenset[str]
    wrong: tuple[bool, bool]


def write(places: Places) -> None:
    """Learns from all utterances, and writes the weights."""
    taught = list(_taught(places))
    stored = {slot: learn(taught, slot) for slot in SLOTS}
    WEIGHTS.write_text(json.dumps(stored, indent=0, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def tell(places: Places) -> None:
    """Prints how many wrong times are doubted, and how many right ones, by the weights of all other authors."""
    taught, likely = list(_taught(places)), dict[str, list[tuple[bool, float]]]()
    for author in sorted({each.author for each in taught}):
        for at, slot in enumerate(SLOTS):
            weights = learn([each for each in taught if each.author != author], slot)
            own = [each for each in taught if each.author == author]
            scored = [(each.wrong[at], hearing.likelihood(weights, each.clues)) for each in own]
            likely[slot] = [*likely.get(slot, []), *scored]
    for slot, scored in likely.items():
        wrong = sum(each for each, _ in scored)
        for least in (0.1, 0.15, 0.2, 0.25, 0.3):
            right, asked = len(scored) - wrong, [each for each, likelihood in scored if likelihood >= least]
            print(f"{slot} from {least}: {sum(asked)} of {wrong} wrong, {asked.count(False)} of {right} right")


def learn(taught: Sequence[Doubted], slot: str) -> dict[str, int]:
    """The weights of one slot, in hundredths."""
    wrong = [each.wrong[SLOTS.index(slot)] for each in taught]
    return logistic([each.clues for each in taught], wrong, rare=RARE, pull=PULL)


def _taught(places: Places) -> Iterator[Doubted]:
    for said in (*utterances("development"), *utterances("practice"), *labelled(LABELLED)):
        situation = Situation(places, said.now, said.speaker, said.listener, said.before)
        found, slots = recognise(said.text, situation), read(said.text, situation)
        before = any(clock_times(line.text) for line in said.before)
        wrong = tuple(
            getattr(slots, slot) != said.slots[slot] and (getattr(slots, slot) is not None or before or started)
            for slot, started in (("start", False), ("end", slots.start is not None))
        )
        clues = frozenset(hearing.clues(found.text, situation, found.clock, slots))
        yield Doubted(said.id[0], clues, (wrong[0], wrong[1] and not wrong[0]))
