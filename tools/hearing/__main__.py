"""Learns the weights of what characters hear: `python -m tools.hearing`; with `--try`, only tells how well.

`activities/known_words.json` and `activities/weights.json` are learned here, `asides.json`, `refusing.json` and
`doubting.json` in the modules of these names.

`--try` learns activities and refusals from all sentences but a fifth of the development half, and hears that, five
times; the others from five sixths of the authors, six times.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy

import environments.stss.hearing.activities.activity as hearing
from environments import stss
from environments.stss.dataset import shipped
from environments.stss.hearing.activities.clues import HeardWords, clues, clues_of_none
from environments.stss.hearing.activities.groups import content_words, covers
from environments.stss.hearing.asides import named_slots, spans
from environments.stss.hearing.labelled import same_activity, utterances
from environments.stss.hearing.recognise import recognise
from environments.stss.hearing.words import is_empty, plain, word_set
from tools.hearing import asides, doubts, refusals
from tools.hearing.fit import clue_matrix, least
from tools.hearing.lessons import Lesson, folds, lessons

SAMPLES = Path(stss.__file__).with_name("samples") / "tasks.json"
COMMON = 3
"""A word may be a clue if it is in so many sentences,"""
OUTSIDE = 0.3
"""and at most this share of them has it in the activity."""
RARE = 4
"""A clue has a weight if it was met so often."""
PULL = 1.5
"""How strongly weights are drawn to 0."""
FOLDS = 5
_SMALL = word_set("a an the of to in on at for and with it my our your his her its their some me us you about")


class PhraseChoice(NamedTuple):
    """The phrases of a sentence with their clues, those of no phrase last; and which of them are right."""

    lesson: Lesson
    phrases: Sequence[str]
    clues: Sequence[Sequence[str]]
    right: Sequence[bool]


def known_words(taught: Iterable[Lesson]) -> frozenset[str]:
    """The words that may be clues: common ones that are rarely part of an activity."""
    count, inside = Counter[str](), Counter[str]()
    for lesson in taught:
        words = _words(lesson.text, lesson)
        count.update(words)
        inside.update(words & {word for phrase in lesson.activities for word in _words(phrase, lesson)})
    common = {word for word, met in count.items() if met >= COMMON}
    return frozenset(word for word in common if word in _SMALL or inside[word] <= OUTSIDE * count[word]) - _goals()


def _goals() -> set[str]:
    """The words of what the shipped tasks aim at, none of which may help to understand."""
    tasks = json.loads(SAMPLES.read_text(encoding="utf-8"))
    goals = " ".join(goal["keyword"] for task in tasks for goal in task["task"]["goal"])
    return {word for word in re.findall(r"[a-z]{4,}", goals.lower()) if not is_empty(word)}


def _words(text: str, lesson: Lesson) -> set[str]:
    said = plain(text)
    found = spans(named_slots(said, lesson.situation))
    heard = hearing.listen(said, found, lesson.situation, frozenset(), refuses=False)
    return {token.word for token in heard.tokens if token.kind == "word" and not re.search(r"\d", token.word)}


def choice(lesson: Lesson, known: frozenset[str]) -> PhraseChoice:
    """The phrases of a sentence from which its activity is to be chosen."""
    found = recognise(lesson.text, lesson.situation)
    heard: HeardWords = hearing.listen(found.text, found.spans, lesson.situation, known, refuses=found.rule)
    groups = hearing.groups_of(found.text, heard)
    phrases = [hearing.words(found.text, heard, group) for group in groups]
    wanted = [content_words(activity) for activity in lesson.activities]
    closeness = [max((_closeness(content_words(phrase), words) for words in wanted), default=0.0) for phrase in phrases]
    right = [0 < each == max(closeness) for each in closeness]
    return PhraseChoice(
        lesson,
        phrases,
        [*(clues(heard, group) for group in groups), clues_of_none(heard)],
        [*right, not wanted],
    )


def _closeness(phrase: frozenset[str], wanted: frozenset[str]) -> float:
    """How alike a phrase is to the one wanted, from 0 to 1; 0 if it does not cover it."""
    return 2 * len(phrase & wanted) / (len(phrase) + len(wanted)) if covers(phrase, wanted) else 0.0


def learn(choices: Sequence[PhraseChoice]) -> dict[str, int]:
    """The weights, in hundredths, under which the right phrases are likeliest."""
    choices = [each for each in choices if any(each.right)]
    met = Counter(clue for each in choices for clue in {clue for found in each.clues for clue in found})
    columns, matrix = clue_matrix(met, RARE, [found for each in choices for found in each.clues])
    turned = matrix.T.tocsr()
    sizes = [len(each.clues) for each in choices]
    begins, group = numpy.cumsum([0, *sizes[:-1]]), numpy.repeat(numpy.arange(len(sizes)), sizes)
    right = numpy.array([good for each in choices for good in each.right], dtype=float)

    def loss(weights: Any) -> tuple[float, Any]:
        scores = matrix @ weights
        likely = numpy.exp(scores - numpy.maximum.reduceat(scores, begins)[group])
        every = numpy.add.reduceat(likely, begins)
        good = numpy.add.reduceat(likely * right, begins) + 1e-300
        slope = turned @ (likely / every[group] - likely * right / good[group]) + PULL * weights
        return float((numpy.log(every) - numpy.log(good)).sum() + PULL / 2 * weights @ weights), slope

    return least(loss, columns)


def tell(choices: Sequence[PhraseChoice]) -> None:
    """Prints recall and precision on sentences that were not learned from, for several thresholds."""
    held = len(utterances("development"))
    heard: list[tuple[PhraseChoice, str, float]] = []
    for fold in range(FOLDS):
        weights = learn([each for at, each in enumerate(choices) if at >= held or at % FOLDS != fold])
        for each in choices[fold:held:FOLDS]:
            *scores, none = [sum(weights.get(clue, 0) for clue in found) / 100 for found in each.clues]
            best = hearing.most_likely(each.phrases, scores, none)
            heard += [(each, each.phrases[best[0]], best[1])] if best else []
    for sure in (0.3, 0.4, 0.5, 0.6, 0.7):
        found = [(each.lesson.activities, phrase) for each, phrase, likely in heard if likely >= sure]
        right = sum(any(same_activity(said, phrase) for said in wanted) for wanted, phrase in found)
        said = sum(bool(each.lesson.activities) for each in choices[:held])
        print(f"sure {sure}: recall {right / said:.3f}, precision {right / len(found):.3f}, wrong {len(found) - right}")


def main() -> None:
    """Learns, and writes the weights or tells how well they do."""
    places = shipped().town.places
    taught, said = lessons(places), folds(places)
    known = known_words(taught)
    if "--try" in sys.argv:
        asides.tell(said, places)
        tell([choice(lesson, known) for lesson in taught])
        refusals.tell(taught)
        doubts.tell(said, places)
        return
    _write(hearing.KNOWN, sorted(known))
    asides.write(said, places)  # which needs these words
    choices = [choice(lesson, known) for lesson in taught]  # which needs both
    _write(hearing.WEIGHTS, dict(sorted(learn(choices).items())))
    refusals.write(taught)
    doubts.write(said, places)  # which needs all of them


def _write(file: Path, learned: object) -> None:
    file.write_text(json.dumps(learned, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
