"""The sentences that the weights are learned from: the development half and those beside this file.

`labelled.jsonl` has 1,660 utterances of thirteen authors (G, H, K to U), in the form of the development half.
`practice.txt` was written by those who made the rules, `spoken.txt` by nine authors who had seen neither rules nor
code, only how the development half is labelled. A line of these two is what was said before (`me:` by the speaker,
`you:` by the listener) and the sentence, with ` | ` between them. The activity stands in braces, people who take part
in angle brackets; `- ` in front: it refuses.
"""

import re
from pathlib import Path
from typing import NamedTuple

from environments.stss.hearing.labelled import Labelled, labelled, utterances
from environments.stss.hearing.slots import Situation, SpokenLine
from environments.stss.town.places import Places
from tools.hearing.plain import plain_utterances

PRACTICE = tuple(Path(__file__).with_name(name) for name in ("practice.txt", "spoken.txt"))
LABELLED = Path(__file__).with_name("labelled.jsonl")
FOLDS = 6


class Lesson(NamedTuple):
    """A sentence in its talk, the phrases that name its activity, who takes part, and whether it refuses."""

    text: str
    situation: Situation
    activities: tuple[str, ...]
    people: frozenset[str]
    refuses: bool


def folds(places: Places) -> list[list[Labelled]]:
    """All labelled utterances to learn from, in FOLDS parts of which no two have an author in common."""
    authors = {"practice": utterances("practice"), "plain": list(plain_utterances(places))}
    for said in (*utterances("development"), *labelled(LABELLED)):
        authors.setdefault(said.id[0], []).append(said)
    groups = list(authors.values())
    return [[said for group in groups[fold::FOLDS] for said in group] for fold in range(FOLDS)]


def lessons(places: Places) -> list[Lesson]:
    """All sentences: of the development half, of LABELLED, then of each file of PRACTICE."""
    lines = (line for path in PRACTICE for line in path.read_text("utf-8").splitlines())
    return [
        *(lesson(said, places) for said in (*utterances("development"), *labelled(LABELLED))),
        *(_practice(line, places) for line in lines),
    ]


def lesson(said: Labelled, places: Places) -> Lesson:
    """A labelled utterance as a sentence to learn from."""
    activity, people = said.slots["activity"], said.slots["people"]
    return Lesson(
        said.text,
        Situation(places, said.now, said.speaker, said.listener, said.before),
        activities=(str(activity),) if activity else (),
        people=people if isinstance(people, frozenset) else frozenset(),
        refuses=bool(said.slots["negated"]),
    )


def _practice(line: str, places: Places) -> Lesson:
    *before, marked = line.removeprefix("- ").split(" | ")
    speaker, listener = [name for name in places.homes if name.split()[0] not in line][:2]
    spoken = [said.split(": ", 1) for said in before]
    lines = tuple(SpokenLine(speaker if who == "me" else listener, text) for who, text in spoken)
    plain = re.sub("[<>]", "", marked)
    return Lesson(
        text=re.sub("[{}]", "", plain),
        situation=Situation(places, 10 * 60, speaker, listener, lines),
        activities=tuple(re.findall(r"\{(.*?)\}", plain)),
        people=frozenset(name for name in places.homes if f"<{name.split()[0]}>" in marked),
        refuses=line.startswith("- "),
    )
