"""Parses invitations and requests into slots (activity, place, day, time), without words of particular tasks."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from environments.stss.town.clock import DAY
from environments.stss.town.places import Mention, Places

MAX_CHARS = 4_000
"""Limit of characters parsed from an utterance."""
MAX_WORDS = 12
"""Limit of words kept of an activity."""
_DAY_WORDS = (
    (r"2023-02-13|(?:february|feb\.?) 13(?:th)?|13(?:th)?(?: of)? (?:february|feb)|(?:on )?monday|the 13th", 0),
    (r"2023-02-14|(?:february|feb\.?) 14(?:th)?|14(?:th)?(?: of)? (?:february|feb)|(?:on )?tuesday|the 14th", 1),
    (r"(?:the )?day after tomorrow|20\d\d-\d\d-\d\d|(?:february|feb\.?|march|january) \d{1,2}(?:st|nd|rd|th)?", 9),
    (r"next (?:week|month)|(?:on )?(?:wednesday|thursday|friday|saturday|sunday)", 9),
)
_CLOCK = re.compile(
    r"\b(?:(?P<h12>1[0-2]|0?[1-9])(?:[:.](?P<m12>[0-5]\d))?\s*(?P<half>a\.?m\b\.?|p\.?m\b\.?)"
    r"|(?P<h24>[01]?\d|2[0-3]):(?P<m24>[0-5]\d)\b"
    r"|(?P<oclock>1[0-2]|[1-9]) o'?clock"
    r"|(?P<noon>noon|midday))",
    re.IGNORECASE,
)
_RANGE = re.compile(r"^\s*(?:-|–|to|until|till)\s*$")
_AFTERNOON = 8
"""Earlier hours with "o'clock" are in the afternoon."""
_INVITES = (
    r"invit(?:es?|ing) (?:you|everyone|everybody)(?: all)? (?:to|for)(?: come to| join(?: me (?:for|in|at))?| attend)?",
    r"(?:invited|asked) (?:me|us)(?: (?:to|for))",
    r"join (?:me|us)(?: (?:for|in|at|to))?",
    r"(?:come|coming)(?: along)? (?:to|for)",
    r"(?:attend(?:ing)?|participat(?:e|ing) in|tak(?:e|ing) part in)",
    r"help(?: me| us)?(?: with| by| to)?",
    r"(?:host|hold|throw|organi[sz]|giv|arrang|runn?|plann?|hav)(?:ing|e)?(?= (?:a|an|the|my|our|some) )",
    r"meet(?:ing)?(?: up)?(?: (?:me|you|with (?:me|you)))?(?: (?:for|to|about))",
    r"there (?:is|will be)|there's",
)
_ASKS = (
    r"(?:could|can|would|will) you(?: please| kindly)?(?: like to| be willing to| be able to| mind)?",
    r"would you(?: like| love| be happy| be interested in| care)? (?:to )?",
    r"(?:i need|i want|i would like|i'd like|looking for)(?: (?:someone|somebody|you|people|partners))? to",
    r"let'?s|let us|please|shall we|why don't we|(?:want|wants|like|love) to",
)
_ERRAND = r"(?:pick(?:ing)? up|buy(?:ing)?|fetch|borrow|collect|get|bring|deliver|take|carry|send|drop off)"
_SECOND = re.compile(
    rf"\b(?:and|then|after that)\b(?:[ ,]+(?:then|please|afterwards))*[ ,]*({_ERRAND})\b", re.IGNORECASE
)
_LEADS = re.compile(rf"\b(?:{'|'.join(_INVITES)})\s+|\b(?=(?:{_ERRAND})\b)|\b(?:{'|'.join(_ASKS)})\s*", re.IGNORECASE)
_INVITED = re.compile(rf"(?:{'|'.join(_INVITES)})\s", re.IGNORECASE)
_TAIL = re.compile(
    r"(?:[\s,;:.!?'\"(–-]|\b(?:at|on|in|from|around|about|by|to|the|a|an|please|and|then|for|with|it'?s|is|this|that|me|you"
    r"|together|starting|there|here|tomorrow|today))+$",
    re.IGNORECASE,
)
_HEAD = re.compile(
    r"^(?:(?:a|an|the|my|our|some|to|for|me|us|like|is|join|come|attend|help|with|be|do)\b\s*)+", re.IGNORECASE
)
_BREAK = re.compile(r"[.!?;,\n(]|\b(?:tomorrow|today|tonight|which|because|so that|if you)\b", re.IGNORECASE)
_ONLINE = re.compile(r"\bon-?line\b|\bfrom home\b|\bover the internet\b|\bvideo call\b", re.IGNORECASE)
_WAKE = re.compile(r"\b(?:wake|get) up\b", re.IGNORECASE)
_EMPTY = re.compile(
    r"^(?:it|them|that|this|so|come|join|know|see|talk|meet|go|be|spread|tell|ask)?(?:\W|$)", re.IGNORECASE
)


class InvitationSlots(NamedTuple):
    """The slots of one or more utterances; None if not named."""

    activity: str | None = None
    place: str | None = None
    online: bool = False
    day: int | None = None
    """0 and 1 are the two simulated days; other values are days outside of the simulation."""
    start: int | None = None
    """Minutes since midnight."""
    end: int | None = None
    then_activity: str | None = None
    """The second leg of an errand."""
    then_place: str | None = None
    early: bool = False
    """Whether the request is to get up for it."""

    def merged(self, later: "InvitationSlots") -> "InvitationSlots":
        """The slots of two utterances: the first activity, and the last value of every other slot."""
        newer = later._asdict()
        merged = {
            name: new if new is not None else old
            for (name, old), new in zip(self._asdict().items(), newer.values(), strict=True)
        }
        merged["online"] = self.online or later.online
        merged["early"] = self.early or later.early
        if later.start is not None and later.end is None:
            merged["end"] = None
        if self.activity is not None:
            merged |= {"activity": self.activity}
            if self.then_activity is not None:
                merged |= {"then_activity": self.then_activity}
        return InvitationSlots(**merged)

    def or_else(self, other: "InvitationSlots") -> "InvitationSlots":
        """These slots, with those of `other` in place of None."""
        return self._replace(**{name: given for name, given in other._asdict().items() if getattr(self, name) is None})


class _Span(NamedTuple):
    start: int
    end: int
    value: int


def read(text: str, places: Places, today: int) -> InvitationSlots:
    """The slots of one utterance on day `today` (0 or 1)."""
    text = " ".join(text[:MAX_CHARS].replace("’", "'").split())
    days, times, spots = _days(text, today), _times(text), places.mentions(text)
    stops = [span.start for span in (*days, *times)] + [spot.start for spot in spots]
    activity, begins = _activity(text, stops)
    second = _second_leg(text, activity, begins, spots)
    start = times[0].value if times else None
    ranged = len(times) > 1 and _RANGE.match(text[times[0].end : times[1].start])
    return InvitationSlots(
        activity=activity,
        place=_first_place(spots, begins, second),
        online=bool(_ONLINE.search(text)),
        day=days[-1].value if days else None,
        start=start,
        end=times[1].value if ranged else None,
        then_activity=second[0] if second else None,
        then_place=second[1] if second else None,
        early=bool(_WAKE.search(text)),
    )


def _first_place(spots: Sequence[Mention], begins: int, second: tuple[str, str, int] | None) -> str | None:
    """The first place after the start of the activity; if there is none, the last place before it."""
    limit = second[2] if second else MAX_CHARS
    after = [spot for spot in spots if begins <= spot.start < limit]
    return after[0].address if after else (spots[-1].address if spots and not second else None)


def _second_leg(text: str, activity: str | None, begins: int, spots: Sequence[Mention]) -> tuple[str, str, int] | None:
    """Activity, place and position of an errand's second leg, with pronouns replaced by the thing of the first leg."""
    match = _SECOND.search(text, begins) if activity else None
    place = next((spot for spot in spots if match and spot.start > match.start()), None)
    if match is None or place is None or activity is None:
        return None
    phrase = _trimmed(text[match.start(1) : place.start])
    thing = re.sub(rf"^{_ERRAND}\s+", "", activity, flags=re.IGNORECASE)
    return re.sub(r"\b(?:it|them|these|those)\b", thing, phrase, flags=re.IGNORECASE), place.address, match.start()


def _activity(text: str, stops: Sequence[int]) -> tuple[str | None, int]:
    """The first phrase that names an activity, and its position; (None, 0) if there is none."""
    for lead in _LEADS.finditer(text):
        begin = lead.end()
        if _INVITED.match(text, begin):
            continue
        end = min([stop for stop in stops if stop > begin] + [len(text)])
        broken = _BREAK.search(text, begin, end)
        phrase = _trimmed(_SECOND.split(text[begin : broken.start() if broken else end])[0])
        if phrase and not _EMPTY.match(phrase):
            return phrase, begin
    return None, 0


def _trimmed(phrase: str) -> str:
    previous = None
    while phrase != previous:
        previous = phrase
        phrase = _HEAD.sub("", _TAIL.sub("", phrase.strip()))
    return " ".join(phrase.split()[:MAX_WORDS])


def _days(text: str, today: int) -> list[_Span]:
    relative = ((r"(?<!day after )tomorrow", today + 1), (r"today|tonight|this (?:morning|afternoon|evening)", today))
    found: dict[int, _Span] = {}
    for pattern, day in (*_DAY_WORDS, *relative):
        for match in re.finditer(rf"\b(?:{pattern})\b", text, re.IGNORECASE):
            found.setdefault(match.start(), _Span(*match.span(), day))
    return [found[start] for start in sorted(found)]


def _times(text: str) -> list[_Span]:
    return [_Span(*match.span(), _minute(match) % DAY) for match in _CLOCK.finditer(text)]


def _minute(match: re.Match[str]) -> int:
    if match["noon"]:
        return 12 * 60
    if match["oclock"]:
        hour = int(match["oclock"])
        return (hour + 12 if hour < _AFTERNOON else hour) * 60
    if match["h12"]:
        half = 12 if match["half"].lower().startswith("p") else 0
        return (int(match["h12"]) % 12 + half) * 60 + int(match["m12"] or 0)
    return int(match["h24"]) * 60 + int(match["m24"])
