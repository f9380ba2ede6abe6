"""How long something lasts, and how much later or earlier it is, in the words of a text."""

import re
from typing import NamedTuple

from environments.stss.hearing.named.clock_words import HOURS
from environments.stss.hearing.words import NUMBERS

_TENS = {
    "fifteen": 15, "twenty": 20, "twenty-five": 25, "thirty": 30, "thirty-five": 35, "forty": 40, "forty-five": 45,
    "fifty": 50, "fifty-five": 55, "sixty": 60, "ninety": 90,
}  # fmt: skip
_COUNTS = {**NUMBERS, **_TENS, "a": 1, "an": 1, "a couple of": 2}
_COUNT = rf"(?:a couple of|{'|'.join(sorted(_COUNTS, key=len, reverse=True))}|\d{{1,3}})"
_LENGTH = (
    rf"(?:(?P<half>half an hour)|(?P<quarters>(?P<some>three quarters|a quarter|quarter) of an hour)"
    rf"|(?P<hours>{_COUNT})[ -](?:whole |full |good )?hours?"
    rf"(?:,? and (?:a (?P<and>half|quarter)|(?P<more>{_COUNT}) min\w*))?"
    rf"|(?P<halves>{_COUNT}) and a half hours|(?P<minutes>{_COUNT})[ -](?:whole )?min(?:ute)?s?)\b"
)
_SHIFT = re.compile(
    rf"\b(?P<not>not )?{_LENGTH},? "
    r"(?:(?P<later>later|after (?:that|it|this))|(?P<sooner>earlier|sooner|before (?:that|it|this)))\b",
    re.IGNORECASE,
)
_LASTS = re.compile(
    r"(?:\b(?:for|lasts?|takes?|runs?(?: for)?|only|be|about|just)(?: about| around| maybe| exactly)?\s+|[,.;:!?]\s+"
    rf"|^(?:\w+,? )?){_LENGTH}"
    r"(?=\s*(?:[,.;!?]|$)|\s+(?:from|on the nose|at (?:the )?most|tops|starting|tonight|tomorrow|today|and|or so"
    r"|ought|should|will do|would do|is (?:all|enough|plenty))\b)",
    re.IGNORECASE,
)
_ANY = re.compile(rf"\b{_LENGTH}", re.IGNORECASE)
_UNIT = re.compile("hour|min", re.IGNORECASE)
"""What every length has, and few texts."""


SHORT = 20
"""The least minutes that name an end where nobody asked how long it lasts: `five minutes` is a way to say soon over."""


class Shift(NamedTuple):
    """A part of a text by which something is later than another time."""

    start: int
    minutes: int
    """Below 0: earlier."""


def shift(text: str) -> Shift | None:
    """By how much a text says that something is later or earlier, as in `an hour later`."""
    found = _SHIFT.finditer(text) if _UNIT.search(text) else ()
    match = next((match for match in found if not match["not"]), None)
    return None if match is None else Shift(match.start(), _minutes(match) * (1 if match["later"] else -1))


def length(text: str, *, asked: bool) -> int | None:
    """How many minutes a text says that something lasts; None if it names none.

    `asked`: whether it answers to the question how long it will last. Then every length counts, and the longest holds,
    since shorter ones are its parts; else a text that names several tells none.
    """
    if not _UNIT.search(text):
        return None
    found = [_minutes(match) for match in (_ANY if asked else _LASTS).finditer(_SHIFT.sub(" ", text))]
    lasts = max(found) if found and (asked or len(set(found)) == 1) else None
    return lasts if lasts and (asked or lasts >= SHORT) else None


def names_length(text: str) -> bool:
    """Whether a text names any length of time."""
    return _UNIT.search(text) is not None and _ANY.search(text) is not None


def _minutes(match: re.Match[str]) -> int:
    if match["half"]:
        return HOURS // 2
    if match["quarters"]:
        return HOURS // 4 * (3 if match["some"].lower() == "three quarters" else 1)
    if match["minutes"]:
        return _number(match["minutes"])
    if match["halves"]:
        return _number(match["halves"]) * HOURS + HOURS // 2
    part = {"half": 30, "quarter": 15}.get((match["and"] or "").lower(), 0)
    return _number(match["hours"]) * HOURS + part + (_number(match["more"]) if match["more"] else 0)


def _number(words: str) -> int:
    return _COUNTS.get(words.lower()) or int(words)
