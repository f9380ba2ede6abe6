"""Which days, times, places and people that a text names belong to the meeting, and which are named in passing.

`asides.json` has a weight for each clue, learned by `python -m tools.hearing` from labelled utterances: what stands
around a name, in what kind of sentence, what was said before, and what the rules alone take it for. Words are clues
only where they may be clues to an activity too, or name a day or a place; of other words only the shape is.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from environments.stss.hearing.activities.activity import known_words, listen
from environments.stss.hearing.activities.clauses import CONJUNCTIONS
from environments.stss.hearing.activities.clues import HeardWords
from environments.stss.hearing.activities.groups import PRONOUNS
from environments.stss.hearing.activities.tokens import Kind, SlotSpan
from environments.stss.hearing.named.clock_words import NOON, ClockTime, clock_times
from environments.stss.hearing.named.days import is_denied_day, named_days
from environments.stss.hearing.named.people import POSSESSIVE, NamedPerson, people, persons
from environments.stss.hearing.named.spots import is_denied_place, mentions
from environments.stss.hearing.named.times import is_denied_time
from environments.stss.hearing.sentence_kinds import SENTENCE, sentence_kinds
from environments.stss.hearing.slots import NumberSpan, Situation
from environments.stss.hearing.weights import likelihood, stored
from environments.stss.town.places import Mention

WEIGHTS = Path(__file__).with_name("asides.json")
BELONGS = {"day": 0.3, "time": 0.3, "place": 0.3, "name": 0.6}
"""The probability from which on something is taken for a part of the meeting. It is higher for people: a character asks
whether others who are named take part."""
AGAINST_RULES = 0.85
"""As BELONGS, where the rules alone take it for none."""
UNCLEAR = {"day": 0.1, "place": 0.2}
"""From this probability up to its complement a character asks."""
MOST = 40
"""So many of what a text names are weighed; what follows counts as the rules say."""

Found = NumberSpan | ClockTime | Mention | NamedPerson
Part = TypeVar("Part", NumberSpan, ClockTime, Mention, NamedPerson)
_SHORT = 8
"""Places of fewer characters are clues as such: `here`, `mine`, `yours`, `the pub`."""


class NamedSlot(NamedTuple):
    """A day, a time, a place or a person that a text names."""

    kind: Kind
    found: Found
    value: int | str
    """The day; minutes after midnight or noon; the address; the full name."""
    denied: bool
    """Whether the rules alone take it for no part of the meeting."""


class Weighed(NamedTuple):
    """A named day, time, place or person, and the probability that it belongs to the meeting."""

    slot: NamedSlot
    likelihood: float

    @property
    def belongs(self) -> bool:
        """Whether it is taken for a part of the meeting."""
        return self.likelihood >= (AGAINST_RULES if self.slot.denied else BELONGS[self.slot.kind])

    @property
    def unclear(self) -> bool:
        """Whether it may as well be none, or one: a day or a place. Doubtful times are found in `doubting`."""
        least = UNCLEAR.get(self.slot.kind)
        return least is not None and least <= self.likelihood < 1 - least


def weighed(text: str, situation: Situation) -> list[Weighed]:
    """All days, times, places and people that a text names, in order, each with its probability."""
    named = named_slots(text, situation)
    found = clues(text, situation, named) if named else []
    first = [Weighed(slot, likelihood(stored(WEIGHTS), each)) for slot, each in zip(named, found, strict=False)]
    return [*first, *(Weighed(slot, float(not slot.denied)) for slot in named[MOST:])]


def parts(named: Sequence[Weighed], kind: type[Part], *, belonging: bool = False) -> list[Part]:
    """What is named of one kind, in order; only what belongs to the meeting where `belonging` is set."""
    counted = (each.slot.found for each in named if each.belongs or not belonging)
    return [found for found in counted if isinstance(found, kind)]


def named_slots(text: str, situation: Situation) -> list[NamedSlot]:
    """All days, times, places and people that a text names, in order."""
    taking_part = people(text, situation)
    found = [
        *(NamedSlot("day", day, day.value, is_denied_day(text, day)) for day in named_days(text, situation.now)),
        *(
            NamedSlot("time", time, time.minute % NOON, is_denied_time(text, time, situation))
            for time in clock_times(text)
        ),
        *(NamedSlot("place", spot, spot.address, is_denied_place(text, spot)) for spot in mentions(text, situation)),
        *(NamedSlot("name", one, one.name, one.name not in taking_part) for one in persons(text, situation)),
    ]
    return sorted(found, key=lambda each: (each.found.start, each.found.end, each.kind))


def spans(named: Iterable[NamedSlot]) -> list[SlotSpan]:
    """The parts of the text that name days, times and places."""
    return [SlotSpan(each.found.start, each.found.end, each.kind) for each in named if each.kind != "name"]


def clues(text: str, situation: Situation, named: Sequence[NamedSlot]) -> list[set[str]]:
    """For each of the first of what a text names, at most `MOST`, the clues to whether it belongs to the meeting."""
    heard = listen(text, spans(named), situation, known_words(), refuses=False)
    return [_clues(text, situation, heard, named, at) for at in range(min(len(named), MOST))]


def _clues(text: str, situation: Situation, heard: HeardWords, named: Sequence[NamedSlot], at: int) -> set[str]:
    slot = named[at]
    shared = {*_order(named, slot), *_around(heard, named, slot), *_kinds(text, heard, slot)}
    return {*shared, *(f"{slot.kind} {clue}" for clue in shared), *_value(text, situation, named, slot)}


def _order(named: Sequence[NamedSlot], slot: NamedSlot) -> Iterator[str]:
    """Where it stands among the others of its kind."""
    alike = [each for each in named if each.kind == slot.kind]
    counted = [each for each in alike if not each.denied]
    yield from ("always", f"denied {slot.denied}", f"order {slot == alike[0]}|{slot == alike[-1]}|{slot.denied}")
    yield f"counted {slot in counted}|{counted[:1] == [slot]}|{counted[-1:] == [slot]}"
    yield f"alike {min(len(alike), 4)}|{len({each.value for each in alike})}"


def _around(heard: HeardWords, named: Sequence[NamedSlot], slot: NamedSlot) -> Iterator[str]:
    """The words around it, and the clause and the sentence in which it stands."""
    tokens, near = heard.tokens, heard.near
    here = next((at for at, token in enumerate(tokens) if token.end > slot.found.start), len(tokens) - 1)
    begin, end = heard.sentences[here].start, heard.sentences[here].stop
    joins = (
        at + 1 for at in range(here - 1, begin - 1, -1) if tokens[at].text == "," or tokens[at].word in CONJUNCTIONS
    )
    clause = next(joins, begin)
    yield from (f"lead {near(here - 1)}", f"lead {near(here - 2)} {near(here - 1)}", f"two before {near(here - 2)}")
    yield f"lead {near(here - 3)} {near(here - 2)} {near(here - 1)}"
    yield from (f"after {near(here + 1)}", f"after {near(here + 1)} {near(here + 2)}")
    yield f"between {near(here - 1)}|{near(here + 1)}"
    for name, at in (("opening", begin), ("clause", clause)):
        yield from (f"{name} {near(at)}", f"{name} {near(at)} {near(at + 1)}")
    yield f"joined {near(clause - 1)}|{near(clause)}"
    yield from (f"on {min(here - begin, 6)}", f"on in clause {min(here - clause, 4)}", f"whole {end - begin == 1}")
    yield f"closes {tokens[end].text if end < len(tokens) else 'open'}"
    number, goes_on = sum(token.ends for token in tokens[:begin]), not all(token.ends for token in tokens[end:])
    yield f"sentence {min(number, 3)}|{goes_on}"
    yield from (f"says {heard.shown[at]}" for at in range(begin, here) if tokens[at].word in heard.known)
    yield from (f"goes on {heard.shown[at]}" for at in range(here + 1, end) if tokens[at].word in heard.known)
    yield f"subject {next((near(at) for at in range(clause, here) if tokens[at].word in PRONOUNS), 'none')}"
    span = range(tokens[begin].start, tokens[end - 1].end)
    beside = {each.kind for each in named if each.found.start in span and each != slot}
    yield from (f"beside {kind}" for kind in beside)
    yield f"beside any {bool(beside)}"
    yield from (f"elsewhere {kind}" for kind in {each.kind for each in named if each.found.start not in span})


def _kinds(text: str, heard: HeardWords, slot: NamedSlot) -> Iterator[str]:
    """The kinds of its sentence, and what was said before."""
    before = SENTENCE.split(text[: slot.found.start])[-1]
    after = SENTENCE.split(text[slot.found.end :])[0]
    yield from (f"led by {kind}" for kind in sentence_kinds(before))
    yield from (f"among {kind}" for kind in sentence_kinds(f"{before} {after}"))
    yield from (f"asked {heard.question}", f"told {heard.told}|{heard.answers}")


def _value(text: str, situation: Situation, named: Sequence[NamedSlot], slot: NamedSlot) -> Iterator[str]:
    """What it is, and whether it was said before: which day, whose home, how it is said."""
    words = text[slot.found.start : slot.found.end].lower()
    others = {each.value for each in named if each.kind == slot.kind and each != slot}
    yield f"{slot.kind} again {slot.value in others}|{bool(others)}"
    match slot.found:
        case NumberSpan():
            asked = {day.value for day in named_days(situation.question, situation.now)}
            yield from (f"says day {words}", f"day {slot.value}|{sorted(others)}", f"day {slot.value}|{slot.denied}")
            yield f"day asked {slot.value in asked}"
        case ClockTime(exact=exact):
            asked = _minutes(situation.question)
            told = {minute for line in situation.before for minute in _minutes(line.text)}
            yield from (f"time exact {exact}", f"time asked {slot.value in asked}|{bool(asked)}")
            yield f"time told {slot.value in told}|{bool(told)}"
        case NamedPerson(name=name):
            first = name.split()[0]
            told_of = any(first in line.text for line in situation.before)
            yield from (f"name told {told_of}", f"name asked {first in situation.question}")
            yield f"name owns {POSSESSIVE.match(text[slot.found.end :]) is not None}|{slot.denied}"
        case Mention(address=address):
            homes = situation.places.homes.items()
            owner = next((name for name, home in homes if home.partition(":")[0] == address), "")
            whose = {situation.speaker: "speaker", situation.listener: "listener", "": "nobody"}.get(owner, "other")
            spots = {spot.address for spot in mentions(situation.question, situation)}
            yield from (f"place of {whose}", f"place {words if owner or len(words) < _SHORT else 'long'}")
            yield f"place asked {address in spots}|{bool(spots)}"


def _minutes(text: str) -> set[int]:
    return {time.minute % NOON for time in clock_times(text)}
