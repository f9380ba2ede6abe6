"""What a later text of a talk changes: corrections, plain consent, and what is on after all."""

import re

from environments.stss.hearing.activities.activity import Phrase
from environments.stss.hearing.activities.groups import content_words
from environments.stss.hearing.people import people_named
from environments.stss.hearing.read import named_in_answer
from environments.stss.hearing.slots import InvitationSlots, Situation, SpokenLine
from environments.stss.hearing.words import within

WHAT_FOR = "What would that be for?"
_YES = re.compile(
    r"\b(?:yes|yeah|sure|ok|okay|fine|great|perfect|agreed?|deal|works|good|see you|of course|sounds)\b", re.IGNORECASE
)
_NO = re.compile(r"\b(?:no|not|can't|cannot|unfortunately|sorry|pity|too bad)\b", re.IGNORECASE)
_CONSENT = re.compile(
    r"\W*(?:(?:oh|ah|well|right|and)\W+)*(?:yes|yeah|yep|aye|sure|ok|okay|fine|great|perfect|wonderful|lovely|good|"
    r"excellent|splendid|agreed|thank|thanks|exactly|of course|that's (?:right|it)|see you|bye|goodbye|right|"
    r"no problem)\b",
    re.IGNORECASE,
)
"""How a text begins that agrees or takes leave."""
_CONTRAST = r"no(?! (?:problem|worr\w+|need|doubt))|not|\w+n't|but|rather|instead|actually|mean|meant|misunder\w+|wrong"
_DENIES = re.compile(r"\W*(?:no\b(?! (?:problem|worr|need|doubt))|that's (?:not|wrong)|not\b)", re.IGNORECASE)
_TOPIC = r"it's|it is|about|for"
"""Words of a text that may be about another activity."""
_ON = (
    r"(?:it|that|we|everything)(?:'s| is| are|'re)?(?: still| all| definitely)? (?:on|going ahead|goes ahead)|"
    r"(?:does|will|'ll|is going to) (?:still |certainly |of course )?(?:take place|happen|be there|come)|takes place|"
    r"(?:i|we)(?:'m|'re| am| are)(?: still)? coming|(?:nothing|not|isn't|hasn't been) (?:is )?(?:called off|cancel\w*)"
)


def agrees(text: str) -> bool:
    """Whether a text says yes to a question."""
    return bool(_YES.search(text)) and not _NO.search(text)


def begins_with_yes(text: str) -> bool:
    """Whether a text begins as one that agrees."""
    return _CONSENT.match(text) is not None


def consents(text: str) -> bool:
    """Whether a text agrees or takes leave without a word of contrast."""
    return begins_with_yes(text) and not contrasts(text)


def contrasts(text: str) -> bool:
    """Whether a text has a word that corrects."""
    return within(_CONTRAST, text)


def denies(text: str) -> bool:
    """Whether a text begins with a no, as an answer to what was read back."""
    return (
        re.match(r"\W*(?:no\b(?! (?:problem|worr|need|doubt))|that's (?:not|wrong)|not\b)", text, re.IGNORECASE)
        is not None
    )


def is_on_after_all(before: InvitationSlots, latest: InvitationSlots, text: str) -> bool:
    """Whether the answer to `So it won't take place?` says that it does: in words, or by naming when, where or what."""
    if within(_ON, text):
        return True
    named = (latest.place, latest.day, latest.start, latest.activity)
    asked_what = before.activity is None
    return not (asked_what or latest.negated or consents(text)) and named != (None, None, None, None)


def amended(before: InvitationSlots, latest: InvitationSlots, text: str) -> InvitationSlots:
    """The slots after an answer to a question: what it names is added, what it corrects is replaced."""
    slots = before.merged(latest)
    return _renamed(slots, latest) if contrasts(text) else slots


def corrected(before: InvitationSlots, latest: InvitationSlots, text: str, situation: Situation) -> InvitationSlots:
    """The slots after an answer to what was read back; unchanged if it agrees or names nothing new."""
    if consents(text):
        latest = latest._replace(place=None, activity=None, then_activity=None, then_place=None, online=False)
    slots = before.merged(latest)
    if latest.online and latest.place is None and not before.online:
        slots = slots._replace(place=None)
    if contrasts(text):
        slots = slots._replace(people=slots.people - (people_named(text, situation) - latest.people))
    return _renamed(slots, latest) if _may_rename(text) else slots


def as_answer(situation: Situation) -> Situation:
    """The situation as if the activity had been asked for last."""
    return situation._replace(before=[*situation.before[:-1], SpokenLine(situation.listener, WHAT_FOR)])


def other_activity(known: InvitationSlots, text: str, situation: Situation) -> Phrase | None:
    """The other activity that a text may name which corrects."""
    if not _may_rename(text):
        return None
    found = named_in_answer(text, as_answer(situation))
    return found if found and not _same(known, found.words) else None


def _may_rename(text: str) -> bool:
    return not consents(text) and (contrasts(text) or within(_TOPIC, text))


def _renamed(slots: InvitationSlots, latest: InvitationSlots) -> InvitationSlots:
    if latest.activity is None or slots.activity is None or _same(slots, latest.activity):
        return slots
    return slots._replace(activity=latest.activity, then_activity=latest.then_activity, then_place=latest.then_place)


def _same(slots: InvitationSlots, named: str) -> bool:
    return content_words(named) <= content_words(f"{slots.activity} {slots.then_activity or ''}")
