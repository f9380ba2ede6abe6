"""Times of day in words and figures, with the half of the day where the text tells it."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from environments.stss.hearing.words import HOUR, NUMBERS
from environments.stss.town.clock import DAY

HOURS = 60
NOON = 12 * HOURS
_MINUTES = {
    "five": 5, "ten": 10, "quarter": 15, "a quarter": 15, "twenty": 20, "twenty-five": 25, "half": 30,
    "5": 5, "10": 10, "20": 20, "25": 25, "fifteen": 15, "thirty": 30, "forty-five": 45, "forty": 40, "fifty": 50,
}  # fmt: skip
_ENDS = r"(?=-?ish\b|(?!-)\W|$)"
_AFTER = (
    r"(?=(?:-?ish)?(?:\s*(?:$|[.,;:!?)–—-])|\s+(?:in|at|on|tomm?orr?ow|today|tonight|this|and|until|till|to|"
    r"sharp|so|or"
    r"|if|because|cos|cause|with|for|it|is|would|then|when|instead|but|before|after|works?|suits?|now|not|as|by|o'clock|"
    r"be|while"
    r"|since|all|should|will|same|maybe|perhaps|please|from|tuesday|monday|you|we|i|the|my|where|which|whatever)\b))"
)
"""What may follow an hour after a preposition."""
_CLOSES = (
    r"(?=\s*(?:$|[.,;:!?)–—-])|\s+(?:in the|at night|on|tomm?orr?ow|today|tonight|this|until|till|to"
    r"|sharp|would|is|it is|works?|then|now|instead|o'clock|at the (?:outside|latest))\b)"
)
"""What may follow an hour without one."""
_LEADS = (
    "at", "by", "before", "from", "to", "until", "till", "about", "around", "say", "it", "that", "after", "past",
    "than",
    "beyond", "between", "not", "today", "tomorrow", "tonight", "tuesday", "evening", "morning", "afternoon", "perhaps",
    "maybe", "towards", "day", "or", "better",
)  # fmt: skip
_NO_TIME = rf"(?!one\b|{HOUR} (?:with|of|or|for)\b)"
_STRONG = "(?:" + "|".join(rf"(?<=\b{lead}\s)" for lead in _LEADS) + rf"|(?:(?<=\bit's\s)|(?<=\bgonna be\s)){_NO_TIME})"
_WEAK = r"(?:(?<=,\s)|(?<=[.!?]\s)|^)"
_BY_A_DAY = (
    r"(?=\s+(?:tomm?orr?ow|today|tonight|this (?:morning|afternoon|evening)|in the (?:morning|afternoon|"
    r"evening)|at night))"
)
_TO = r"(?:-?ish)?,? (?:to|'?till?|until|-|–)(?: about| around| say)?"
_RANGED = (
    rf"(?={_TO}(?: (?:half|quarter) past\b| (?:half|a? ?quarter (?:past|to)|(?:five|ten|twenty) (?:past|to)))?"
    rf"(?: (?:{HOUR}|noon|midday|midnight)\b(?! (?:past|minutes|of)\b)(?!:\d)|(?<=past)\b))"
)
"""What follows the first hour of a range."""
FITS = r"(?:better|fine|good|perfect|safer|easier)\b"
"""What may be said of an hour: `five's better`."""
_SHORT_RANGE = (
    r"(?<=, )(?<!no, )(?<!oh, )(?=(?:five|5) to (?:six|seven|[67]) in the (?:evening|afternoon|morning)\b"
    r"|(?:ten|10) to (?:eleven|twelve|11|12) in the (?:evening|morning)\b)"
)
"""Before a range: `, five to seven in the evening` is from five to seven; elsewhere `five to seven` is 6:55."""
_TIME = re.compile(
    r"(?<![\w:.-])(?:"
    r"(?P<noon>noon|midday|midnight)"
    rf"|(?P<first>(?:(?<=\bfrom )|(?<=\bbetween )|{_SHORT_RANGE}|(?!(?:five|ten|5|10) to\b)){HOUR}){_RANGED}"
    rf"|(?:(?<=\btil )|(?<=\btill )|(?<=\buntil )|(?<=\d to )|(?<=\d - ))(?P<last>1[0-2]|[1-9])\b(?![:.]\d)"
    r"|(?:a )?(?P<parts>quarter|half|twenty-five|twenty|ten|five|25|20|10|5)(?: minutes)? (?P<sign>past|"
    rf"after|to|before) (?P<of>{HOUR}|(?<!ten to )(?<!five to )noon){_ENDS}"
    rf"|half (?P<half>{HOUR}){_ENDS}"
    r"|(?:a )?(?P<alone>half|quarter|twenty-five|twenty|ten|five) (?P<side>past|(?<=quarter )to)"
    rf"(?! (?:{HOUR}|noon|midnight|the|an?|\d+|your|my|his|their|every|each|me|him|her|us|them|you|it)\b)(?![\w'-])"
    r"|(?P<h12>1[0-2]|0?[1-9])(?:[:.](?P<m12>[0-5]\d))?\s*(?P<ap>a\.?m\b\.?|p\.?m\b\.?)"
    rf"|(?P<w12>{'|'.join(NUMBERS)})\s+(?P<wap>a\.?m\b\.?|p\.?m\b\.?)"
    r"|(?P<h24>[01]?\d|2[0-3])[:.](?P<m24>[0-5]\d)\b(?!\.\d)(?! ?%)"
    r"|(?P<h4>0[6-9]|1\d|2[0-3])(?P<m4>[0-5]\d)(?= (?:to|until|hours)\b|[,.!?]|$)"
    rf"|(?P<words>{'|'.join(NUMBERS)})[ -](?P<wm>thirty|fifteen|forty-five|twenty|ten|forty|fifty){_ENDS}"
    rf"|(?P<oclock>{HOUR}) o'?clock"
    rf"|{_STRONG}(?P<bare>{HOUR}){_AFTER}"
    rf"|{_WEAK}(?P<bare3>{HOUR}){_CLOSES}"
    rf"|(?P<bare2>{HOUR}){_BY_A_DAY}"
    rf"|(?P<ish>{HOUR})(?=-?ish\b)"
    rf"|(?<!\bof )(?<!\bthe )(?P<fits>(?!one\b){HOUR})(?='s {FITS})"
    rf")(?!'s?\b\s(?!in the|at night|{FITS}))(?!:\d)",
    re.IGNORECASE,
)
_RANGE_TO = re.compile(r"(?: (?:to|till|until)|[-–]) ?$", re.IGNORECASE)
_PARTS = tuple(
    (re.compile(rf"\b(?:{words})s?\b", re.IGNORECASE), half)
    for words, half in (
        (r"morning|dawn|sunrise|breakfast|first thing", "am"),
        (r"afternoon|lunch(?:time)?", "noon"),
        (r"evening|tonight|night|supper|dinner|dusk|dark|sunset|bedtime", "pm"),
    )
)
_GREETING = re.compile(
    r"\bgood (?:morning|afternoon|evening|night)\b|^morning\b|\ball (?:morning|evening|night|afternoon)\b",
    re.IGNORECASE,
)


class ClockTime(NamedTuple):
    """A time named in a text."""

    start: int
    end: int
    minute: int
    """Minutes since midnight; of the first half of the day where `exact` is False."""
    exact: bool
    """Whether the half of the day is in the expression itself."""


class DayPart(NamedTuple):
    """A part of the day named in a text."""

    start: int
    end: int
    half: str


@lru_cache(maxsize=512)
def clock_times(text: str) -> tuple[ClockTime, ...]:
    """The times named in a text, in order. What the last texts name is kept."""
    found: list[ClockTime] = []
    told = bool(day_parts(text))
    for match in _TIME.finditer(text):
        minute, exact = _minute(match, found)
        if minute is not None:
            plain = bool(match["h24"]) and not told and (":" in match[0] or minute >= 7 * HOURS)
            found.append(ClockTime(*match.span(), minute % DAY, exact or plain))
    return tuple(found)


def _minute(match: re.Match[str], earlier: Sequence[ClockTime]) -> tuple[int | None, bool]:
    if match["noon"]:
        return (0 if match["noon"].lower() == "midnight" else NOON), True
    if match["parts"]:
        minutes = _MINUTES[match["parts"].lower()]
        hour, sign = match["of"].lower(), 1 if match["sign"].lower() in ("past", "after") else -1
        if hour == "noon":
            return NOON + sign * minutes, True
        return (_hour(hour) + sign * minutes) % NOON, False
    if match["half"]:
        return _hour(match["half"]) + 30, False
    if match["alone"]:
        if not earlier:
            return None, False
        hour, exact = earlier[-1].minute // HOURS * HOURS, earlier[-1].exact
        minutes = _MINUTES[match["alone"].lower()]
        if match["side"].lower() == "past":
            return hour + minutes, exact
        ends = _RANGE_TO.search(match.string, 0, match.start())
        return hour - minutes + (HOURS if ends else 0), exact
    if match["h12"] or match["w12"]:
        half = NOON if (match["ap"] or match["wap"]).lower().startswith("p") else 0
        return _hour(match["h12"] or match["w12"]) + int(match["m12"] or 0) + half, True
    if match["h24"]:
        hour, minute = int(match["h24"]), int(match["m24"])
        return hour * HOURS + minute, hour >= 12 or match["h24"].startswith("0")
    if match["h4"]:
        return int(match["h4"]) * HOURS + int(match["m4"]), True
    if match["words"]:
        return _hour(match["words"]) + _MINUTES[match["wm"].lower()], False
    hours = ("oclock", "bare", "bare2", "bare3", "ish", "first", "last", "fits")
    return _hour(next(match[name] for name in hours if match[name])), False


def _hour(text: str) -> int:
    """Minutes since midnight of an hour in the first half of the day; twelve is 0."""
    number = NUMBERS.get(text.lower()) or int(text)
    return number % 12 * HOURS


@lru_cache(maxsize=512)
def day_parts(text: str) -> tuple[DayPart, ...]:
    """The parts of the day named in a text, in order, without greetings. What the last texts name is kept."""
    greetings = [match.span() for match in _GREETING.finditer(text)]
    found = [
        DayPart(*match.span(), half)
        for pattern, half in _PARTS
        for match in pattern.finditer(text)
        if not any(start <= match.start() < end for start, end in greetings)
    ]
    return tuple(sorted(found))


def in_part(minute: int, half: str) -> int | None:
    """A minute of the first half of the day, moved into a part of the day; None if it does not fit."""
    late = minute + NOON
    match half:
        case "am":
            return minute if minute >= 4 * HOURS else None
        case "noon":
            return late if minute < 7 * HOURS else None
        case _:
            return late if minute >= 4 * HOURS else (None if minute else 0)
