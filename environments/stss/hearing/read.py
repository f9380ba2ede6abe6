"""Reads what is said to a character into slots, as a whole: activity, place, day, time, people, refusal."""

import re
from collections.abc import Sequence

from environments.stss.hearing.activity import Phrase, activity
from environments.stss.hearing.days import days
from environments.stss.hearing.people import people
from environments.stss.hearing.refusals import invited, refuses
from environments.stss.hearing.slots import MAX_CHARS, InvitationSlots, Situation
from environments.stss.hearing.spots import where
from environments.stss.hearing.times import When, when
from environments.stss.hearing.words import plain, within
from environments.stss.town.clock import DAY
from environments.stss.town.places import Mention

_WAKE = r"(?:wake|get) up"
_ERRAND = r"(?:pick(?:ing)? up|buy(?:ing)?|fetch|borrow|collect|get|bring|deliver|take|carry|send|drop off)"
_SECOND = re.compile(
    rf"\b(?:and|then|after that)\b(?:[ ,]+(?:then|please|afterwards))*[ ,]*({_ERRAND})\b", re.IGNORECASE
)
_PAST = (
    r"yesterday|last (?:week|month|year|night|autumn|summer|winter|spring|saturday|sunday|all)|all last \w+|"
    r"(?:on|this) (?:saturday|sunday|wednesday|thursday|friday)|years ago|the other (?:day|night)"
)
_TOLD = re.compile(
    r"^(?:\w+, )?(?:i|we|my \w+|young \w+|the \w+)(?:'d| had| have)? (?!was (?:think|wonder|hop)|wondered|"
    r"hoped|need|'d)(?:\w+ed|sat|went|stayed|saw|had|was|were|made|took|spent|got|played|sang|lost|won)\b",
    re.IGNORECASE,
)
_AHEAD = (
    r"tomm?orr?ow|today|tonight|this (?:morning|afternoon|evening)|would you|could you|can you|will you|please|"
    r"come|join"
)


def read(text: str, situation: Situation) -> InvitationSlots:
    """The slots of one utterance."""
    text = plain(text[:MAX_CHARS])
    if _is_a_story(text, situation):
        return InvitationSlots()
    dated, place = days(text, situation.now // DAY), where(text, situation)
    day = dated[-1].value if dated else None
    clock = when(text, situation, day)
    changed = bool(day is not None or clock.start is not None or place.place)
    negated = refuses(text, situation, changes=changed)
    if negated and invited(situation) and not _about_the_refusal(text, clock):
        clock = When(spans=clock.spans)
    stops = sorted(
        [
            *((span.start, span.end) for span in dated),
            *clock.spans,
            *((spot.start, spot.end) for spot in place.mentions),
        ]
    )
    phrase = activity(text, stops, situation, negated=negated)
    second = _second_leg(text, phrase, place.mentions)
    return InvitationSlots(
        activity=phrase.words if phrase else None,
        place=second[2] if second else None if place.online else place.place,
        online=place.online,
        day=day,
        start=clock.start,
        end=clock.end,
        then_activity=second[0] if second else None,
        then_place=second[1] if second else None,
        early=within(_WAKE, text),
        people=people(text, situation),
        negated=negated,
    )


def _about_the_refusal(text: str, clock: When) -> bool:
    """Whether the part of a sentence that names the time also says no."""
    begin = clock.spans[0][0] if clock.spans else 0
    clause = re.split(r"[.!?;,]", text[:begin])[-1] + re.split(r"[.!?;,]", text[begin:])[0]
    return within(r"\w+n't|cannot|not|no|never|dead", clause)


def _is_a_story(text: str, situation: Situation) -> bool:
    """Whether a text tells of what is over, and of nothing ahead."""
    return not within(_AHEAD, text) and (within(_PAST, text) or _TOLD.match(text) is not None)


def _second_leg(text: str, phrase: Phrase | None, spots: Sequence[Mention]) -> tuple[str, str, str | None] | None:
    """Activity and place of an errand's second leg, its pronouns replaced, and the place of the first leg."""
    match = _SECOND.search(text, phrase.start) if phrase else None
    place = next((spot for spot in spots if match and spot.start > match.start()), None)
    first = [spot.address for spot in spots if match and spot.start < match.start()]
    if match is None or place is None or phrase is None:
        return None
    words = re.sub(r"\s+(?:at|to|in|from|on|into|over to)(?: the)?$", "", text[match.start(1) : place.start].strip())
    thing = re.sub(rf"^{_ERRAND}\s+", "", _SECOND.split(phrase.words)[0], flags=re.IGNORECASE)
    activity_then = re.sub(r"\b(?:it|them|these|those)\b", thing, words, flags=re.IGNORECASE)
    return activity_then, place.address, first[-1] if first else None
