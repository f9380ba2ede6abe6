"""Reads what is said to a character into slots, as a whole: activity, place, day, time, people, refusal."""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

from environments.stss.hearing import refusing
from environments.stss.hearing.activities.activity import GUESS, GUESS_IN_ANSWER, SURE, Phrase, activity
from environments.stss.hearing.activities.groups import content_words, does_it
from environments.stss.hearing.doubting import doubted
from environments.stss.hearing.named.clock_words import NOON, clock_times
from environments.stss.hearing.named.times import When
from environments.stss.hearing.recognise import Recognised, recognise
from environments.stss.hearing.refusals import invited
from environments.stss.hearing.slots import InvitationSlots, Situation
from environments.stss.hearing.words import BEGINS, VERBS, is_empty, plain, sentences, within
from environments.stss.town.places import Mention

_WAKE = r"(?:wake|get) up"
_ERRAND = r"(?:pick(?:ing)? up|buy(?:ing)?|fetch|borrow|collect|get|bring|deliver|take|carry|send|drop off)"
_SECOND = re.compile(
    rf"\b(?:and|then|after that)\b(?:[ ,]+(?:then|please|afterwards))*[ ,]*({_ERRAND})\b", re.IGNORECASE
)
WHAT_FOR = "what would that be for"
_FRAME = re.compile(
    rf"{BEGINS}(?:(?:no|yes|oh|well|sorry),? )*(?:(?<=no, )it(?:'s| is) (?:about|for)|i (?:mean|meant)(?: to)?"
    r"|(?:it(?:'s| is)|i(?:'d| would) like) to)"
    r" (?P<what>(?!you\b|me\b|us\b|that\b|it\b|not\b|know\b|what\b|two\b)[^.!?;]+)",
    re.IGNORECASE,
)
"""Words by which a text says expressly what it is about."""
_VERB = rf"(?:{'|'.join(sorted(VERBS))})\b"
_MORE_VERBS = re.compile(rf"\band (?:then )?{_VERB}", re.IGNORECASE)
"""The second verb of an errand."""
_PAST = (
    r"yesterday|last (?:week|month|year|night|autumn|summer|winter|spring|saturday|sunday|all)|all last \w+|"
    r"years ago|the other (?:day|night)"
)
_TOLD = re.compile(
    r"^(?:\w+, )?(?:i|we|my \w+|young \w+|the \w+)(?:'d| had| have)? (?!was (?:think|wonder|hop)|wondered|"
    r"hoped|need|'d)(?:\w+ed|sat|went|stayed|saw|had|was|were|made|took|spent|got|played|sang|lost|won)\b(?!')",
    re.IGNORECASE,
)
_WEEKDAY = r"wednesday|thursday|friday|saturday|sunday"
_SPENT = (
    r"i'd an?|(?:i|we|it)(?: \w+)? (?:spent|had|did|was|were|went|saw|played|lost|won|got|met|heard|danced|stayed|sang"
    r"|took)"
)
_AHEAD = (
    r"tomm?orr?ow|today|tonight|this (?:morning|afternoon|evening)|would you|could you|can you|will you|please|"
    r"come|join|(?:could|can|shall|might|may) (?:we|i)|let's|let us|(?:i|we)'ll"
)


def read(text: str, situation: Situation) -> InvitationSlots:
    """The slots of one utterance. The last ones are kept, since a talk is read again at each of its turns."""
    return _read(text, situation._replace(before=tuple(situation.before)))._replace(doubted=frozenset())


def read_in_doubt(text: str, situation: Situation, asked: Collection[str] = ()) -> InvitationSlots:
    """The slots of one utterance without those that are doubted, but for those that were `asked` for before it."""
    return _read(text, situation._replace(before=tuple(situation.before))).sure(asked)


@lru_cache(maxsize=4096)
def _read(text: str, situation: Situation) -> InvitationSlots:
    outlined = outline(text, situation)
    if outlined is None:
        return InvitationSlots()
    found, says_no, answers, declines = outlined.found, outlined.negated, outlined.answers, outlined.declines
    text, place, clock = found.text, found.place, found.clock
    repeats = answers and _repeats(found, situation)
    if declines and not repeats:  # its times tell what stands against the invitation
        clock = When(spans=clock.spans)
    asked = within(WHAT_FOR, situation.question)
    phrase = (framed(text, situation) if asked else None) or _at_least(SURE, found, situation)
    if phrase and says_no and answers and not content_words(phrase.words) & _said(situation):
        phrase = None
    second = _second_leg(text, phrase, place.mentions)
    slots = InvitationSlots(
        activity=second.first if second else phrase and phrase.words,
        place=second.from_place if second else None if place.online or declines else place.place,
        online=place.online,
        day=found.day,
        start=clock.start,
        end=clock.end,
        then_activity=second and second.then,
        then_place=second and second.to_place,
        early=within(_WAKE, text),
        people=outlined.people,
        negated=says_no,
    )
    unclear = frozenset() if says_no else found.unclear - ({"place"} if second else set())
    if answers and outlined.refusal.possible and not says_no:
        named = ("place",) if repeats else ("place", "start", "end")
        unclear |= {name for name in named if getattr(slots, name) is not None}
    return slots._replace(doubted=doubted(found, situation, slots) | unclear)


class Outline(NamedTuple):
    """What is heard in an utterance before its activity is looked for."""

    found: Recognised
    refusal: refusing.HeardRefusal
    answers: bool
    """Whether it answers an invitation."""

    @property
    def negated(self) -> bool:
        """Whether it calls something off or declines it."""
        return self.refusal.heard

    @property
    def declines(self) -> bool:
        """Whether it is likelier than not that it declines an invitation."""
        return self.refusal.likely and self.answers

    @property
    def people(self) -> frozenset[str]:
        """Those who take part."""
        return frozenset() if self.negated or self.declines else self.found.people


def outline(text: str, situation: Situation) -> Outline | None:
    """The outline of an utterance; None if it only tells of what is over."""
    found = recognise(text, situation)
    if _is_a_story(found.text, situation):
        return None
    refusal = refusing.refusal(found.text, found.spans, situation, rule=found.rule)
    return Outline(found, refusal, invited(situation))


def forget() -> None:
    """Forgets the texts that are kept."""
    _read.cache_clear()
    _may_refuse.cache_clear()


def may_refuse(text: str, situation: Situation) -> bool:
    """Whether an utterance that is heard as no refusal may be one. The last ones are kept."""
    return _may_refuse(text, situation._replace(before=tuple(situation.before)))


@lru_cache(maxsize=256)
def _may_refuse(text: str, situation: Situation) -> bool:
    found = recognise(text, situation)
    return refusing.refusal(found.text, found.spans, situation, rule=found.rule).possible


def _said(situation: Situation) -> frozenset[str]:
    """The words of what was said before; who declines names nothing new."""
    return content_words(" ".join(line.text for line in situation.before))


def likely_activity(text: str, situation: Situation) -> Phrase | None:
    """The activity that an utterance may name, where it is likely enough to ask whether it is meant."""
    return None if _is_a_story(plain(text), situation) else _at_least(GUESS, recognise(text, situation), situation)


def named_in_answer(text: str, situation: Situation) -> Phrase | None:
    """The likeliest activity in an answer to the question for it: in a sentence without day, time and place if any."""
    if told := framed(text, situation):
        return told
    found = [recognise(sentence, situation) for sentence in sentences(text)]
    phrases = [_at_least(GUESS_IN_ANSWER, each, situation) for each in found if not each.spans]
    named = [phrase for phrase in phrases if phrase]
    return max(named, key=lambda phrase: phrase.likelihood) if named else likely_activity(text, situation)


def framed(text: str, situation: Situation) -> Phrase | None:
    """The activity that a text names expressly, as in `No, I mean to play darts`, up to the next day, time or place."""
    for match in _FRAME.finditer(text):
        what = match["what"]
        spans = recognise(what, situation).spans
        more = _MORE_VERBS.search(what)
        ends = [span.start for span in spans if span.kind != "place" or more is None or span.start > more.end()]
        lead = what[: ends[0]] if ends else what
        named = what if lead and is_empty(lead) and re.match(_VERB, lead, re.IGNORECASE) else lead
        named = re.sub(r"(?:[\s,]+(?:at|to|in|from|on|into|for|by|until|the|please|too))*[\s,]*$", "", named)
        if named and (not is_empty(named) or does_it(named)):
            return Phrase(re.sub(r"^(?:an?|the|our|my) ", "", named), match.start("what"), 1.0)
    return None


def _at_least(likelihood: float, found: Recognised, situation: Situation) -> Phrase | None:
    phrase = activity(found.text, found.spans, situation, refuses=found.rule)
    return phrase if phrase and phrase.likelihood >= likelihood else None


def _repeats(found: Recognised, situation: Situation) -> bool:
    """Whether a text names a time that was named before it, as in `At six I am asleep`."""
    told = {time.minute % NOON for line in situation.before for time in clock_times(line.text)}
    return any(each.slot.kind == "time" and not each.slot.denied and each.slot.value in told for each in found.named)


def _is_a_story(text: str, situation: Situation) -> bool:
    """Whether a text tells of what is over, and of nothing ahead."""
    over = within(_PAST, text) or (within(_WEEKDAY, text) and within(_SPENT, text)) or _TOLD.match(text)
    return bool(over) and not within(_AHEAD, text)


class _Legs(NamedTuple):
    """The two legs of an errand, and their places."""

    first: str
    then: str
    from_place: str | None
    to_place: str


def _second_leg(text: str, phrase: Phrase | None, spots: Sequence[Mention]) -> _Legs | None:
    """The legs of an errand that has a second one with a place; pronouns of the second are replaced."""
    match = _SECOND.search(text, phrase.start) if phrase else None
    place = next((spot for spot in spots if match and spot.start > match.start()), None)
    if match is None or place is None or phrase is None:
        return None
    before = [spot for spot in spots if spot.start < match.start()]
    stop = min([match.start(), *(spot.start for spot in before if spot.start > phrase.start)])
    first, words = (
        re.sub(r"(?:[\s,]+(?:at|to|in|from|on|into|over to|and|then)(?: the)?)*[\s,]*$", "", part)
        for part in (text[phrase.start : stop], text[match.start(1) : place.start])
    )
    if is_empty(first) or " " not in first:
        return None
    thing = re.sub(rf"^{_ERRAND}\s+", "", first, flags=re.IGNORECASE)
    then = re.sub(r"\b(?:it|them|these|those)\b", thing, words, flags=re.IGNORECASE)
    return _Legs(first, then, before[-1].address if before else None, place.address)
