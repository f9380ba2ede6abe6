"""Learns `environments/stss/hearing/doubting.json` from labelled utterances, or tells how well."""

import json
from collections.abc import Sequence
from typing import NamedTuple

import environments.stss.hearing.doubting as hearing
from environments.stss.hearing.labelled import Labelled
from environments.stss.hearing.named.clock_words import clock_times
from environments.stss.hearing.read import read
from environments.stss.hearing.recognise import recognise
from environments.stss.hearing.slots import Situation
from environments.stss.hearing.weights import likelihood
from environments.stss.town.places import Places
from tools.hearing import asides
from tools.hearing.fit import logistic

RARE = 4
"""A clue has a weight if it was met so often."""
PULL = 1.0
"""How strongly weights are drawn to 0."""
SLOTS = ("start", "end")


class Doubted(NamedTuple):
    """The clues of an utterance, and whether its start and its end are read wrongly."""

    clues: frozenset[str]
    wrong: tuple[bool, bool]


def write(folds: Sequence[Sequence[Labelled]], places: Places) -> None:
    """Learns from all utterances, and writes the weights."""
    taught = [each for fold in _taught(folds, places) for each in fold]
    stored = {slot: learn(taught, slot) for slot in SLOTS}
    text = json.dumps(stored, indent=0, sort_keys=True, ensure_ascii=False)
    hearing.WEIGHTS.write_text(text + "\n", encoding="utf-8")


def tell(folds: Sequence[Sequence[Labelled]], places: Places) -> None:
    """Prints how many wrong times are doubted, and how many right ones, by the weights of all other authors."""
    taught, likely = _taught(folds, places), dict[str, list[tuple[bool, float]]]()
    for at, slot in enumerate(SLOTS):
        for own in taught:
            weights = learn([each for fold in taught if fold is not own for each in fold], slot)
            likely.setdefault(slot, []).extend((each.wrong[at], likelihood(weights, each.clues)) for each in own)
    for slot, scored in likely.items():
        wrong = sum(each for each, _ in scored)
        for least in (0.1, 0.15, 0.2, 0.25, 0.3):
            right, asked = len(scored) - wrong, [each for each, probability in scored if probability >= least]
            print(f"{slot} from {least}: {sum(asked)} of {wrong} wrong, {asked.count(False)} of {right} right")


def learn(taught: Sequence[Doubted], slot: str) -> dict[str, int]:
    """The weights of one slot, in hundredths."""
    wrong = [each.wrong[SLOTS.index(slot)] for each in taught]
    return logistic([each.clues for each in taught], wrong, rare=RARE, pull=PULL)


def _taught(folds: Sequence[Sequence[Labelled]], places: Places) -> list[list[Doubted]]:
    """Each fold, heard by what the others teach of what belongs to the meeting: of new texts nobody is surer."""
    taught = []
    for fold in folds:
        weights = asides.learn([each for other in folds if other is not fold for each in asides.taught(other, places)])
        with asides.heard_with(weights):
            taught.append([_doubted(said, places) for said in fold])
    return taught


def _doubted(said: Labelled, places: Places) -> Doubted:
    situation = Situation(places, said.now, said.speaker, said.listener, said.before)
    slots = read(said.text, situation)
    before = any(clock_times(line.text) for line in said.before)
    start, end = (
        getattr(slots, slot) != said.slots[slot] and (getattr(slots, slot) is not None or before or started)
        for slot, started in (("start", False), ("end", slots.start is not None))
    )
    clues = frozenset(hearing.clues(recognise(said.text, situation), situation, slots))
    return Doubted(clues, (start, end and not start))
