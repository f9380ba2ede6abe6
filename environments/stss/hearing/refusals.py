"""Whether a text calls something off or declines it."""

import re

from environments.stss.hearing.clock_words import clock_times
from environments.stss.hearing.days import days
from environments.stss.hearing.slots import Situation
from environments.stss.hearing.words import within

_OFF = (
    r"cancel(?:l?ed|ling)?|call(?:ed|ing)? (?:it |this |that )?off|(?:is|are|'s|'re) (?:all )?off(?! to\b|"
    r" the| with| at| down)|take back (?:my|the)|"
    r"(?<!not )(?<!don't )forget (?:the|about|it)|won't (?:take place|happen)|will not (?:take place|happen|"
    r"be held)|postponed|called off|scrapped|rained off|never mind|have to cancel|stay (?:at home|by your)|"
    r"come to nothing|fallen through|isn't going to happen|(?:is|are)n't (?:happening|on)|not happening|"
    r"(?:do not|don't|please don't|nobody) (?:come|bother|hang|carry|wait)|needn't (?:come|go|do|bother|fetch|"
    r"bring|carry|collect|\w+ (?:\w+ ){0,6}after all)|"
    r"no need to (?:come|go|fetch|bring|carry|wait|collect)|there(?:'ll| will) be no|there's no (?!reason|"
    r"hurry|rush|need|charge|fee|music|room)|no longer (?:need|necessary)|has been (?:dropped|scrapped)"
)
_NO_EVENT = re.compile(
    r"^(?:i'm sorry, |sorry, )?no (?!one|need|doubt|wonder|idea|hurry|rush|arguing|problem|speeches|"
    r"wait)\w+(?: \w+)? (?:today|tonight|tomorrow|this)\b",
    re.IGNORECASE,
)
_DECLINES = (
    r"(?:i|we) (?:really |simply |just )?(?:can't|cannot|can not|couldn't)|won't be (?:able|there|coming|"
    r"joining)|will not be|i'll not|won't (?:see|find|make)|must decline"
    r"|not (?:this time|for me|my thing)|another time|some other (?:time|night|day|evening)|count me out|"
    r"without me|leave me out|i wish i could|is out\b|'s out"
    r"|(?:isn't|aren't) for me|ask (?:me again|somebody else|someone else|\w+ instead|[a-z]+\.$)|"
    r"find (?:yourself )?(?:another|somebody else|someone else)|unfortunately|have to (?:decline|say no|pass)"
    r"|i'd (?:better|rather) not|no thanks|no, thank|thank you kindly|do without|maybe (?:next|another)|"
    r"not (?:today|tonight|tomorrow)"
)
"""Words that decline an invitation whatever else is said."""
_NEGATIVE = (
    r"\w+n't|not|no|never|nobody|nothing|cannot|without|sorry|afraid|unfortunately|regret|alas|another|"
    r"some other|pass|busy|decline|next time|too \w+"
    r"|shame|pity|wish|but|otherwise|instead|somebody else|someone else|already|out of it|out of the question|"
    r"excuse|would have|'d have|dead|bad|spare me|thanks all the same|thank you kindly"
)
"""Words of doubt; in an answer to an invitation that says no yes they decline it."""
_YES = (
    r"yes|yeah|yep|aye|of course|sure|gladly|certainly|with pleasure|count me in|i'll be there|i'm there|"
    r"i come|i'll come|i'm coming|see you|i'm in|deal|it is,? then|agreed|perfect|"
    r"works for me|fine by me|fine\W|why not|happily|you can count on|do bring|looking forward|i'd be (?:glad|"
    r"happy|delighted|honoured)|absolutely|wonderful|i accept|i'll bring|done"
)
_OFFER = (
    r"could we|can we|shall we|how about|what about|make (?:it|that)|let's|let us|instead|might i|would (?:it|"
    r"that) be|i could do|we could|can we say|rather (?:have|do)|then let us"
)


_DOUBTS = (
    r"didn't you|did you say|which (?:day|evening)|isn't that|i thought|is it (?:still|noon|today|tomorrow)|"
    r"is that|when was it"
)
_INVITES = r"would you|could you|will you|can you|you'll|come|join|fancy|with me|for me|up for"


def invited(situation: Situation) -> bool:
    """Whether the listener was the last to invite, so that the text answers to it."""
    mine = any(line.speaker == situation.speaker for line in situation.before)
    question = situation.question
    ahead = clock_times(question) or days(question, 0) or within(_INVITES, question)
    return bool(question) and not mine and bool(ahead) and not within(_DOUBTS, question)


def refuses(text: str, situation: Situation, *, changes: bool) -> bool:
    """Whether a text calls something off or declines it; not if it offers another day, time or place (`changes`)."""
    if within("instead|change of plans?|moved|until later", text) and changes:
        return False
    if within(_OFF, text) or _NO_EVENT.search(text):
        return True
    if (changes and within(_OFFER, text)) or not invited(situation):
        return False
    if within(_DECLINES, text):
        return True
    return within(_NEGATIVE, text) and not within(_YES, text) and not text.endswith("?")
