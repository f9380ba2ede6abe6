"""The activity that a text names: a phrase after words of inviting and asking, or an answer to "what for"."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from environments.stss.hearing.clock_words import clock_times
from environments.stss.hearing.slots import MAX_WORDS, Situation
from environments.stss.hearing.words import BEGINS, VERB, is_empty, within

_DETERMINER = r"(?:an?|the|my|our|this|that|some|another|one of (?:my|our|those)|a few|a bit of|a sort of)"
_HOLDS = (
    r"(?:hold|host|throw|organi[sz]e|give|arrange|run|plan|have|do|start|open|call|offer|"
    r"put(?:ting)? together|try(?:ing)? out|"
    r"holding|hosting|throwing|organi[sz]ing|giving|arranging|running|planning|having|doing|starting|opening|"
    r"calling|offering|streaming|"
    r"set(?:ting)? up|get(?:ting)? (?:a few [\w ]+?|two or three [\w ]+?|people |some people )together for)"
)
_EVENTS = (
    rf"{_HOLDS} {_DETERMINER} ",
    r"(?:have|has|'ve|'s) (?:arranged|organi[sz]ed|planned|set up|got) an? ",
    r"(?:have|has) an? (?=on-?line|virtual|video)",
    r"(?:talked|roped|dragged) (?:me|us) into",
    r"(?:into|to|at) an? (?=zoom|video|virtual|on-?line)",
    r"there(?:'s| is|'ll be| will be| are)(?: going to be)? (?:an? |some |to be an? )?",
    r"(?:invit(?:e|es|ing)|welcome) (?:you|everyone|everybody|people|them|us|me)(?: all| both)? (?:to|for)",
    r"(?:invited|asked) (?:me|us|you) (?:to|for)",
    r"(?:invitation|welcome) to",
    r"\bjoin(?:ing)? (?:[\w']+ and me |[\w']+ and i |me |us |them |in )?(?:for|in|at|on|to)",
    rf"\bjoin(?:ing)? (?={_DETERMINER} |our )",
    r"(?:come|coming)(?: along| over| round| by| down| and join us)* (?:to|for)",
    r"(?:attend(?:ing)?|participat(?:e|ing) in|tak(?:e|ing) part in|sit in on|log in to|tune in to)",
    r"(?:up|game|ready|keen|in the mood|short|after|one short|company|fourth|third|table) (?:for|of)(?= \w)",
    r"(?:fancy|how about|what about|what would you say to|care for|feel like|interested in|thinking of|"
    r"thought of|looking for|tempted by)",
    r"(?:of us|we|i) (?:go|are going|'re going)(?= \w+ing| (?:[a-z]+ )?\w+ing)",
    r"(?:ask you for|need you for|want you for|use you for|meet(?: up)?(?: you| with you)? (?:for|about)|"
    r"see you (?:for|about)|talk (?:to you )?about)",
    r"(?:i'd|i would) (?:love|appreciate|really appreciate|be glad of|like) (?=an? )",
    r"(?:time|room|energy|free) for(?= an? )",
)
_ASKS = (
    r"let me(?= \w+ (?:the|my|your|a)\b)",
    r"do you (?:want|wish|fancy|think you could|have time)(?: to)?",
    r"(?:want|wanna|like|care|fancy|love) (?:to)",
    r"\bwanna",
    r"(?:could|can|shall|might|may) (?:we|i)(?:,? (?:please|perhaps|maybe|ask you to|trouble you to|"
    r"persuade you to))*",
    r"(?:i|we)(?:'d| would| should)? (?:really |dearly |only |just |also )?(?:like|love|want|need|hoped?|"
    r"was hoping|were hoping|plan|intend|must|have|am going|'m going|am trying|'re going)"
    r"(?: (?:you|someone|somebody|people|you and me|help)(?: with steady hands| else)?)?(?: to|(?= might|"
    r" would| could))",
    r"(?:i'd|i would|i'll|we'd|i'm|i am) be (?:honoured|grateful|glad|delighted|happy|obliged|so grateful|"
    r"very grateful|pleased|ever so glad) (?:if|to)(?: you| somebody| someone)?(?:'d| would| could)?",
    r"(?:you might|you'd|you could|somebody could|somebody to|somebody must|you to|you and i (?:should|could|"
    r"must)|somebody who (?:can|could)|to have you)",
    r"(?:people|others|two|three|four|some|anyone|anybody|company|someone|somebody)(?: [\w]+){0,3} to(?= \w)",
    r"(?:help)(?: me| us| her| him)?(?: out)?(?: with| by| to)?",
    r"(?:a hand|favour|favor|kindness|chance|time|a moment|moment|half an hour|an hour|five minutes|trouble|"
    r"bother|imposition)(?: of| to| with|, and)(?= \w)",
    r"(?:do me (?:a|the) (?:kindness|favou?r|great favou?r|small favou?r),?)(?: and| of|:)?",
    r"(?:let'?s|let us|why not|why don't we|please|kindly|just|shall we)",
    r"(?:ask|asked|beg|trouble|persuade|get) (?:you|somebody|someone) (?:to|into)",
    r"(?:come|come along|come over|come round|come by|come up|pop (?:in|over|by|round)|drop by|swing by|"
    r"lend me (?:your \w+ \w+|a hand|your \w+)|stop by)[\w ,']{0,40}? and",
    r"(?:so|so that) (?:you|we|i) (?:could|can)",
    r"(?:come|go|going|off|meet(?: up)?|meeting|get together|gather(?:ing)?|getting together|together|"
    r"sit down|free|here|able|way) to(?= \w)",
    r"(?:come|go|going) (?=\w+ing\b)",
    r"(?:showing|show|teaching|teach) (?:you|people|folk|everyone|everybody|anyone|me|us)(?: how)? to",
    r"(?:i'm|i am|we're|we are|we'll be|i'll be|three of us|of us)(?: just| also| finally)? (?=\w+(?:ing)\b)",
    r"(?:always )?wanted to",
    r"we (?=\w+ together)",
)
_OUGHT = r"(?:i|we|you) (?:simply |really )?(?:must|should|could|ought to|need to|have to|want to)"
_REQUEST = (
    r"(?:would|could|can|will|might|may) you(?:,? (?:please|kindly|perhaps|possibly|maybe|also|just|like|then|"
    r"still)\b,?)*"
    r"(?: (?:like|love|care|want|wish|fancy|be willing|be able|be so (?:kind|good|nice) as|be inclined|mind|"
    r"be kind enough|manage)(?: to)?)?"
    r"(?= [a-z])"
)
_PRESENT = rf"(?:i|we|of us) (?={VERB}\b)"
_MOVES = "moved?|shift(?:ed)?|transferred|can't (?:meet|be held)|change of (?:plans?|address)|postponed"
_NEVER = re.compile(
    r"^(?:hang on|(?:my|your|our|his|her) (?:house|place|home)\b|yours|mine\b|log|click|look\b(?! (?:at|over|"
    r"after|through))|listen\b(?! to)|sit in|hear me|stay|bid|be|is|are|was|see you|meet me|meet(?= on| at|"
    r" in)|say|spread|bring (?:you|your|any|a (?:cup|towel|bottle|friend)|people|everyone|the whole|gloves|"
    r"wellies|them|some|her|him)|"
    r"come|coming|going to|send you|keep|let me|let him|let her|tell (?:your|everyone|all|you|the)|put (?:it|"
    r"a note|the|one)|thank|think|know|believe|hear from|"
    r"take (?:up|long|more|an hour)|start\b|begin\b|make (?:it|that)|give (?:it|me|you)|have (?:a moment|time|"
    r"you|supper)|sorry|"
    r"wait\b(?! for)|leave whenever|ask\b(?! \w+ about)|not\b|get (?:hurt|away|the whole)|no\b|go (?:straight|"
    r"back|to bed|home)|hand\b$|if\b|you\b|we\b|i\b|"
    r"dead|sit at home|lots|plenty|nothing|nobody|no\b|two\b|three\b|still|enough|room|one\b|only|always|"
    r"anything|someone|somebody|such|so\b|like\b|"
    r"half|quarter|at\b|on\b|in\b|from\b|by\b|until\b|till\b|after\b|before\b)",
    re.IGNORECASE,
)
_CUT = re.compile(
    r"[.!?;\n(]|\s[-–—]\s|,(?! (?:and (?:then|maybe)|then)\b)|\b(?:tomm?orr?ow|today|tonight|this (?:morning|"
    r"afternoon|evening)|which|because|so that|so you|if (?:you|it|that|the|I)|"
    r"with (?:me|us|you)\b|for me\b|for us\b|and (?:i|we|you|he|she|it|nobody|everyone|anyone|everybody)(?:'|"
    r"\b)|but|as (?:i|we|you|it|the)\b|since|while|when|where|before|after|until|till|by (?=noon|one|two|"
    r"three|four|five|six|seven|eight|nine|ten|\d)|"
    r"around (?=noon|one|two|three|four|five|six|seven|eight|nine|ten|eleven|\d)|together|just you|is on\b|"
    r"for people|using|would you|please|instead|at once|who|whom|though|whenever|or (?=mine|yours|whatever)|"
    r", would|as well)(?!\w)",
    re.IGNORECASE,
)
_HEAD = re.compile(
    r"^(?:(?:an?|the|my|our|some|to|for|of|about|like|is|are|join|come|attend|help(?= me| with)|with|be|do|me|"
    r"us|little|small|short|quick|bit of|sort of|kind of|just|please|then|maybe|perhaps|again|also|going to|"
    r"we have|i|you|"
    r"another|this|that|and|it's|so|well|um|er|oh|really|possibly|actually|having|proper|tiny|nice|humble|"
    r"great|big|lovely|today's|tonight's|tomorrow's|\d\d?-minute|one-hour)\b,?\s*)+",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"(?:[\s,;:.!?'\"(–-]|\b(?:at|on|in|from|around|about|by|to|the|a|an|please|and|then|for|with|it'?s|is|"
    r"are|this|that|me|you|or|of|up at|over at|here|there|again|some time|sometime|"
    r"together|starting|say|so|if|as|down at|well|takes place|happens|going|my|your|will|be|i'm|from about|"
    r"we'd|one day|at last|on tomorrow))+$",
    re.IGNORECASE,
)
_PURPOSE = r"what(?:'s| is| would| will)? (?:that |it |this |all )?(?:be )?for|what for|for what|to do what"
_WHAT_FOR = (
    rf"{_PURPOSE}|what(?:'s| is| would| will)? (?:that |it |this |all )?(?:be )?(?:about|it|that|this|on)|"
    r"what (?:do|are|would|will) (?:you|we|i)(?: even)?"
    r" (?:want|doing|do|play|need|propose|have|mean)|what's (?:up|cooking|the|happening)|what are (?:you|we)|"
    r"what on earth|what kind|what sort|doing what|like what|then what|what first"
)
_DETAILS = (
    r"when|where|who|who's|how long|how late|how many|what time|which|until when|do i (?:have|need)|"
    r"will (?:there|i|it)"
    r"|is there|can i|may i|could it|could we|would it|shall i|didn't you|isn't (?:it|that)|is it|all day|"
    r"the whole day"
    r"|does one|is something|would i|what do i|how far|how heavy|how much|is that"
)
_OFF = (
    r"(?:forget|take back|cancel|cancelled|move|moved|shift|postpone|transfer|transferred|call off|called off|"
    r"about|invitation to|bother|don't|needn't|no need to|be at|nobody come [\w ]+ for|had|carry|"
    r"change of plan[s]?:?)"
    r"(?: about| to move| come to| with)? (?:(?:the|our|my|your|that|this) )?"
)
_EVENT_OFF = re.compile(
    r"(?:^|[.!?,;:]\s+|\b(?:the|our|my|say|sorry|that|about) )(?:the |our |my |that |"
    r"no )?(?P<what>(?:(?!the |my |our |it\b|that\b|this\b|i\b|we\b|you\b)[\w'-]+ ){1,4}?)(?:(?:today|"
    r"tomorrow|tonight|session)(?: \w+)? )?"
    r"(?:is|are|'s|has been|have been|can't|won't|will not|has had|had to|needs to|"
    r"must) (?:now )?(?:be )?(?:\w+ )?(?:off|cancel\w*|mov\w+|transferred|postponed|take place|happen|meet|"
    r"put)\b",
    re.IGNORECASE,
)
_EVENT_OFF_SHORT = re.compile(
    rf"{BEGINS}(?:the |our |my |no )?(?P<what>(?:[\w'-]+ ){{0,3}}?[\w-]+)(?:'s| is| are) off\b", re.IGNORECASE
)
_NO_EVENT = re.compile(
    rf"{BEGINS}(?:i'm sorry, |sorry, )?no (?P<what>[\w-]+(?: [\w-]+)??)(?= (?:today|tonight|tomorrow|this)|[.!])",
    re.IGNORECASE,
)
_IMPERATIVE = re.compile(
    rf"(?:{BEGINS}|[,:]\s|\b(?:and|then|please|first|come and|so|just)\s)(?={VERB}\b(?!'))", re.IGNORECASE
)
_GERUND = re.compile(rf"{BEGINS}(?:so, |well, )?(?=[A-Z]?\w+ing\b)")


class Phrase(NamedTuple):
    """An activity, and where it begins in the text."""

    words: str
    start: int


def activity(text: str, stops: Sequence[tuple[int, int]], situation: Situation, *, negated: bool) -> Phrase | None:
    """The activity of a text. `stops`: the parts of the text that name places, days and times, where it may end."""
    told = any(line.speaker == situation.speaker for line in situation.before)
    if negated or within(_MOVES, text):
        found = _called_off(text) or _first(text, stops, (_after(_OFF),), limit=5)
        if found is not None or negated:
            return found
    details = within(_DETAILS, situation.question)
    if within(_WHAT_FOR, situation.question) and not (details and not within(_PURPOSE, situation.question)):
        return _answer(text, stops, situation)
    if told or details or clock_times(situation.question):
        moves = (
            (_after(_REQUEST), _after(r"(?:could|might|may|can|shall) (?:i|we)"))
            if within(f"instead|{_MOVES}", text)
            else ()
        )
        return _first(text, stops, (*moves, _after(r"it's an?|it is an?|is it an?|it'll be an?")), limit=MAX_WORDS)
    finders = (
        _after(_REQUEST),
        _after("|".join(_EVENTS)),
        _after("|".join((*_ASKS, _OUGHT))),
        _imperatives,
        _after(_PRESENT),
    )
    return _leading(text, stops, situation) or _first(text, stops, finders) or _fragment(text, stops, situation)


def _after(pattern: str) -> Callable[[str], Iterator[int]]:
    compiled = re.compile(rf"(?:(?<!\w)|(?='))(?:{pattern})(?:(?<=\s)|(?!\w))\s*", re.IGNORECASE)
    return lambda text: (match.end() for match in compiled.finditer(text))


def _imperatives(text: str) -> Iterator[int]:
    return (match.end() for match in _IMPERATIVE.finditer(text))


def _called_off(text: str) -> Phrase | None:
    for pattern in (_EVENT_OFF_SHORT, _EVENT_OFF, _NO_EVENT):
        match = pattern.search(text)
        words = _trimmed(match["what"]) if match else ""
        if match and words and not is_empty(words):
            return Phrase(words, match.start("what"))
    return None


def _first(
    text: str,
    stops: Sequence[tuple[int, int]],
    finders: Sequence[Callable[[str], Iterator[int]]],
    limit: int = MAX_WORDS,
) -> Phrase | None:
    """The first phrase that one of the finders gives."""
    for finder in finders:
        for begin in finder(text):
            phrase = _phrase(text, begin, stops, limit)
            if phrase is not None:
                return phrase
    return None


def _phrase(text: str, begin: int, stops: Sequence[tuple[int, int]], limit: int) -> Phrase | None:
    end = min([start for start, _ in stops if start > begin] + [len(text)])
    cut = _CUT.search(text, begin, end)
    raw = text[begin : cut.start() if cut else end]
    if _NEVER.match(raw.strip()):
        return None
    words = _trimmed(raw, limit)
    return None if not words or is_empty(words) or _NEVER.match(words) else Phrase(words, begin)


def _trimmed(phrase: str, limit: int = MAX_WORDS) -> str:
    previous = None
    while phrase != previous:
        previous = phrase
        phrase = _HEAD.sub("", _TAIL.sub("", phrase.strip()))
    return " ".join(phrase.split()[:limit])


def _answer(text: str, stops: Sequence[tuple[int, int]], situation: Situation) -> Phrase | None:
    """The activity in an answer to "what for": after "it's", "to", "for" or an article, or the first words."""
    for match in re.finditer(
        r"(?:^|[.!?,;]\s|\b)(?:(?:it's|it is|it'd be|that's|is)(?: simply| just| only| basically|, um,|"
        r" all)*(?: about| for| to)?(?= )|(?<!\w)(?:to|for|about)(?= )|^an?(?= )|might|i'm going to|i want to|"
        r"you (?=fetch|bring|take|carry|put)|just(?= put))\s*",
        text,
        re.IGNORECASE,
    ):
        phrase = _phrase(text, match.end(), stops, MAX_WORDS)
        if phrase is not None:
            return phrase
    return _first(text, stops, (_imperatives,)) or _fragment(text, stops, situation)


def _fragment(text: str, stops: Sequence[tuple[int, int]], situation: Situation) -> Phrase | None:
    """A short group of words without a pronoun or a verb form, beside a time or a place: `Darts` in `Darts, nine`."""
    for match in re.finditer(r"[^.!?,;:]+", text):
        begin, end = match.span()
        end = min([start for start, _ in stops if begin <= start < end] + [end])
        raw = _without_names(text[begin:end].strip(), situation)
        words = _trimmed(raw, 6)
        beside = any(-_NEAR < start - end < _NEAR for start, _ in stops) or within(_PURPOSE, situation.question)
        if not beside or not words or is_empty(words) or len(raw.split()) > 6:
            continue
        if not _SENTENCE.search(raw) and not _CALL.match(raw):
            return Phrase(words, begin)
    return None


_NEAR = 12
"""Characters between a fragment and the time or the place that it goes with."""


def _leading(text: str, stops: Sequence[tuple[int, int]], situation: Situation) -> Phrase | None:
    """A fragment that opens the text, right before a time or a place."""
    match = re.match(r"[^.!?;:]+?(?=[.!?,;:])", text)
    if match is None:
        return None
    end = min([start for start, _ in stops if start < match.end()] + [match.end()])
    raw = _without_names(text[:end].strip(), situation)
    words = _trimmed(raw, 6)
    placed = any(begin - end < _NEAR for begin, _ in stops if begin >= end)
    if not placed or not words or is_empty(words) or len(raw.split()) > 5:
        return None
    definite = re.match(r"(?:the|that|this)\b", raw, re.IGNORECASE)
    return None if definite or _SENTENCE.search(raw) or _CALL.match(raw) else Phrase(words, 0)


def _without_names(raw: str, situation: Situation) -> str:
    """A group of words without the names of people; empty if nothing else is left."""
    names = "|".join({re.escape(part) for name in situation.places.homes for part in name.split()})
    return re.sub(rf"\b(?:{names})\b(?!')(?: and\b)?", "", raw, flags=re.IGNORECASE).strip() if names else raw


_SENTENCE = re.compile(
    r"\b(?:i|i'\w+|we|we'\w+|you|you'\w+|he|she|it|they|it's|that's|there's|is|are|was|were|has|have|had|will|"
    r"would|can|could|should|do|does|did|\w+n't|got|my|your|me|listen|look|sorry|who|what|when|where|how|why|"
    r"let's)\b|\w's (?:off|on|got|short)",
    re.IGNORECASE,
)
_CALL = re.compile(
    r"^(?:ha|not|nobody|no|at|in|on|by|with|because|while|till|until|if|when|as|only|before|after|hi|hey|"
    r"hello|hiya|morning|good|okay|ok|right|dear|darling|love|thanks|thank|please|help|quick|listen|oh|ooh|"
    r"excuse|my|mr|mrs|miss|captain|doctor|come|yes|no|um|er|well|so|everybody|everyone|all|sorry)\b",
    re.IGNORECASE,
)
