"""Days named in a text."""

import re
from functools import lru_cache

from environments.stss.hearing.named.clock_words import NOON
from environments.stss.hearing.slots import NumberSpan
from environments.stss.hearing.words import lead_to
from environments.stss.town.clock import DAY

OUT_OF_REACH = 9
"""The value of every day that is not simulated."""
_SOME = r"(?:two|three|four|five|six|\d)"
_DATES = (
    (
        r"(?:next|the following) (?:week|month|monday|tuesday)"
        r"|(?:(?:on|next|this) )?(?:wednesday|thursday|friday|saturday|sunday)"
        rf"|(?:in|after) {_SOME} (?:days|weeks|months)(?:' time)?|in a (?:week|fortnight|month)"
        r"|a (?:week|fortnight) (?:from|on) (?:now|today|tomorrow|monday|tuesday)"
        r"|(?:today|tomorrow|monday|tuesday) week|(?:at |on )?(?:the|this|next) weekend"
        r"|(?:on )?the (?:1[5-9]|2\d|[1-9])(?:st|nd|rd|th)|(?:1[5-9]|2\d)(?:st|nd|rd|th)? (?:of )?(?:february|feb\b)",
        OUT_OF_REACH,
    ),
    (r"2023-02-13|(?:february|feb\.?) 13(?:th)?|13(?:th)?(?: of)? (?:february|feb)|(?:on )?monday|the 13th", 0),
    (r"2023-02-14|(?:february|feb\.?) 14(?:th)?|14(?:th)?(?: of)? (?:february|feb)|(?:on )?tuesday|the 14th", 1),
    (
        r"valentine'?s(?: day)(?!'s)(?! (?!at|in|on|evening|around|about|afternoon|morning|from|if|and|for|to|"
        r"with)[a-z])",
        1,
    ),
    (r"(?:the )?day after tomorrow|20\d\d-\d\d-\d\d|(?:february|feb\.?|march|january) \d{1,2}(?:st|nd|rd|th)?", 9),
)
_DENIED = re.compile(
    r"\b(?:not|instead of|rather than|than|isn't|did say|you say|thought it was|every|(?<!at )last)"
    r"(?: on| for)?\s*$",
    re.IGNORECASE,
)
_PATTERNS = tuple((re.compile(rf"\b(?:{words})\b", re.IGNORECASE), day) for words, day in _DATES)
_TODAY = re.compile(r"\b(?:today|tonight|this (?:very )?(?:afternoon|evening|noon))\b", re.IGNORECASE)
_THIS_MORNING = re.compile(r"\bthis (?:very )?morning\b", re.IGNORECASE)
_WITH_MORNING = re.compile(f"{_TODAY.pattern}|{_THIS_MORNING.pattern}", re.IGNORECASE)
_TOMORROW = re.compile(r"\b(?<!day after )tomm?orr?ow\b", re.IGNORECASE)
_STAYS = re.compile(r"(?:(?:'s| is) (?:when|full|taken)| (?:may |can )?stays?)\b", re.IGNORECASE)
"""What follows a day for which nothing is planned."""
_WAS = re.compile(
    r"(?<!'ve )\b(?!want|need|wonder|promis|mov)(?:\w+ed|saw|was|were|went|came|got|sold|found|heard|met|lost)\b"
    r"(?! (?:moved|thinking|hoping|wondering)\b)(?: [\w']+){0,4} $",
    re.IGNORECASE,
)
"""What leads to a morning in a clause that tells of what was."""


def days(text: str, now: int) -> list[NumberSpan]:
    """The days named in a text at minute `now`, in order, without those that are none of a plan ("not tomorrow")."""
    return [day for day in named_days(text, now) if not is_denied_day(text, day)]


@lru_cache(maxsize=512)
def named_days(text: str, now: int) -> tuple[NumberSpan, ...]:
    """All days named in a text at minute `now`, in order; no `this morning` after noon. Kept for the last texts."""
    today, found = now // DAY, dict[int, NumberSpan]()
    named = _WITH_MORNING if now % DAY < NOON else _TODAY
    for pattern, day in (*_PATTERNS, (_TOMORROW, 1 if today == 0 else OUT_OF_REACH), (named, today)):
        for match in pattern.finditer(text):
            if not any(span.start <= match.start() < span.end for span in found.values()):
                found[match.start()] = NumberSpan(*match.span(), day)
    return tuple(found[start] for start in sorted(found))


def is_denied_day(text: str, day: NumberSpan) -> bool:
    """Whether the words around a day tell that it is none of a plan."""
    lead = lead_to(text, day.start)
    if _STAYS.match(text, day.end) or (_THIS_MORNING.match(text, day.start) and _WAS.search(lead)):
        return True
    return bool(_DENIED.search(lead) or (day.value == OUT_OF_REACH and re.search(r"\b(?:until|till|since) $", lead)))
