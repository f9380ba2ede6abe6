"""How likely the time of a text is read wrongly: where it is, a character asks for it instead of guessing.

`doubting.json` has a weight for each clue, learned by `python -m tools.hearing` from labelled utterances: how many
times a text names and as what, and what kind of sentence each of them stands in. No clue is a word of an activity.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path

from environments.stss.hearing.clock_words import clock_times, day_parts
from environments.stss.hearing.lengths import names_length
from environments.stss.hearing.slots import InvitationSlots, Situation
from environments.stss.hearing.times import HOW_LONG, When
from environments.stss.hearing.words import HOUR, within

DOUBTFUL = 0.25
"""The probability from which on a slot is asked for."""
BOTH = frozenset({"start", "end"})

_SENTENCE = re.compile(r"[.!?;]\s")
_KINDS: Mapping[str, re.Pattern[str]] = {
    kind: re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE)
    for kind, words in (
        ("others", r"he|she|they"),
        ("theirs", r"it's|it|his|her|their|who|that"),
        ("own", r"my"),
        ("speaker", r"i"),
        ("denied", r"not|no|never|\w+n't"),
        ("ahead", r"you|we|us|let's|come|i'll|we'll|shall|would|could|can|if|please"),
        ("reported", r"know|said|told|heard|think|thought"),
        ("bounded", r"by|before|until|'?till?|since|after|past"),
        ("usual", r"this morning|yesterday|last|every|always|ever|once|usual|days"),
        ("past", r"was|were|had|did|went|came|got|saw|\w+ed"),
    )
}
"""Words by which the sentence of a time tells of other things than the meeting."""
_LEADS = re.compile(r"(?:\b(?:at|by|from|about|around|say|for|until|before|so|it's|is|like)|[,.!?]) $", re.IGNORECASE)
"""What may lead to a time."""
_FIVE_TO = re.compile(rf"(?<!at )(?<!by )(?<!before )(?<!until )(?<!it's )\b(?:five|ten) to {HOUR}\b", re.IGNORECASE)
"""Minutes before an hour, or a range of hours."""
_HALF = re.compile(rf"\b(?:half|quarter) past\b(?! {HOUR}\b)", re.IGNORECASE)


def doubted(text: str, situation: Situation, clock: When, slots: InvitationSlots) -> frozenset[str]:
    """Of start and end those that are likely enough to be read wrongly; the end also where the start is."""
    if not (clock.spans or names_length(text) or _how_long(situation)):
        return frozenset()
    found = clues(text, situation, clock, slots)
    if likelihood(_weights()["start"], found) >= DOUBTFUL:
        return BOTH
    return frozenset({"end"}) if likelihood(_weights()["end"], found) >= DOUBTFUL else frozenset()


def likelihood(weights: Mapping[str, int], found: Set[str]) -> float:
    """The probability that a slot is read wrongly, by the weights of the clues to it."""
    return 1 / (1 + math.exp(-sum(weights.get(clue, 0) for clue in found) / 100))


@cache
def _weights() -> Mapping[str, Mapping[str, int]]:
    weights: dict[str, dict[str, int]] = json.loads(Path(__file__).with_name("doubting.json").read_text("utf-8"))
    return weights


def clues(text: str, situation: Situation, clock: When, slots: InvitationSlots) -> set[str]:
    """The clues to whether start and end are read wrongly in a text of which `slots` were read."""
    started, ended = slots.start is not None, slots.end is not None
    earlier = any(clock_times(line.text) for line in situation.before)
    return {
        *("always", f"read {started}|{ended}", f"ranged {clock.ranged}", f"refuses {slots.negated}"),
        *(f"start {started}|{clock.starts > 0}|{earlier}", f"end {ended}|{clock.ends > 0}|{started}"),
        f"roles {clock.starts > 0}|{clock.ends > 0}|{clock.ranged}",
        f"shifts {within('later|earlier|sooner|same time|same hour', text)}|{started}",
        *(f"day {slots.day is not None}", f"place {slots.place is not None}", f"activity {slots.activity is not None}"),
        f"times {min(clock.starts, 3)}|{min(clock.ends, 3)}|{clock.ranged}",
        f"left out {min(len(clock.spans) - clock.starts - clock.ends, 2)}",
        *(f"length {names_length(text)}|{ended}", f"how long {_how_long(situation)}|{ended}"),
        *(f"five to {_FIVE_TO.search(text) is not None}", f"half {_HALF.search(text) is not None}"),
        f"parts {len({part.half for part in day_parts(text)})}",
        f"before {bool(situation.before)}|{earlier}",
        *(f"answers {situation.question.endswith('?')}", f"words {min(len(text.split()) // 12, 4)}"),
        f"sentences {min(len(_SENTENCE.findall(text)), 4)}",
        *_around(text, clock),
    }


def _around(text: str, clock: When) -> Iterator[str]:
    """The kinds of the sentences in which times stand, and what leads to each time."""
    for start, end in clock.spans:
        before = _SENTENCE.split(text[:start])[-1]
        sentence = f"{before} {_SENTENCE.split(text[end:])[0]}"
        yield from (f"led by {kind}" for kind, words in _KINDS.items() if words.search(before))
        yield from (f"among {kind}" for kind, words in _KINDS.items() if words.search(sentence))
        lead = _LEADS.search(before)
        yield f"lead {lead[0].strip().lower() if lead else 'other'}"
        yield f"opens {not before.strip()}"


def _how_long(situation: Situation) -> bool:
    return within(HOW_LONG, situation.question)
