"""Learns `environments/stss/hearing/refusing.json` from the sentences, or tells how well."""

import json
from collections.abc import Sequence
from typing import NamedTuple

import environments.stss.hearing.refusing as hearing
from environments.stss.hearing.recognise import recognise
from tools.hearing.fit import logistic
from tools.hearing.lessons import Lesson

RARE = 4
"""A clue has a weight if it was met so often."""
PULL = 5.0
"""How strongly weights are drawn to 0."""
FOLDS = 5


class Taught(NamedTuple):
    """The clues of a sentence, whether it refuses, and what the rules alone say."""

    clues: frozenset[str]
    refuses: bool
    rule: bool


def write(lessons: Sequence[Lesson]) -> None:
    """Learns from all sentences, and writes the weights."""
    stored = dict(sorted(learn([_taught(lesson) for lesson in lessons]).items()))
    hearing.WEIGHTS.write_text(json.dumps(stored, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


def tell(lessons: Sequence[Lesson]) -> None:
    """Prints what is wrong by the rules, and by the weights of four fifths on the last fifth, five times."""
    taught = [_taught(lesson) for lesson in lessons]
    print("refusals", sum(each.refuses for each in taught), "of", len(taught))
    _tell("the rules", [(each.refuses, each.rule) for each in taught])
    heard: list[tuple[bool, float]] = []
    for fold in range(FOLDS):
        weights = learn([each for at, each in enumerate(taught) if at % FOLDS != fold])
        heard += [(each.refuses, sum(weights.get(clue, 0) for clue in each.clues)) for each in taught[fold::FOLDS]]
    _tell("the weights", [(refuses, score >= 0) for refuses, score in heard])


def _tell(who: str, heard: Sequence[tuple[bool, bool]]) -> None:
    missed, invented = (sum(each == wrong for each in heard) for wrong in ((True, False), (False, True)))
    print(f"{who}: {missed} missed, {invented} invented")


def _taught(lesson: Lesson) -> Taught:
    found = recognise(lesson.text, lesson.situation)
    clues = hearing.clues(found.text, found.spans, lesson.situation, rule=found.rule)
    return Taught(frozenset(clues), lesson.refuses, found.rule)


def learn(taught: Sequence[Taught]) -> dict[str, int]:
    """The weights, in hundredths, by logistic regression."""
    return logistic([each.clues for each in taught], [each.refuses for each in taught], rare=RARE, pull=PULL)
