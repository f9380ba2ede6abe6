"""Whether a text calls something off, or declines what it answers to."""

import re
from functools import lru_cache

from environments.stss.hearing.activities.groups import content_words
from environments.stss.hearing.named.clock_words import clock_times
from environments.stss.hearing.named.days import days
from environments.stss.hearing.slots import Situation
from environments.stss.hearing.words import BEGINS, HOUR, is_empty, sentences, within

_NOT = r"(?:not|never|no longer|\w+n't|cannot)"
_GO = (
    r"(?:come|go(?! anywhere| far)|bother|hang|carry|wait for me"
    r"|\w+ \w+ (?:[\w' ]+ )?(?:after all|any ?more|any longer))"
)
_CALLED_OFF = "|".join(
    (
        r"(?<!not )(?:cancel(?:l?ed|ling)?|scrap(?:ped|ping)?|postponed?|abandoned)",
        r"(?:call|put)(?:ed|s|ting|ing)? (?:\S+ ){0,3}?off|rained off",
        r"(?:is|are|'s|'re|be) (?:now |all )?off(?! (?:to|the|with|at|down|for)\b)(?=\W|$| to(?:day|night|morrow))",
        rf"(?<!you ){_NOT} (?:\w+ ){{0,2}}(?:tak(?:e|ing) place|happen(?:ing)?|be held|going ahead)",
        r"there goes (?:my|our|the)|pull(?:ing)? the plug on|all off for|strike me (?:from|off)",
        r"so no (?:\w+ ){1,2}(?:today|tonight|tomorrow)",
        r"(?:today|tonight|tomorrow)(?:'s| is) (?:no good|out|impossible)",
        r"(?:isn't|aren't|not) (?:happening|on(?=\W*$)|going to happen)|come to nothing|(?:fallen|falls) through",
        rf"(?:do not|don't|don't have to|needn't|no need to|nobody|shouldn't) (?:please )?{_GO}",
        r"no need to (?!bring|be|ask|say|worry|hurry)\w+",
        r"needn't (?:carry|fetch|bring|collect|do)(?! anything| a thing| much)",
        r"(?:(?<!they )don't|needn't|won't|doesn't|can't make) (?:\S+ ){0,6}?(?:after all|any ?more|any longer)",
        r"(?:i|we) (?:won't|shan't|will not) be (?:\w+ing|able)|no longer (?:need\w*|necessary|wanted)",
        r"there(?: won't be| will be no|'ll be no) (?!a single|any|reason|hurry|rush|need|charge|room)\w+",
        r"there's no (?!\w+ in (?:it|this one|that one)\b|reason|hurry|rush|need|charge|fee|room|one|point|time"
        r"|harm|music"
        r"|talking|denying|telling)\w+(?!.*\b[wc]ould you\b)",
        r"(?:must|have to|had to) (?:drop|skip)|been (?:dropped|struck)|(?:come|came) to grief|gone off (?:it|the)",
        r"that's that",
        r"save (?:yourself|your)|strike (?:that|it|me) (?:off|from)|(?:sleep|lie|lay) in(?=\W*$)",
        r"go back to (?:bed|sleep)",
        r"put (?:your|the|that) (?:\w+ ){1,2}away|turn (?:round|back)(?=[,!.])|nobody's (?!perfect|fault)\w+ing",
        r"that's (?:\w+ ){1,2}o'clock gone|(?:have|hate) to disappoint|don't (?:trouble|wait up)",
        r"there's nothing left to",
        r"(?:shan't|won't) need|you(?:'re| are)? (?:may|can|could) (?:stay|lie|leave the)",
        r"consider yourself (?:spared|excused)",
        r"take (?:it |that )?back (?:my|the|what|about)|take back|forget (?:about|it|the|what)|never mind",
        r"(?:let's |just |actually,? |please )leave (?:it|that)(?= ?[,.;:!]|$)|stay (?:at home|by your)",
    )
)
"""Words by which what was planned will not be."""
_NO_EVENT = re.compile(
    rf"{BEGINS}(?:\w+ )?no (?!one|need|doubt|wonder|idea|hurry|rush|problem|trouble|wait|charge|fee)[\w-]+(?: [\w-]+)?"
    r"(?: (?:at|in|on) (?:the \w+|mine|yours)(?= to| this))?(?: today| tonight| tomorrow| this|,| after all)"
    r"|^scrap |^leave the ",
    re.IGNORECASE,
)
_OF_GEAR = r"(?:do|shall|should|must|can) (?:i|we|you|they|people) (?:need|bring|have|take|wear)"
"""Words that ask whether something is to be brought: `no camera` answers them, and calls nothing off."""
_DECLINES = (
    r"(?:i|we|me)(?:'m| am)? (?:\w+ )?(?:can't|cannot|can not|couldn't|won't|shan't|not can|will not|must decline"
    r"|not able|(?:going to )?have to (?:decline|say no|pass))|not (?:this time|for me|my thing|today|tonight|tomorrow)"
    r"|(?:some other|another|next) time|some other (?:night|day|evening)|without me"
    r"|(?:count|leave) me out|i wish i could|would if i could"
    r"|(?:i'll|i think i'll|i must) pass|be joking|(?:wrong|bad) (?:day|evening|night|time)|past my bedtime"
    r"|(?:have to |must )?find (?:yourself )?(?:an?|another|some) (?:younger|other|better|\w+ else)|doctor's note"
    r"|i(?:'d| would) have (?:liked|loved) to|i would,? (?:\w+,? )?(?:only|if|but)|(?:you'll|please) forgive me"
    r"|(?:isn't|aren't) for me|i'd (?:better|rather) not|no,? thank|thank you kindly|unfortunately|out of the question"
)
"""Words that decline whatever else is said."""
_PLAIN_NO = re.compile(r"no\.\s", re.IGNORECASE)
_YES = (
    r"yes|yeah|yep|aye|of course|sure|gladly|certainly(?! not)|with pleasure|count me in|i'll be there|i'm there|i come"
    r"|deal|i'll (?:come|bring|do|keep)|i'm (?:coming|in)|i accept|see you|agreed|perfect|wonderful"
    r"|absolutely(?! not)|okay"
    r"|ok|(?:consider it )?done(?= *[.!])"
    r"|(?<!no )(?:works|fine|good|suits) (?:for|by|with)? ?me|fine\W|why not|happily|count on"
    r"|do (?:bring|come)|looking forward|wouldn't miss|couldn't keep|can't wait"
    r"|very well|rely on|i'm yours|stop me|consider (?:it|them|him)|never said no|wouldn't want to be anywhere"
    r"|pleasure|any ?time|nothing i'd rather|never ask|all yours|see why not|do my best|let's(?=!)|don't be late"
    r"|(?:could|can|would) (?:one|you|i|we|any(?:one|body)) say no to|(?<!won't )(?<!not )find me there"
    r"|find the door open|i'd (?:be (?:glad|happy|delighted|honoured)|love to(?!.* but))|(?:i|we) can(?! not)"
    r"|it is,? then|you bet"
)
_WITHDRAWN = (
    r"(?:withdraw|ignore|disregard|forget|cancel) (?:\w+ ){0,2}invitation|take (?:\w+ ){1,2}back"
    r"|let's (?:drop|not meet|not do)"
    r"|changed (?:my|our) mind|don't want you to (?:come|be)|(?:i|we)(?:'m| am|'re| are) not"
    r" (?:coming|going(?! alone| without| on my own| by myself)|able)"
    r"|(?:i|we) (?:can't|cannot|won't|will not|can no longer|am not able to|won't be able to)"
    r" (?:come(?! up| down| in| out)|make it|be there|attend|join|take part)"
    r"|(?:have|had|'ve got|need) to (?:cancel|pull out|back out)|give \w+ (?:\w+ )?a miss|rain check"
)
"""Words that take back what was agreed."""
_KIND = re.compile(
    r"\b(?:can't|cannot|can hardly|won't|will not) (?:\w+ )?"
    r"(?:wait|stay|sleep|thank|be late|keep|disturb|miss|forget|hold)\b"
    r"|\bdon't (?:bother (?:to|with|bringing)|worry|forget|be late)|\b(?:next|another) time\b"
    r"|\b(?:i|we)(?:'ll| have to| must| should| need to|'d better)? be off\b"
    r"|\bunfortunately,? (?:i|we) (?:have to|must|need to|should) (?:go|leave|run|hurry)\b"
    r"|\bno (?:no|worr\w+|problem|need|rush|hurry)\b|^\W*(?:\w+\W+){0,2}(?:tell|remind|ask|warn)\b.*",
    re.IGNORECASE,
)
"""Words of joy, leave and care for others, which refuse nothing."""
_OWN = re.compile(
    r"\b(?:my|his|her|their|(?!to|it|that|there)\w+'s) (?P<what>(?:[\w-]+ ){0,2}?[\w-]+) (?:is|was|are|were|has been)"
    r"(?: all| now)? (?:cancel\w+|postponed|abandoned|(?:called )?off)\b",
    re.IGNORECASE,
)
"""Words that call off what is somebody's own, such as `my lesson is cancelled`."""
_OFFER = (
    r"could we|can we|shall we|how about|what about|(?<!n't )(?<!cannot )make (?:it|that)|let's"
    r"|let us|instead|might i|would (?:it|that) be|(?<!if )i could(?= *[.,!]|$)|i could do|we could"
    r"|can we say|rather (?:have|do)|then let us|would (?:\w+ ){1,3}(?:in|at|do|work|suit)(?! as i| for)"
    r"|better (?:at|in)"
)
_MOVED = (
    rf"it's (?:at )?(?:{HOUR}|\d[\d:.]*|half \w+|today|tonight|tomorrow|\w+day) now"
    r"|instead|take (?:it|that) back|change of (?:plans?|address)|moved"
    r"|until (?!further|next|my|the|we|i\b)[\w ]+|after all,? but"
)
_NEGATIVE = (
    rf"\w+n't|cannot|(?<!, )(?:not|no)(?!,? (?:at |until |before )?{HOUR}\b)|never|nobody|sorry|afraid|alas|busy|dead"
    r"|bad|but|too \w+|promised|i'm (?:away|off|out|working|on)|all (?:day|evening|morning)|i have (?:to|an?)"
    r"|(?:at|by|from|tonight|tomorrow) (?:\S+ ){0,3}?i(?:'m| am|'ve| have)(?! free| there| yours| all)|headache|seasick"
    r"|already|shame|pity|regret|excuse|would have|'d have|ask|spare me|otherwise|somebody else|someone else"
)
_TAG = re.compile(r"\b\w+n't (?:it|he|she|they|we|you|i)\?", re.IGNORECASE)
_OVER = (
    r"that's that|nothing|needn't|already|enough|instead|spared?|relax|over|gone|lost|sold|broken?|sank|sunk"
    r"|shut|closed|stuck|ill|sick|fever|flu|again when|by (?:him|her|it|them)sel(?:f|ves)|(?:has|have) decided"
    r"|some(?:body|one) else|turn (?:round|back)"
)
"""Words that tell why something may not be."""
_DOUBTS = (
    r"didn't you|did you say|which (?:day|evening)|isn't that|i thought|is it (?:still|noon|today|tomorrow)|"
    r"is that|when was it|how are you"
)
_ASKS = (
    r"was it|did (?:it|he|she|they|your|his|her|the)|shall i bring|who(?:'s| is) (?!coming|joining)\w+ing|is it just"
)
"""Words of a sentence that asks, and invites to nothing."""
_INVITES = (
    r"shall (?:we|i)|care to|want to|would you|could you|will you|can you|you'll|come|join|fancy|with me|for me|up for"
)


def invited(situation: Situation) -> bool:
    """Whether the listener was the last to invite, so that the text answers to it. The last talks are kept."""
    return _invited(situation._replace(before=tuple(situation.before)))


@lru_cache(maxsize=256)
def _invited(situation: Situation) -> bool:
    question = situation.question
    if not question or any(line.speaker == situation.speaker for line in situation.before):
        return False
    return (
        any(map(_looks_ahead, sentences(question)))
        and not within(_DOUBTS, question)
        and not _of_another(question, situation)
    )


def _looks_ahead(sentence: str) -> bool:
    """Whether a sentence names a day or a time, or asks for company, and is no question about something else."""
    ahead = clock_times(sentence) or days(sentence, 0) or within(_INVITES, sentence)
    return bool(ahead) and not within(_ASKS, sentence)


def _of_another(question: str, situation: Situation) -> bool:
    """Whether a question is what somebody of the town does."""
    names = "|".join(name.split()[0] for name in situation.places.homes)
    return bool(names) and re.search(rf"\b(?:will|is|does|can) (?:{names})\b", question, re.I) is not None


def may_call_off(text: str) -> bool:
    """Whether a text that is heard as no refusal has words that one may have, and none that invite."""
    told = _TAG.sub(" ", _without_kind_words(text))
    return (within(_NEGATIVE, told) or within(_OVER, told)) and not within(_INVITES, told)


def calls_off(text: str, agreed: str) -> bool:
    """Whether a text takes back, in words beyond doubt, the activity that was agreed."""
    told = _without_others(_without_kind_words(text), agreed)
    return within(_CALLED_OFF, told) or within(_WITHDRAWN, told) or _NO_EVENT.search(told) is not None


@lru_cache(maxsize=16)
def _without_kind_words(text: str) -> str:
    return _KIND.sub(" ", text)


def _without_others(text: str, agreed: str) -> str:
    """A text without what tells that something of somebody's own, and not what was agreed, is called off."""

    def kept(match: re.Match[str]) -> str:
        own = is_empty(match["what"]) or content_words(match["what"]) & content_words(agreed)
        return match[0] if own else " "

    return _OWN.sub(kept, text)


def offers(text: str) -> bool:
    """Whether a text proposes a change."""
    return within(_OFFER, text) or within("would you mind", text)


def declines(text: str) -> bool:
    """Whether a text has words that decline, and proposes nothing else."""
    told = _without_kind_words(text)
    return within(_DECLINES, told) and not within(_OFFER, told)


def refuses(text: str, situation: Situation, *, changes: bool) -> bool:
    """Whether a text calls something off or declines it; not if it offers another day, time or place (`changes`).

    An answer to an invitation that neither agrees nor asks declines it if it has words of a no or of an obstacle.
    """
    if changes and within(_MOVED, text):
        return False
    rest = _without_others(text, "")
    if rest != text and within(_INVITES, rest) and (clock_times(rest) or days(rest, 0)):
        return False
    no_gear = within(_OF_GEAR, situation.question) and not days(text, 0)
    no_event = _NO_EVENT.search(text) and not no_gear
    if within(_CALLED_OFF, text) or no_event:
        return True
    if within(_WITHDRAWN, text) and not within(_OFFER, text):
        return True
    if not invited(situation) or (changes and within(_OFFER, text)):
        return False
    if within(_DECLINES, text) or _PLAIN_NO.match(text):
        return True
    if within(_YES, text) or text.endswith("?"):
        return False
    return within(_NEGATIVE, text) or (not changes and within(_OVER, text))
