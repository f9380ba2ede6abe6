"""What a later text of a talk changes: corrections, consent, and what is on after all."""

import re

from environments.stss.characters.remarks import begins_with_yes, corrects, denies
from environments.stss.hearing.activities.activity import Phrase
from environments.stss.hearing.activities.groups import content_words, does_it
from environments.stss.hearing.named.people import people, people_named
from environments.stss.hearing.named.spots import mentions
from environments.stss.hearing.read import WHAT_FOR, named_in_answer, read
from environments.stss.hearing.slots import InvitationSlots, Situation, SpokenLine
from environments.stss.hearing.words import within

_YES = re.compile(
    r"\b(?:yes|yeah|sure|ok|okay|fine|great|perfect|agreed?|deal|works|good|see you|of course|sounds)\b", re.IGNORECASE
)
_NO = re.compile(
    r"\b(?:no(?! problem)|(?<!why )not|\w+n't|cannot|unfortunately|sorry|pity|too \w+|busy|asleep|"
    r"i have (?:an?|to)|i must)\b",
    re.IGNORECASE,
)
_ONLY = r"(?:nobody|no one) else|(?:just|only) (?:us|you and|the two of us)"
_NO_END = r"no fixed end|open end|end is open|(?:don't|doesn't) know(?: yet)? how long"
_MORE = r"also|another|one more|besides|a second|something else|as well"
_ON = (
    r"(?:it|that|we|everything)(?:'s| is| are|'re)?(?: still| all| definitely)? (?:on|going ahead|goes ahead)|"
    r"(?:does|will|'ll|is going to) (?:still |certainly |of course )?(?:take place|happen|be there|come)|takes place|"
    r"(?:i|we)(?:'m|'re| am| are)(?: still)? coming|(?:nothing|not|isn't|hasn't been) (?:is )?(?:called off|cancel\w*)|"
    r"(?:it|that) (?:does|will)(?= *(?:[.,!]|$))|misunder\w+"
)


def agrees(text: str) -> bool:
    """Whether a text says yes to a question."""
    return bool(_YES.search(text)) and not _NO.search(text)


def refuses_time(text: str) -> bool:
    """Whether a text says no to a time that was proposed."""
    return _NO.search(text) is not None


def is_on_after_all(latest: InvitationSlots, text: str, *, asked: bool) -> bool:
    """Whether the answer to `So it won't take place?` says that it does: in words, or by naming when, where or what.

    `asked`: whether it was also asked what, where or when.
    """
    if within(_ON, text):
        return True
    named = (latest.place, latest.day, latest.start, latest.activity)
    return not (asked or latest.negated or begins_with_yes(text)) and named != (None, None, None, None)


def amended(before: InvitationSlots, latest: InvitationSlots, text: str) -> InvitationSlots:
    """The slots after an answer to a question: what it names is added, what it corrects is replaced."""
    slots = before.merged(latest)
    if latest.online and latest.place is None and not before.online:
        slots = slots._replace(place=None)
    slots = slots._replace(people=_people(before, latest, text))
    if within(_NO_END, text):
        slots = slots._replace(end=None)
    return _renamed(slots, latest) if corrects(text) else slots


def _people(before: InvitationSlots, latest: InvitationSlots, text: str) -> frozenset[str]:
    """Those who take part after a text: others come besides, but for a text that says that it is only they."""
    only = within(_ONLY, text) or (latest.people and denies(text) and not within("too|also|as well", text))
    return latest.people if only else before.people | latest.people


def corrected(before: InvitationSlots, latest: InvitationSlots, text: str, situation: Situation) -> InvitationSlots:
    """The slots after the part of a text that counts after an agreement; unchanged if that names nothing new."""
    slots = amended(before, _of_its_leg(before, latest, text, situation), text)
    return slots._replace(people=slots.people - not_coming(text, situation))


def _of_its_leg(before: InvitationSlots, latest: InvitationSlots, text: str, situation: Situation) -> InvitationSlots:
    """The place in a text about an errand as that of the second leg, if it is what the text speaks of."""
    if before.then_activity is None or latest.place is None or latest.then_place is not None:
        return latest
    found = mentions(text, situation)
    led = any(re.search(r"\bto(?: the)? $", text[: spot.start], re.IGNORECASE) for spot in found)
    denied = any(spot.address == before.then_place for spot in found)
    if not (led or denied or within(before.then_activity.split()[0], text)):
        return latest
    return latest._replace(place=None, then_place=latest.place)


def second_invitation(before: InvitationSlots, text: str, situation: Situation) -> InvitationSlots | None:
    """What a text invites to besides what was agreed; None if it does not, or corrects that."""
    other = read(text, situation._replace(before=()))
    if not within(_MORE, text) or corrects(text) or other.negated or (other.place, other.start) == (None, None):
        return None
    return None if other.activity is None or _same(before, other.activity) else other


def as_answer(situation: Situation) -> Situation:
    """The situation as if its last line had asked for the activity, too."""
    asked = f"{situation.question} {WHAT_FOR}?".lstrip()
    return situation._replace(before=[*situation.before[:-1], SpokenLine(situation.listener, asked)])


def without_denied(text: str, guess: str) -> str:
    """A text without the activity that it denies, as in `it's not a flu jab, it's a tea party`."""
    denied = rf"(?:\bit(?:'s| is) )?\bnot (?:an? |the |my |our )?{re.escape(guess)}\b\W*"
    return re.sub(denied, "", text, flags=re.IGNORECASE) if guess else text


def other_activity(known: InvitationSlots, text: str, situation: Situation) -> Phrase | None:
    """The other activity that a text may name."""
    found = None if within(f"{_NO_END}|{_ONLY}", text) else named_in_answer(text, as_answer(situation))
    return found if found and not _same(known, found.words) else None


def not_coming(text: str, situation: Situation) -> frozenset[str]:
    """Those whom a text names as not taking part."""
    return (
        people_named(text, situation) - people(text, situation) if within(r"not|\w+n't|without", text) else frozenset()
    )


def _renamed(slots: InvitationSlots, latest: InvitationSlots) -> InvitationSlots:
    if latest.activity is None or slots.activity is None or _same(slots, latest.activity):
        return slots
    return slots._replace(activity=latest.activity, then_activity=latest.then_activity, then_place=latest.then_place)


def _same(slots: InvitationSlots, named: str) -> bool:
    """Whether a phrase names what is known, by its words or by a pronoun."""
    return does_it(named) or content_words(named) <= content_words(f"{slots.activity} {slots.then_activity or ''}")
