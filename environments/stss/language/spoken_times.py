"""Times of day that a sentence of a talk says, also by the time that was spoken of before."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from environments.stss.hearing.named.clock_words import clock_times
from environments.stss.hearing.words import HOUR, NUMBERS

HALF_DAY = 12 * 60
"""Spoken hours are of a clock with twelve of them."""
_PARTS = {"half": 30, "quarter": 15, "twenty-five": 25, "twenty": 20, "ten": 10, "five": 5}
_PARTLY = re.compile(
    rf"\b(?P<part>{'|'.join(_PARTS)}) (?:(?P<past>past)(?! (?:{HOUR}|noon|midnight)\b)"
    r"|to(?=[,.?!;]|$| then\b| (?:if|is|it|would|and|sharp)\b))",
    re.IGNORECASE,
)
"""A part of an hour that was named before: `half past`."""
_FROM_HOUR = re.compile(
    rf"\b(?:half (?P<half>{HOUR})|(?P<part>{'|'.join(_PARTS)}) (?:minutes )?(?P<sign>past|to) (?P<of>{HOUR}))(?![\w-])",
    re.IGNORECASE,
)
_TEENS = {
    name: number
    for number, name in enumerate(
        ("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"), 13
    )
}
_MILITARY = re.compile(rf"\b({'|'.join(_TEENS)}) (hundred|fifteen|thirty|forty-five)\b", re.IGNORECASE)
_HOURS = {"half an": 30, "half": 30, "a quarter of an": 15, "quarter of an": 15, "three quarters of an": 45}
_HOURS |= {"an": 60, "one": 60, "two": 120, "three": 180}
_MINUTES = {"five": 5, "ten": 10, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "forty-five": 45}
_LENGTH = re.compile(
    rf"\b(?P<hours>{'|'.join(_HOURS)}) hours?\b|\b(?P<minutes>{'|'.join(_MINUTES)}|\d\d?)(?: more)? minutes\b",
    re.IGNORECASE,
)
_LATER = re.compile(
    r"\b(?:another|more|wait|later?|after that|push|back|longer)\b|\b(?:minutes|hours?),? then\b", re.IGNORECASE
)
_EARLIER = re.compile(r"\b(?:earlier|sooner|before that|forward)\b", re.IGNORECASE)
_SAME = re.compile(r"\bsame (?:time|hour)\b", re.IGNORECASE)
_BARE = re.compile(rf"(?<![\w'-]){HOUR}(?=-?ish\b|(?![\w-]))(?!['’](?!s\b|d\b|ll\b))(?![:.]\d)", re.IGNORECASE)
_COUNTED = re.compile(
    r"\b(?:the|all|us|them|these|those|other|both|last|first|only|page|number|of|my|your|our|his|her|any|some|no|every|"
    r"each|this|that|another|good|new|next|for|with|into|in|least|than|count|counted)\s+$",
    re.IGNORECASE,
)
"""Words before a number that counts things."""
_AT = re.compile(
    r"\b(?:at|by|before|about|around|from|till?|until|say|past|it|it's|after|or|towards|between|not|make that|since|"
    r"then|(?:it|that|back|forward|moved?|later|earlier|nearer|closer) to)\s+(?:about |around |say,? )?$",
    re.IGNORECASE,
)
"""Words before an hour."""
_AT_ONE = re.compile(
    r"\b(?:at|by|before|about|around|from|till?|until|say|past|to|make it|make that|between|towards)\s+"
    r"(?:about |around )?$",
    re.IGNORECASE,
)
_SHARP = re.compile(r"\s*(?:[,.?]|$)| o'clock| then| it is| sharp", re.IGNORECASE)
_BEGINNING = re.compile(r"(?:^|[.!?,;:…]\s*|\b(?:then|so|no|oh)\s)$", re.IGNORECASE)
_AFTER_DAY = re.compile(r"\b(?:tomorrow|today|tonight|morning|afternoon|evening)\s+$", re.IGNORECASE)
_UNIT = re.compile(
    r"\s+(?:of|minutes?|hours?|pounds?|points?|tables?|places?|miles?|different|other|per ?cent)\b", re.IGNORECASE
)
_SET_FOR = re.compile(r"\b(?:down|set|booked|fixed|billed|planned|arranged) for\s+$", re.IGNORECASE)
_PERHAPS_AT = re.compile(r"\b(?:so|would|could|might|does|do|if|than)\s+$", re.IGNORECASE)
"""Words before an hour that may stand before `one` too."""
_MORE = re.compile(rf"\s+(?:or|to|and) {HOUR}\b", re.IGNORECASE)
_NO_THING = re.compile(
    r"-?ish\b|\s*(?:$|[^\w\s'])|'(?:s|d|ll)\b|\s+(?:o'clock|sharp|it|is|isn't|was|would|wouldn't|will|won't|works?|suits?|"
    r"then|now|instead|tomorrow|tonight|today|this|in|at|on|or|and|but|if|because|when|where|so|for|with|my|your|the|"
    r"please|i|you|we|that|be|could|can|might|may|does|do|sounds|seems|fits|gives?|until|till|to|latest|anyhow|anyway|"
    r"too|enough|fine|good|great|perfect|all|not|as|by|before|after|like|while|straight|exactly|outside|here|there|"
    r"precisely|onwards?|since|just|should|shall|has|i'm|i've|i'd|i'll|we'll|we'd|it's)\b",
    re.IGNORECASE,
)
"""What follows an hour: anything but a thing that would be counted."""
_CLOSES = re.compile(r"\b(?:until|till?|by|before)(?: about| around| say,?)?(?: a)?\s*$", re.IGNORECASE)
_BEGINS = re.compile(
    r"\b(?:not|\w+n't|nobody|no one|none|never)\b.*\bbefore(?: a)?\s*$|"
    r"\b(?:wait|held|hold|keep|kept|back|delay|put \w+ off|we'll (?!go|be|play|run|last|carry)\w+)\b.*"
    r"\b(?:until|till)(?: a)?\s*$",
    re.IGNORECASE,
)
"""Words by which something begins then: `not before five`, `wait until six`."""
_ASKS_FOR_NUMBER = re.compile(
    r"\b(?:how (?:long|late|many|much|old|far)|until when|till when|when does it (?:end|stop|finish)|\w+ it cost)\b",
    re.IGNORECASE,
)
_PAST_PLAN = re.compile(
    r"\b(?:was|were) (?:to|going to|meant to|supposed to|planned to) (?:be|begin|start)(?: at)?\s+$", re.IGNORECASE
)
"""Words before a time that no longer counts."""
_RANGE = re.compile(r"^\s*(?:-|–|to|and|until|till?|through)(?: about| around)?(?: a)?\s*$", re.IGNORECASE)


class SpokenTime(NamedTuple):
    """A time in a sentence."""

    start: int
    end: int
    minute: int
    """Of the half of a day."""
    closes: bool = False
    """Whether something ends then, as in `until five`."""
    relative: bool = False
    """Whether it was said by the time that stands, as in `an hour later`."""


def asks_for_number(text: str) -> bool:
    """Whether a text asks for an end, a count or a price."""
    return _ASKS_FOR_NUMBER.search(text) is not None


def spoken_times(sentence: str, standing: int | None, last: int | None) -> list[SpokenTime]:
    """The times of a sentence in order; `standing`: the time proposed before, `last`: the last one named."""
    found: list[SpokenTime] = []
    for start, end, said in sorted(_times(sentence, standing), key=lambda time: (time[0], -time[1])):
        previous = found[-1] if found else None
        minute = said if isinstance(said, int) else _partly(said, previous.minute if previous else last)
        if minute is None or (previous and start < previous.end) or _PAST_PLAN.search(sentence[:start]):
            continue
        ranged = previous is not None and _RANGE.match(sentence[previous.end : start]) is not None
        lead = sentence[:start]
        closes = ranged or (_CLOSES.search(lead) is not None and not _BEGINS.search(lead))
        relative = re.search(r"(?:hours?|minutes)$", sentence[start:end]) is not None
        found.append(SpokenTime(start, end, minute % HALF_DAY, closes, relative))
    return found


def _times(sentence: str, standing: int | None) -> Iterator[tuple[int, int, int | re.Match[str]]]:
    """Start, end and minute of times, which may overlap; the match where the hour was named before."""
    for time in clock_times(sentence):
        if sentence[time.start : time.end].lower() != "one" or _is_one(sentence, time.start, time.end):
            yield time.start, time.end, time.minute
    yield from ((*match.span(), _from_hour(match)) for match in _FROM_HOUR.finditer(sentence))
    yield from ((*match.span(), _hour(match[0])) for match in _BARE.finditer(sentence) if _is_hour(sentence, match))
    for match in _MILITARY.finditer(sentence):
        yield (*match.span(), _TEENS[match[1].lower()] * 60 + _MINUTES.get(match[2].lower(), 0))
    yield from ((*match.span(), match) for match in _PARTLY.finditer(sentence))
    if standing is not None:
        yield from _relative(sentence, standing)


def _hour(word: str) -> int:
    return (NUMBERS.get(word.lower()) or int(word)) * 60


def _is_hour(sentence: str, match: re.Match[str]) -> bool:
    """Whether a number is an hour: nothing is counted with it, and `one` stands where only a time does."""
    lead, after = sentence[: match.start()], sentence[match.end() :]
    if more := _MORE.match(after):
        after = after[more.end() :]
    if match[0].lower() in ("one", "1"):
        return _NO_THING.match(after) is not None and _is_one(sentence, *match.span())
    if re.search(r"\bat\s+(?:about |around )?$", lead, re.IGNORECASE):
        return not _UNIT.match(after)
    if not _NO_THING.match(after) or (_COUNTED.search(lead) and not _SET_FOR.search(lead)):
        return False
    leads = (_AT, _SET_FOR, _PERHAPS_AT, _AFTER_DAY, _BEGINNING)
    return any(each.search(lead) for each in leads)


def _is_one(sentence: str, start: int, end: int) -> bool:
    """Whether `one` stands where only a time does."""
    begins = _BEGINNING.search(sentence[:start]) is not None
    return _AT_ONE.search(sentence[:start]) is not None or (begins and _SHARP.match(sentence[end:]) is not None)


def _from_hour(match: re.Match[str]) -> int:
    if match["half"]:
        return _hour(match["half"]) + 30
    return _hour(match["of"]) + _PARTS[match["part"].lower()] * (1 if match["sign"].lower() == "past" else -1)


def _partly(match: re.Match[str], last: int | None) -> int | None:
    minutes = _PARTS[match["part"].lower()]
    if last is None:
        return None
    hour = last - last % 60 + (60 if last % 60 > (30 if match["past"] else 0) else 0)
    return hour + minutes if match["past"] else hour - minutes


def _relative(sentence: str, standing: int) -> Iterator[tuple[int, int, int]]:
    """The same time, or one that is later or earlier than what stands."""
    if same := _SAME.search(sentence):
        yield (*same.span(), standing)
    length, earlier = _LENGTH.search(sentence), _EARLIER.search(sentence)
    if length and (earlier or _LATER.search(sentence)):
        yield (*length.span(), standing + _length(length) * (-1 if earlier else 1))


def _length(found: re.Match[str]) -> int:
    if found["hours"]:
        return _HOURS[found["hours"].lower()]
    word = found["minutes"].lower()
    return int(word) if word.isdigit() else _MINUTES[word]
