"""What a character itself said last: to what it invited, and what it asked for."""

from environments.stss.hearing.named.people import WHO
from environments.stss.hearing.read import read
from environments.stss.hearing.refusals import invited
from environments.stss.hearing.slots import InvitationSlots, Situation
from environments.stss.hearing.words import sentences, within

_QUESTIONS = (
    ("place", r"where|(?:which|whose) (?:house|place)"),
    ("start", r"when|what time|what hour|how (?:long|late)|which day|how many hours"),
)
_NOBODY = r"nobody|no one|alone|(?:just|only) (?:us|you|me|the)|the two of us|on (?:my|your|our) own|by (?:my|your)self"


def own_invitation(situation: Situation) -> InvitationSlots | None:
    """What the character has invited to; None if the text is no answer to that."""
    if not invited(situation):
        return None
    asked = situation._replace(speaker=situation.listener, listener=situation.speaker, before=())
    return read(situation.question, asked)._replace(negated=False)


def asked_for(situation: Situation) -> tuple[str, ...]:
    """The slots that the character's last question asks for, of place and start."""
    return tuple(name for name, words in _QUESTIONS if _asked(words, situation))


def asked_who(text: str, situation: Situation) -> bool:
    """Whether the character's last question asks who takes part, and a text does not say that nobody does."""
    return _asked(WHO, situation) and not within(_NOBODY, text)


def _asked(words: str, situation: Situation) -> bool:
    return any(sentence.endswith("?") and within(words, sentence) for sentence in sentences(situation.question))
