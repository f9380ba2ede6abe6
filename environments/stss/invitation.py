"""The one form in which people driven by rules understand an invitation: a sentence, or labelled lines.

Nothing else is understood, and nothing is guessed: what does not fit is asked about.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from environments.stss.town.schedule import DATES, DAY, day_named, spoken_time, time_text
from environments.stss.town.world import Places

FORM = "what: ACTIVITY; where: PLACE; when: DAY START to END"
FORM_RULE = """\
- The people understand an invitation in one form only: the sentence `Would you like to ACTIVITY at PLACE on DAY from
  START to END?`, or the line `what: ACTIVITY; where: PLACE; when: DAY START to END`. For an errand give two such
  lines, in order; the second needs no `when`. PLACE may be `online`. DAY is a date, a weekday, `today` or `tomorrow`;
  a time is like `19:00`, `7 pm` or `noon`. Without END it is an hour, for an errand 20 minutes. A part of the line
  changes that part: `when: 2023-02-14 16:00 to 17:00`. `not: ACTIVITY`, or `We will not ACTIVITY.`, calls it off in
  the same talk."""
"""What the performer's brief says of the form."""
ONLINE = "online"
NIGHT = 6 * 60
"""Minutes that something may last past midnight."""
MAX_LEGS = 2
MAX_CHARS = 4_000
"""Limit of characters read of an utterance."""

_TIME = r"(?:noon|midnight|\d{1,2}:\d{2}(?::\d{2})?(?: ?[ap]\.?m\b\.?)?|\d{1,2} ?[ap]\.?m\b\.?)"
_DATE = r"\d{4}-\d{2}-\d{2}"
_DAY = rf"(?:today|tomorrow|{_DATE}|(?:mon|tues|wednes|thurs|fri|satur|sun)day(?:,? {_DATE})?)"
_SPAN = rf"(?P<start>{_TIME})(?:(?: to | until | ?[-–] ?)(?P<end>{_TIME}))?"
_WHEN = re.compile(rf"(?:on )?(?P<day>{_DAY})?(?:(?:^|,? )(?:(?:from|at) )?{_SPAN})?", re.IGNORECASE)
_WHEN_AT_END = re.compile(rf"(?:(?:^|,? )(?:on )?{_DAY})?(?:,? (?:from|at) {_SPAN})?$", re.IGNORECASE)
_STRAY = re.compile(rf"(?<!\w)(?:{_TIME}|{_DAY})(?!\w)", re.IGNORECASE)
_NO_DAY = re.compile(r"\b(?:after|before|next|last|every|each|not|until|by)$", re.IGNORECASE)
"""By which a day that follows is another one: `the day after tomorrow`."""
_SENTENCE = re.compile(r"(?:^|(?<=[.!?] ))would you like to ([^?]+)\?", re.IGNORECASE)
_REFUSAL = re.compile(
    r"(?:^|(?<=[.!?] ))(?P<before>[^.!?]*?)\bwe will not (?P<what>[^.!?]+?)(?: after all)?(?:[.!]|$)", re.IGNORECASE
)
_SORRY = re.compile(r"(?:(?:i am |i'm )?(?:so |very )?sorry|no|unfortunately|alas|but)?[\W]*", re.IGNORECASE)
"""What may stand before a refusal; after other words it is asked what is called off."""
_LABEL = re.compile(r"(?<!\w)(what|where|when|not)[*_]* ?: ?", re.IGNORECASE)
_BEFORE_LABELS = re.compile(r"(?:.*(?:[.!?:;,]|\d\)))?[\s*_>•-]*", re.DOTALL)
_PLACEHOLDER = re.compile(r"\W*|activity", re.IGNORECASE)
_AT = re.compile(r"(.+) at (.+)", re.IGNORECASE)
_BULLET = re.compile(r"\s+(?:(?:\d+[.)]|[>*•-]+)?\s*[*_]*)?\s*$")
"""Of a list, at the end of a value: the mark of the next line."""
_SENTENCE_END = re.compile(r"[.!?](?:\s|$)")


class SpokenLine(NamedTuple):
    """One utterance."""

    speaker: str
    text: str


class Leg(NamedTuple):
    """One thing to do; None for what is not named."""

    activity: str | None = None
    place: str | None = None
    """An address, or ONLINE."""
    day: int | None = None
    """0 and 1 are the two simulated days, 2 is any other."""
    start: int | None = None
    """Minutes since midnight."""
    end: int | None = None
    """Minutes since the midnight before `start`; over 24:00 if it is after the next one."""

    def changed(self, by: "Leg") -> "Leg":
        """This leg with what another one names; a new start without an end leaves the end open."""
        named = {name: value for name, value in by._asdict().items() if value is not None}
        return self._replace(**({"end": None} if by.start is not None else {}) | named)


class FormContent(NamedTuple):
    """What an utterance says in the form."""

    legs: tuple[Leg, ...] = ()
    """One leg, or the two of an errand; empty where nothing is in the form."""
    off: str | None = None
    """The activity that is called off; empty where something is, but it is not clear what."""
    whole: bool = False
    """Whether it is a sentence, which is an invitation of its own; a line changes its part of the one before."""
    unread: tuple[str, ...] = ()
    """Parts that are in the form but can't be read, in words."""


def read(text: str, places: Places, today: int) -> FormContent:
    """What an utterance says in the form. `today`: the day (0 or 1) on which it is said."""
    text = " ".join(text[:MAX_CHARS].replace("’", "'").split())
    unread: list[str] = []
    before, *parts = _LABEL.split(text)
    labels = list(zip(map(str.lower, parts[::2]), parts[1::2], strict=True)) if _BEFORE_LABELS.fullmatch(before) else []
    refusal = _REFUSAL.search(text)
    offs = [_plain(_SENTENCE_END.split(value)[0]) for name, value in labels if name == "not"]
    refused = refusal and (refusal["what"] if _SORRY.fullmatch(refusal["before"]) else "")
    off = offs[0] if offs else refused
    whole = len(offs) == len(labels)
    if whole:
        labels = [label for match in _SENTENCE.finditer(text) for label in _labels(match[1].strip(), places, unread)]
    legs = list(_legs(labels, places, today, unread))
    if len(legs) > MAX_LEGS:
        unread.append(f"more than {MAX_LEGS} things at once")
    return FormContent(tuple(legs[:MAX_LEGS]), off, whole, tuple(unread))


def _labels(said: str, places: Places, unread: list[str]) -> Iterator[tuple[str, str]]:
    """`ACTIVITY at PLACE on DAY from START to END` as labelled values, read from its end."""
    when = _WHEN_AT_END.search(said)
    when_said = _plain(when[0]) if when else ""
    said = said[: when.start()] if when else said
    if _NO_DAY.search(said):
        unread.append(f"when it is ({said.split()[-1]} {when_said})")
        when_said = ""
    what, where = said, ""
    if said.lower().endswith(f" {ONLINE}"):
        what, where = said[: -len(ONLINE)].removesuffix(" at "), ONLINE
    elif (found := _AT.fullmatch(said)) and places.named(_plain(found[2])):  # not as in `look at stars`
        what, where = found[1], found[2]
    elsewhere = _AT.fullmatch(what)
    if _STRAY.search(what) or (elsewhere and places.mentions(elsewhere[2])):
        unread.append(f"what it is ({_plain(what)})")
    else:
        yield "what", what
    yield from (label for label in (("where", where), ("when", when_said)) if label[1])


def _legs(labels: Iterable[tuple[str, str]], places: Places, today: int, unread: list[str]) -> Iterator[Leg]:
    """The legs of labelled values: a label that comes again begins the next leg."""
    leg, seen = Leg(), set[str]()
    for label, text in labels:
        value, _, more = _BULLET.sub("", text).partition(";")
        if label in seen:
            yield leg
            leg, seen = Leg(), set()
        if label != "not":
            seen.add(label)
        if label == "what" and _plain(more):
            unread.append(f"what it is ({_plain(text)})")
        elif label == "what" and not _PLACEHOLDER.fullmatch(_plain(value)):
            leg = leg._replace(activity=_plain(value))
        elif label == "where":
            leg = leg._replace(place=_place(value, places, unread))
        elif label == "when":
            leg = _timed(leg, value.strip(" *_"), today, unread)
    if seen:
        yield leg


def _timed(leg: Leg, said: str, today: int, unread: list[str]) -> Leg:
    """A leg with its day and times, as far as they can be read."""
    match = _WHEN.match(said)
    rest = said[match.end() :] if match else said
    match = match if not _plain(rest) or rest[0] in ".!?" or said[: -len(rest)].endswith(".") else None
    days = {day_named(word, today) for word in re.split(r"[\s,]+", match["day"])} if match and match["day"] else {None}
    if match is None or not said or len(days) > 1:
        unread.append(f"when it is ({said})")
        return leg
    leg = leg._replace(day=days.pop())
    try:
        start = spoken_time(match["start"]) if match["start"] else None
        end = spoken_time(match["end"]) if match["end"] else None
    except ValueError:
        start, end = DAY, None
    if start is not None and end is not None and end <= start:
        end += DAY
    if start is not None and (start >= DAY or (end is not None and end > DAY and end - start > NIGHT)):
        unread.append(f"from when to when it is ({said})")
        return leg
    return leg._replace(start=start, end=end)


def _place(said: str, places: Places, unread: list[str]) -> str | None:
    """The address of a place, without the sentence that may follow it."""
    for name in (_plain(said), _plain(_SENTENCE_END.split(said)[0])):
        if address := ONLINE if name.lower() == ONLINE else places.named(name):
            return address
    unread.append(f"where it is ({_plain(said)})")
    return None


def _plain(text: str) -> str:
    return text.strip(" \t.!,;`'\"“”*_")


def changed(legs: Sequence[Leg], by: Sequence[Leg], *, whole: bool) -> tuple[Leg, ...]:
    """The legs heard so far with what an utterance names; a new invitation takes their place.

    New is a sentence (`whole`) of another activity, and lines that leave nothing out.
    """
    renamed = by[0].activity is not None and not same(by[0].activity, legs[0].activity if legs else None)
    if renamed and (whole or not missing(by)):
        return tuple(by)
    return tuple(leg.changed(named) for leg, named in zip_longest(legs, by, fillvalue=Leg()))


def same(one: str | None, other: str | None) -> bool:
    """Whether two activities have the same words."""
    return one is not None and other is not None and one.lower().split() == other.lower().split()


def missing(legs: Sequence[Leg]) -> tuple[str, ...]:
    """The labels without which nothing is agreed, in their order; a second leg needs no time of its own."""
    legs = legs or (Leg(),)
    timed = None not in (legs[0].day, legs[0].start)
    known = {
        "what": all(leg.activity for leg in legs),
        "where": all(leg.place for leg in legs),
        "when": timed and all((leg.day is None) == (leg.start is None) for leg in legs),
    }
    return tuple(label for label, there in known.items() if not there)


def form_of(legs: Sequence[Leg]) -> str:
    """Legs as labelled lines, which `read` reads again."""
    return "; ".join(f"{label}: {value}" for leg in legs for label, value in _values(leg) if value)


def in_words(legs: Sequence[Leg]) -> str:
    """Legs as the sentence has them: `picnic at Johnson Park on 2023-02-14 from 15:00 to 16:00`."""
    return ", then ".join(filter(None, map(_in_words, legs)))


def _in_words(leg: Leg) -> str:
    words = {"what": "{}", "where": ONLINE if leg.place == ONLINE else "at {}", "when": "{}"}
    return " ".join(words[label].format(value) for label, value in _values(leg, "on ", "from ") if value)


def _values(leg: Leg, on: str = "", since: str = "") -> tuple[tuple[str, str], ...]:
    day = "" if leg.day is None else f"{on}{DATES[leg.day] if leg.day < len(DATES) else 'another day'}"
    times = "" if leg.start is None else f"{since}{time_text(leg.start)}"
    until = "" if leg.end is None else f" to {time_text(leg.end)}"
    return ("what", leg.activity or ""), ("where", leg.place or ""), ("when", f"{day} {times}{until}".strip())
