"""What a sentence of a talk does: it offers, agrees, refuses, or tells what stands in the way."""

import re
from collections.abc import Collection

from environments.stss.hearing.refusals import calls_off, declines
from environments.stss.hearing.words import within

_OFFERS = (
    r"let's|let us|shall|could|can (?:we|you|i)|would|might|how about|what about|say|make (?:it|that)|instead|fancy|"
    r"rather|propose[ds]?|suggest|come (?:at|by|over|round)|join|meet|invite|put you down|expect you|"
    r"i can do|(?:i'm|i'd be|i'll be) free|do it at|(?:start|begin|meet|push|move|shift|make) (?:it )?(?:at|to|by)"
)
_CHANGES = r"let's|let us|shall we|could (?:we|you)|can we|how about|what about|make (?:it|that)|instead|rather|come at"
"""Words that move what was agreed."""
_YES = (
    r"yes+|yeah|yep|aye|ok(?:ay)?|sure|gladly|of course(?! you)|course you can|certainly|absolutely|deal|done|will do|"
    r"sold|settled|agreed|al+ ?right|very well|go on|why not(?!\?| \w+)|with pleasure|no (?:worries|problem|stress)|"
    r"noted|you're on|exactly|naturally|accepted|happily|delighted|right then|i suppose|"
    r"(?:perfect|lovely|great|fine|good|excellent|wonderful|splendid|brilliant|fantastic|easy)"
    r"(?=[^\w\s]|$| (?:by|for|with|to) me| then| and| i\b| we\b| that| it\b| so\b| idea)"
)
_TAG = re.compile(r", (?:al+ ?right|ok(?:ay)?|will you|would you|yeah|right|eh)\?$", re.IGNORECASE)
_LEADS = re.compile(
    rf"(?:(?:oh|ah|aw|ooh|well|then|so|hm+|ha(?:ha)?|but|and|right|no)[,.]? |\w+[,.] )?(?:{_YES})\b(?! not\b)",
    re.IGNORECASE,
)
"""Words that agree where a sentence begins with them."""
_AGREES = (
    r"count (?:me in|on me)|i'm in|see you|works? for (?:me|us)|suits (?:me|us)|that'll do|it's a date|"
    r"put me down|look(?:ing)? forward to|expect me|i'm (?:coming|joining|yours|there(?=[.,!])|your \w+)|i'll be there|"
    r"i(?:'d| would) (?:love to|be (?:glad|happy|delighted))|i (?:accept|promise)|till tomorrow|got it|consider it|"
    r"^(?:oh,? |well,? )?(?:then|in that case),? (?:i'll|i'm|i shall|i can|i could|i'd|we'll|you'll|you shall|you've)"
    r" (?!have to|try|ask)|"
    r"it is,? then|i can(?: do)?(?=[.!,])|that i can|(?:three|two|four|five|six) i can|i do it|promise(?=[.!])"
)
"""Words that agree anywhere."""
_COMMITS = (
    r"i'll (?!ask|be (?:asking|in\b|out|on\b|under|up|away|asleep)|see|try|think|let you|speak|have to|never|not|"
    r"find some|give you a (?:ring|call))\w+|"
    r"i (?:will|shall) (?!not|never)\w+|we'll (?!see|talk)\w+|then (?:you(?:'ll| shall| will|'ve)|i shall)|"
    r"you(?:'ll| shall| will)(?: \w+)? (?:have|see|be) (?:me|my)|is (?:possible|good|fine|perfect|better|plenty)|"
    r"nobody minds?|(?:don't|won't|not) mind"
)
"""Words of somebody who goes along with what was proposed."""
_REFUSES = (
    r"declined?|refused?|not promising|no promises|(?:don't|do not) like to|i don't want (?!to (?:be|miss|keep))|"
    r"i (?:would|will) not(?! (?:miss|mind|be late|forget|say no))|"
    r"good luck (?:with|to)|have fun|let's see first|^(?:once|when) (?:\S+ ){1,3}(?:done|counted)|"
    r"(?:somebody|someone) (?:else|who's)|i'd hate|"
    r"not (?:for me|a chance)|depends|a (?:sad )?no|nothing is settled|not agree\w*|"
    r"(?:some|one) (?:day|evening|morning|of these days)|another few days|when i'm back|"
    r"no (?:chance|way)|not a hope|out of the question|"
    r"try me again|wish i could|wait and see|leave (?:it|me) be|without waiting|"
    r"don't (?:go looking|wait for me|expect me|count on)|"
    r"(?:i'll|i will) (?:think|see|speak|let you know|give you a (?:ring|call))|stays? where it is"
)
"""Words that refuse unless both sides have agreed."""
_CANNOT = (
    r"unfortunately|(?:i|we) (?:really |just )?(?:can't|cannot|couldn't|won't|shan't)"
    r"(?=[.,!;]|$| (?:come|make|be there|do|manage|join|promise|today|tonight|tomorrow|at)\b)"
)
_WITHDRAWS = (
    r"some other (?:time|day)|another (?:time|\w*day)|next (?:time|week|month|one)|ask me (?:about|again)|forget what|"
    r"we'll (?:see|talk)(?=[.,!;]|$)|(?:leave|count) me out|give it to|can't (?:come|make it|do it)|"
    r"have to (?:cancel|say no|pass)"
)
"""Words that take back even what was agreed."""
_NONE_OF = re.compile(r"(?:and |but )?no \w+(?: \w+){0,3}[,.!]", re.IGNORECASE)
"""Such as `And no filming, Elif.`"""
_DOUBTS = (
    r"^no(?:, no)?(?=[.!])|oh no|sorry|afraid|pity|shame|(?:don't|do not) know|mightn't|tempting|alas|regret|no hurry"
)
"""Words of regret, which refuse as long as nothing is agreed."""
_REGRET = re.compile(r"(?:\w+[,.] )?(?:(?:oh|what a|that's a|it's a|a) )*(?:pity|shame)\b", re.IGNORECASE)
_KIND_BUT = (
    r"(?:lovely|love|like to|like|nice|kind|tempting|sweet|wish|principle|sounds|would|honou?red|flattered|fun)\b"
    r"[^.!?]*\b(?:but|only|except|though)"
)
"""Friendly words before what stands in the way."""
_SENDS = (
    r"(?:ask|try|find|bother|offer|fetch|take)(?: [\w' ]+?)? (?:{names}|him|her|them|somebody|someone)|"
    r"(?:ask|try|send) (?:the|your|my) \w+|(?:perhaps|maybe) (?:{names}) (?:will|can|could|would|might)"
)
_BUSY = re.compile(
    r"\b(?:i'm|i am|we're|we are|i've|i have|we've|i'd be|i was|i would be|"
    r"i'll be (?!there|here|in\b|at\b|back|ready|done|finished|glad|happy|free|along|round|over|with|waiting|the|your|"
    r"sitting|coming|bringing|standing)\w+|i'll have (?:old|my|the|a|\w+ing)|"
    r"i (?!can\b|could\b|might\b|will\b|would\b|shall\b|may\b|think|thought|suppose|guess|say\b|said|propose|suggest|"
    r"prefer|mean\b|hope|open the|put\b|come|am\b|have\b|do\b|told|planned)\w+|"
    r"(?:is|are|was|were) (?:still )?\w+(?:ing|ed)|comes|goes|leaves|rings|closes|has|(?<!'ll )have|"
    r"works?(?! for)|runs|asleep|busy|dark|early|late|no good|too \w+|due|\w+n't|middle of|"
    r"(?:my|his|her) \w+(?: is| are| was|'s)|the \w+ (?:is|are|was))\b"
    r"|(?<!\bit)(?<!that)(?<!let)(?<!there)(?<!what)(?<!how)(?<!when)(?<!\W)'s\b(?! fine| good| at @)"
    r"|@(?:'s| is) (?:my|the|still|when|no|too|not|out|hard|a (?:bit|little))\b",
    re.IGNORECASE,
)
"""Words of a clause that tells what is then; `@` stands for the time."""
_AT_CLAUSE = re.compile(
    r"(?:\W*\b(?:but|and|oh|well|no|ah|hm+|only)\b)*\W*at @,? "
    r"(?!(?:then|sharp|it is|on|in|at|with|tomorrow|tonight|today|would)\b)[\w']+ [\w']+",
    re.IGNORECASE,
)
"""A sentence that begins with `at five`, and then tells what is then."""
_HITCH = re.compile(r"(?:but|only|except|though|however|the (?:trouble|thing|problem|snag) is)\b", re.IGNORECASE)
_FREE = re.compile(
    r"\b(?:free|yours|at your (?:disposal|service)|done|home|back|finished|ready|available|can|could|happy|glad|"
    r"works for|suits|in good time|(?:we|it|doors?) (?:starts?|begins?|opens?)|starts at|begins at|starting|it's on)\b",
    re.IGNORECASE,
)
"""Words of a clause by which the time suits all the same."""
_CLAUSE = re.compile(r"[;:–—…]|,? (?:but|so|then|and|because) |\.\.\.", re.IGNORECASE)


def asks(sentence: str) -> bool:
    """Whether a sentence is a question, and no statement that only ends like one."""
    return sentence.endswith("?") and not _TAG.search(sentence)


def changes(sentence: str) -> bool:
    """Whether a sentence moves what was agreed, even after both sides said yes."""
    return asks(sentence) or within(_CHANGES, sentence)


def offers(sentence: str) -> bool:
    """Whether a sentence proposes or asks."""
    return asks(sentence) or within(_OFFERS, sentence)


def says_yes(sentence: str) -> bool:
    """Whether a sentence begins with a yes."""
    return _LEADS.match(sentence) is not None


def agrees(sentence: str) -> bool:
    """Whether a sentence agrees to what was proposed."""
    return says_yes(sentence) or within(_AGREES, sentence)


def commits(sentence: str) -> bool:
    """Whether the speaker of a sentence goes along with what was proposed."""
    return within(_COMMITS, sentence)


def refuses(sentence: str, names: Collection[str], *, answered: bool) -> bool:
    """Whether a sentence refuses, or sends to somebody else (`names`); `answered`: after something kinder."""
    sends = within(_SENDS.format(names="|".join(names)), sentence)
    cannot = within(_CANNOT, sentence) or (declines(sentence) and not answered)
    return sends or withdraws(sentence) or cannot or within(_REFUSES, sentence)


def withdraws(sentence: str) -> bool:
    """Whether a sentence takes back what was agreed; whatever it names counts as that."""
    return within(_WITHDRAWS, sentence) or (calls_off(sentence, agreed=sentence) and not _NONE_OF.match(sentence))


def hinders(sentence: str) -> bool:
    """Whether a sentence names what stands in the way of what was just said, as `But I'm at sea till dark.`"""
    return _HITCH.match(sentence) is not None and _BUSY.search(sentence) is not None and not asks(sentence)


def doubts(sentence: str) -> bool:
    """Whether a sentence regrets, as a refusal does."""
    return within(_DOUBTS, sentence) or within(_KIND_BUT, sentence)


def regrets(sentence: str) -> bool:
    """Whether a sentence takes note of a refusal, also one's own of what one proposed."""
    return _REGRET.match(sentence) is not None


def tells_of(sentence: str, start: int, end: int) -> bool:
    """Whether a sentence tells what is at a time, rather than agrees to it."""
    clause = f"{sentence[:start]}@{sentence[end:]}"
    return _AT_CLAUSE.match(clause) is not None and not _FREE.search(clause)


def is_busy(sentence: str, start: int, end: int) -> bool:
    """Whether the clause around a time tells what stands in the way then, and proposes nothing."""
    before = re.split(r",|\band\b", _CLAUSE.split(sentence[:start])[-1])[-1]
    after = _CLAUSE.split(sentence[end:])[0]
    if says_yes(sentence) or asks(after) or within(_OFFERS, f"{before}@{after.split(',')[0]}"):
        return False
    return _BUSY.search(f"{before}@{after}") is not None and not _FREE.search(f"{before}@{after}")
