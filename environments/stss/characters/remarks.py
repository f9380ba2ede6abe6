"""Which sentences of a text count after an agreement: all others are friendly remarks, and settle it."""

import re

from environments.stss.hearing.activities.groups import content_words
from environments.stss.hearing.recognise import recognise
from environments.stss.hearing.refusals import calls_off
from environments.stss.hearing.slots import InvitationSlots, Situation
from environments.stss.hearing.words import plain, within, word_set

NO = r"(?:no|nope)\b(?! (?:problem|worr\w+|need|doubt|rush|hurry))"
_ASSENT = (
    r"yes|yeah|yep|aye|sure|ok|okay|fine|great|perfect|wonderful|lovely|good|excellent|splendid|agreed|exactly|"
    r"of course|that's (?:right|it)|right|no problem"
)
_LEAVE = r"thank you|thanks|thank|see you|bye|goodbye"
_LEAVES = rf"{_LEAVE}|take care|look(?:ing)? forward|can't wait|it's a (?:date|deal)|agreed"
_OPENING = re.compile(
    rf"\W*(?:(?:{_ASSENT}|{NO}|thank you|thanks|bye|goodbye|oh|ah|well|and|but|so|then|sorry|actually|wait|hm+)\b\W*)*",
    re.I,
)
"""Words before what a sentence has to say."""
_SETTLES = re.compile(rf"\W*(?:(?:oh|ah|well|right|and)\W+)*(?:{_ASSENT}|{_LEAVE})\b", re.IGNORECASE)
_CONFIRMS = re.compile(rf"\W*(?:(?:oh|ah|well|right|and)\W+)*(?:{_ASSENT})\b", re.IGNORECASE)
_DENIES = re.compile(
    rf"\W*(?:(?:oh|ah|well|sorry|wait|hm+|actually)\W+)*(?:{NO}|not\b|that's (?:not|wrong))", re.IGNORECASE
)
_NEW_PLAN = r"change of (?:plans?|address|place|venue|day|date|time)|new plan"
_CORRECTS = (
    r"i mean|i meant|i said|make (?:it|that)|let's (?:say|make)|instead|misunder\w+|wrong|(?:it|that)(?:'s| is) not|"
    r"(?:it|that) isn't|i(?:'d| would) (?:rather|prefer)|not (?:\w+ ){1,3}but|"
    rf"{_NEW_PLAN}|rather than|moved|postpone\w*|(?:put|pushed|push) (?:it |this |that )?(?:off|back)|"
    r"shift(?:s|ed)? (?:it|this|that|to)|slides? to|(?:can|could|might|shall) we|might i|(?:has|have|had) to be"
)
_REPLANS = rf"instead|{_NEW_PLAN}|(?:can|could|might|shall) we"
"""Words after which every sentence that names a day, a time or a place tells what is new."""
_TOPIC = re.compile(r"it(?:'s| is) (?:about|for)\b", re.IGNORECASE)
_HALTS = re.compile(r"\W*(?:(?:oh|hm+|no)\W+)*(?:wait\b(?! for)|hold on|hang on|one moment|stop\b)", re.IGNORECASE)
_GOES = re.compile(
    r"(?:i|we)(?: really| just)?(?: (?:have to|must|need to|should|had better|'ve got to) (?:go|run|leave|hurry|get|be)"
    r"|(?:'m| am|'re| are) (?:going|off|heading|on (?:my|our) way)\b(?! to be))\b.*\bnow\b",
    re.IGNORECASE,
)
"""Words of one who must go somewhere else."""
_OF_THE_MEETING = word_set(
    """
    a about around at be begin begins by can come could ends finishes for from goes how i in is it it's its just last
    lasts let let's meet mean meant only on opens our rather run runs see shall start starts still take takes that
    that's the there this till until to us we we'll we're what will with would you
    """
)
"""Words that may stand before the time, day or place of what was agreed, besides those of its name."""
_UNTIL_THEN = re.compile(r"(?:see you|until|till)\b", re.IGNORECASE)
_AFTER_PLACE = re.compile(
    r"[^\w\s]|$|\s(?:on|at|today|tomorrow|tonight|then|please|from|until|and|not)\b", re.IGNORECASE
)


def begins_with_yes(text: str) -> bool:
    """Whether a text begins as one that agrees or takes leave."""
    return _SETTLES.match(text) is not None


def settles(text: str) -> bool:
    """Whether a text agrees or takes leave."""
    return begins_with_yes(text) or within(_LEAVES, text)


def confirms(text: str) -> bool:
    """Whether a text says yes to a question, and no to nothing; thanks and leave-taking are no yes."""
    return _CONFIRMS.match(text) is not None and not within(rf"{NO}|not|\w+n't", text)


def denies(text: str) -> bool:
    """Whether a text begins with a no."""
    return _DENIES.match(text) is not None


def halts(text: str) -> bool:
    """Whether a text announces a correction."""
    return denies(text) or _HALTS.match(text) is not None or within("mistake", text)


def corrects(text: str) -> bool:
    """Whether a sentence of a text says explicitly that something else is meant."""
    return any(_is_correction(sentence) for sentence in _sentences(text))


def what_counts(text: str, agreed: InvitationSlots, situation: Situation) -> str:
    """The sentences that correct or call off what was agreed, or name a time, day or place for it; empty if none."""
    said = _sentences(text)
    told = next((at for at, sentence in enumerate(said) if within(_REPLANS, sentence)), len(said))
    counts = (
        _counts(sentence, agreed, situation) or (at >= told and _names_another(sentence, situation))
        for at, sentence in enumerate(said)
    )
    return " ".join(sentence for sentence, each in zip(said, counts, strict=True) if each)


def _names_another(sentence: str, situation: Situation) -> bool:
    """Whether a sentence names a day, a time or a place, or says that it is later or earlier."""
    found = recognise(sentence, situation)
    return bool(found.spans) or found.clock.start is not None


def _sentences(text: str) -> list[str]:
    """The sentences of a text, and the parts that `so` or `but` joins."""
    return re.split(r"(?<=[.!?;])\s+|(?<=,)\s+(?=(?:so|but)\b)", plain(text))


def _is_correction(sentence: str) -> bool:
    bare = _OPENING.sub("", sentence, count=1)
    return denies(sentence) or _TOPIC.match(bare) is not None or within(_CORRECTS, sentence) or ", not " in sentence


def _counts(sentence: str, agreed: InvitationSlots, situation: Situation) -> bool:
    bare = _OPENING.sub("", sentence, count=1)
    counts = _is_correction(sentence) or _is_of_the_meeting(bare, agreed, situation)
    return calls_off(sentence, agreed.activity or "") or (counts and _GOES.match(bare) is None)


def _is_of_the_meeting(sentence: str, agreed: InvitationSlots, situation: Situation) -> bool:
    """Whether nothing but small words and the activity stand before the first time, day or place of a sentence."""
    found = recognise(sentence, situation)
    kinds = {span.kind for span in found.spans}
    if not kinds or ("time" not in kinds and _UNTIL_THEN.match(sentence)):
        return False
    first = found.spans[0]
    lead = set(re.findall(r"[\w']+", found.text[: first.start].lower()))
    told_of = first.kind == "place" and not _AFTER_PLACE.match(found.text[first.end :])
    return not told_of and lead <= _OF_THE_MEETING | content_words(agreed.activity or "")
