"""How likely the time of a text is read wrongly: where it is, a character asks for it instead of guessing.

`doubting.json` has a weight for each clue, learned by `python -m tools.hearing` from labelled utterances: how many
times a text names and as what, and what kind of sentence each of them stands in. No clue is a word of an activity.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from environments.stss.hearing.asides import MOST
from environments.stss.hearing.named.clock_words import HOURS, NOON, clock_times, day_parts
from environments.stss.hearing.named.lengths import names_length
from environments.stss.hearing.named.times import HOW_LONG, When
from environments.stss.hearing.recognise import Recognised
from environments.stss.hearing.sentence_kinds import SENTENCE, sentence_kinds
from environments.stss.hearing.slots import InvitationSlots, Situation
from environments.stss.hearing.weights import likelihood, stored
from environments.stss.hearing.words import HOUR, within

WEIGHTS = Path(__file__).with_name("doubting.json")
DOUBTFUL = 0.12
"""The probability from which on a slot is asked for."""
EVEN = 0.5
"""The probability at which a time as likely belongs to the meeting as not."""
BOTH = frozenset({"start", "end"})

_LEADS = re.compile(r"(?:\b(?:at|by|from|about|around|say|for|until|before|so|it's|is|like)|[,.!?]) $", re.IGNORECASE)
"""What may lead to a time."""
_FIVE_TO = re.compile(rf"(?<!at )(?<!by )(?<!before )(?<!until )(?<!it's )\b(?:five|ten) to {HOUR}\b", re.IGNORECASE)
"""Minutes before an hour, or a range of hours."""
_HALF = re.compile(rf"\b(?:half|quarter) past\b(?! {HOUR}\b)", re.IGNORECASE)


def doubted(found: Recognised, situation: Situation, slots: InvitationSlots) -> frozenset[str]:
    """Of start and end those that are likely enough to be read wrongly; the end also where the start is."""
    if not (found.clock.spans or names_length(found.text) or _how_long(situation)):
        return frozenset()
    told, weights = clues(found, situation, slots), stored(WEIGHTS)
    if likelihood(weights["start"], told) >= DOUBTFUL:
        return BOTH
    return frozenset({"end"}) if likelihood(weights["end"], told) >= DOUBTFUL else frozenset()


def clues(found: Recognised, situation: Situation, slots: InvitationSlots) -> set[str]:
    """The clues to whether start and end are read wrongly in a text of which `slots` were read."""
    text, clock = found.text, found.clock
    started, ended = slots.start is not None, slots.end is not None
    earlier = any(clock_times(line.text) for line in situation.before)
    return {
        *("always", f"read {started}|{ended}", f"ranged {clock.ranged}", f"refuses {slots.negated}"),
        *(f"start {started}|{clock.starts > 0}|{earlier}", f"end {ended}|{clock.ends > 0}|{started}"),
        f"roles {clock.starts > 0}|{clock.ends > 0}|{clock.ranged}",
        *(f"half {clock.source}", f"half {clock.source}|{_hour(clock)}", f"half {clock.source}|{slots.day}"),
        f"shifts {within('later|earlier|sooner|same time|same hour', text)}|{started}",
        *(f"day {slots.day is not None}", f"place {slots.place is not None}", f"activity {slots.activity is not None}"),
        f"times {min(clock.starts, 3)}|{min(clock.ends, 3)}|{clock.ranged}",
        f"left out {min(len(clock.spans) - clock.starts - clock.ends, 2)}",
        *(f"length {names_length(text)}|{ended}", f"how long {_how_long(situation)}|{ended}"),
        *(f"five to {_FIVE_TO.search(text) is not None}", f"half {_HALF.search(text) is not None}"),
        f"parts {len({part.half for part in day_parts(text)})}",
        f"before {bool(situation.before)}|{earlier}",
        *(f"answers {situation.question.endswith('?')}", f"words {min(len(text.split()) // 12, 4)}"),
        f"sentences {min(len(SENTENCE.findall(text)), 4)}",
        *_around(text, clock),
        *_likely([each.likelihood for each in found.named if each.slot.kind == "time"]),
    }


def _around(text: str, clock: When) -> Iterator[str]:
    """The kinds of the sentences in which the first times stand, at most `MOST`, and what leads to each time."""
    for start, end in clock.spans[:MOST]:
        before = SENTENCE.split(text[:start])[-1]
        sentence = f"{before} {SENTENCE.split(text[end:])[0]}"
        yield from (f"led by {kind}" for kind in sentence_kinds(before))
        yield from (f"among {kind}" for kind in sentence_kinds(sentence))
        lead = _LEADS.search(before)
        yield f"lead {lead[0].strip().lower() if lead else 'other'}"
        yield f"opens {not before.strip()}"


def _likely(likelihoods: Sequence[float]) -> Iterator[str]:
    """How likely the times belong to the meeting, in tenths."""
    yield from (f"likely {int(10 * each)}" for each in likelihoods)
    yield f"belong {sum(each >= EVEN for each in likelihoods)}|{len(likelihoods)}"
    yield f"least clear {min((int(10 * abs(each - EVEN)) for each in likelihoods), default='none')}"


def _hour(clock: When) -> int | None:
    """The hour of the start, of the twelve."""
    return None if clock.start is None else clock.start % NOON // HOURS


def _how_long(situation: Situation) -> bool:
    return within(HOW_LONG, situation.question)
