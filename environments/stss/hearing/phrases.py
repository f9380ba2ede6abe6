"""Patterns of English in which people name an activity."""

import re

from environments.stss.hearing.words import BEGINS, VERB

DETERMINER = r"(?:an?|the|my|our|this|that|some|another|one of (?:my|our|those)|a few|a bit of|a sort of)"
HOLDS = (
    r"(?:hold|host|throw|organi[sz]e|give|arrange|run|plan|have|do|start|open|call|offer|"
    r"put(?:ting)? together|try(?:ing)? out|"
    r"holding|hosting|throwing|organi[sz]ing|giving|arranging|running|planning|having|doing|starting|opening|"
    r"calling|offering|streaming|"
    r"set(?:ting)? up|get(?:ting)? (?:a few [\w ]+?|two or three [\w ]+?|people |some people )together for)"
)
EVENTS = (
    rf"{HOLDS} {DETERMINER} ",
    r"(?:have|has|'ve|'s) (?:arranged|organi[sz]ed|planned|set up|got) an? ",
    r"(?:have|has) an? (?=on-?line|virtual|video)",
    r"(?:talked|roped|dragged) (?:me|us) into",
    r"(?:into|to|at) an? (?=zoom|video|virtual|on-?line)",
    r"there(?:'s| is|'ll be| will be| are)(?: going to be)? (?:an? |some |to be an? )?",
    r"(?:invit(?:e|es|ing)|welcome) (?:you|everyone|everybody|people|them|us|me)(?: all| both)? (?:to|for)",
    r"invited to|(?:what do you say to|anyone for|anybody for|who's for|save the date for|join me in|"
    r"don't miss)(?= \w)",
    r"how (?:does|would|do)(?= [\w' ]{3,40} sound)",
    r"(?:i've|i have|we've|we have) (?:booked|arranged|organi[sz]ed|planned|called|set up) (?=an? |the |our )",
    r"(?:invited|asked) (?:me|us|you) (?:to|for)",
    r"(?:invitation|welcome) to",
    r"\bjoin(?:ing)? (?:[\w']+ and me |[\w']+ and i |me |us |them |in )?(?:for|in|at|on|to)",
    rf"\bjoin(?:ing)? (?={DETERMINER} |our )",
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
ASKS = (
    r"(?:wonder(?:ed|ing)?|hoping|hoped|hope|thinking|thought|suppose|any chance|possible)(?: if| whether| that)?"
    r" (?:you|we|i|you and i)(?:'d| would| could| might| can| should| may)?(?: like| care| be willing|"
    r" be able| mind)?"
    r"(?: to)?(?= [a-z])",
    r"(?:use|do with|glad of|grateful for|need|want|lend me|give me|have) (?:a hand|a bit of help|some help|"
    r"your help|help|somebody|someone)"
    r"(?: with| to| for)?(?= [a-z])",
    r"(?:keep me company|sit with me) (?:while|when) (?:i|we)",
    r"you couldn't|mind (?=\w+ing\b)|of us are (?=\w+ing\b)",
    r"let me(?= \w+ (?:the|my|your|a)\b)",
    r"do you (?:want|wish|fancy|think you could|have time)(?: to)?",
    r"(?:want|wanna|like|care|fancy|love) (?:to)",
    r"\bwanna",
    r"(?:could|can|shall|might|may) (?:we|i)(?:,? (?:please|perhaps|maybe|ask you to|trouble you to|"
    r"persuade you to))*",
    r"(?:i|we)(?:'d| would| should)? (?:really |dearly |only |just |also )?(?:like|love|want|need|hoped?|"
    r"was hoping|were hoping|plan|intend|must|have|am going|'m going|am trying|'re going)"
    r"(?: (?:you|someone|somebody|people|you and me|help)(?: else)?)?(?: to|(?= might|"
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
OUGHT = r"(?:i|we|you) (?:simply |really )?(?:must|should|could|ought to|need to|have to|want to)"
REQUEST = (
    r"(?:would|could|can|will|might|may) you(?:,? (?:please|kindly|perhaps|possibly|maybe|also|just|like|then|"
    r"still)\b,?)*"
    r"(?: (?:like|love|care|want|wish|fancy|be willing|be able|be so (?:kind|good|nice) as|be inclined|mind|"
    r"be kind enough|manage)(?: to)?)?"
    r"(?= [a-z])"
)
PRESENT = rf"(?:i|we|of us) (?={VERB}\b)"
MOVES = "moved?|shift(?:ed)?|transferred|can't (?:meet|be held)|change of (?:plans?|address)|postponed"
NEVER = re.compile(
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
CUT = re.compile(
    r"[.!?;\n(]|\s[-–—]\s|,(?! (?:and (?:then|maybe)|then)\b)|\b(?:tomm?orr?ow|today|tonight|this (?:morning|"
    r"afternoon|evening)|which|because|so that|so you|if (?:you|it|that|the|I)|"
    r"with (?:me|us|you)\b|for me\b|for us\b|and (?:i|we|you|he|she|it|nobody|everyone|anyone|everybody)(?:'|"
    r"\b)|but|as (?:i|we|you|it|the)\b|since|while|when|where|before|after|until|till|by (?=noon|one|two|"
    r"three|four|five|six|seven|eight|nine|ten|\d)|"
    r"around (?=noon|one|two|three|four|five|six|seven|eight|nine|ten|eleven|\d)|together|just you|is on\b|"
    r"for people|using|would you|please|instead|at once|starts?|begins?|takes place|sound|sounds|is at|is on|"
    r"who|whom|though|whenever|or (?=mine|yours|whatever)|"
    r", would|as well)(?!\w)",
    re.IGNORECASE,
)
HEAD = re.compile(
    r"^(?:(?:an?|the|my|our|some|to|for|of|about|like|is|are|join|come|attend|help(?= me| with)|with|be|do|me|"
    r"us|little|small|short|quick|bit of|sort of|kind of|just|please|then|maybe|perhaps|again|also|going to|"
    r"we have|i|you|"
    r"another|this|that|and|it's|so|well|um|er|oh|really|possibly|actually|having|proper|tiny|nice|humble|"
    r"great|big|lovely|today's|tonight's|tomorrow's|\d\d?-minute|one-hour)\b,?\s*)+",
    re.IGNORECASE,
)
TAIL = re.compile(
    r"(?:[\s,;:.!?'\"(–-]|\b(?:at|on|in|from|around|about|by|to|the|a|an|please|and|then|for|with|it'?s|is|"
    r"are|this|that|me|you|or|of|up at|over at|here|there|again|some time|sometime|"
    r"together|starting|say|so|if|as|down at|well|takes place|happens|going|my|your|will|be|i'm|from about|"
    r"we'd|one day|at last|on tomorrow))+$",
    re.IGNORECASE,
)
PURPOSE = r"what(?:'s| is| would| will)? (?:that |it |this |all )?(?:be )?for|what for|for what|to do what"
WHAT_FOR = (
    rf"{PURPOSE}|what(?:'s| is| would| will)? (?:that |it |this |all )?(?:be )?(?:about|it|that|this|on)|"
    r"what (?:do|are|would|will) (?:you|we|i)(?: even)?"
    r" (?:want|doing|do|play|need|propose|have|mean)|what's (?:up|cooking|the|happening)|what are (?:you|we)|"
    r"what on earth|what kind|what sort|doing what|like what|then what|what first"
)
DETAILS = (
    r"when|where|who|who's|how long|how late|how many|what time|which|until when|do i (?:have|need)|"
    r"will (?:there|i|it)"
    r"|is there|can i|may i|could it|could we|would it|shall i|didn't you|isn't (?:it|that)|is it|all day|"
    r"the whole day"
    r"|does one|is something|would i|what do i|how far|how heavy|how much|is that"
)
OFF = (
    r"(?:forget|take back|cancel|cancelled|move|moved|shift|postpone|transfer|transferred|call off|called off|"
    r"about|invitation to|bother|don't|needn't|no need to|be at|nobody come [\w ]+ for|had|carry|"
    r"change of plan[s]?:?)"
    r"(?: about| to move| come to| with)? (?:(?:the|our|my|your|that|this) )?"
)
EVENT_OFF = re.compile(
    r"(?:^|[.!?,;:]\s+|\b(?:the|our|my|say|sorry|that|about) )(?:the |our |my |that |"
    r"no )?(?P<what>(?:(?!the |my |our |it\b|that\b|this\b|i\b|we\b|you\b)[\w'-]+ ){1,4}?)(?:(?:today|"
    r"tomorrow|tonight|session)(?: \w+)? )?"
    r"(?:is|are|'s|has been|have been|can't|won't|will not|has had|had to|needs to|"
    r"must) (?:now )?(?:be )?(?:\w+ )?(?:off|cancel\w*|mov\w+|transferred|postponed|take place|happen|meet|"
    r"put)\b",
    re.IGNORECASE,
)
EVENT_OFF_SHORT = re.compile(
    rf"{BEGINS}(?:the |our |my |no )?(?P<what>(?:[\w'-]+ ){{0,3}}?[\w-]+)(?:'s| is| are) off\b", re.IGNORECASE
)
NO_EVENT = re.compile(
    rf"{BEGINS}(?:i'm sorry, |sorry, )?no (?P<what>[\w-]+(?: [\w-]+)??)(?= (?:today|tonight|tomorrow|this)|[.!])",
    re.IGNORECASE,
)
TAKES_PLACE = re.compile(
    rf"(?:{BEGINS}(?:the |our |my )?|\b(?:the|our|my) )(?P<what>(?!it\b|that\b|this\b|he\b|she\b|there\b|"
    r"tomorrow\b|what\b|which\b)"
    r"(?:[\w'-]+ ){0,3}?[\w-]+)(?: is(?: on)?|'s on| starts?| begins?| takes place| kicks off| opens|"
    r" will be)(?= (?:tomorrow|today|tonight|at|on|this|from)\b)",
    re.IGNORECASE,
)
IMPERATIVE = re.compile(
    rf"(?:{BEGINS}|[,:]\s|\b(?:and|then|please|first|come and|so|just)\s)(?={VERB}\b(?!'))", re.IGNORECASE
)
GERUND = re.compile(rf"{BEGINS}(?:so, |well, )?(?=[A-Z]?\w+ing\b)")


SENTENCE = re.compile(
    r"\b(?:i|i'\w+|we|we'\w+|you|you'\w+|he|she|it|they|it's|that's|there's|is|are|was|were|has|have|had|will|"
    r"would|can|could|should|do|does|did|\w+n't|got|my|your|me|listen|look|sorry|who|what|when|where|how|why|"
    r"let's)\b|\w's (?:off|on|got|short)",
    re.IGNORECASE,
)
CALL = re.compile(
    r"^(?:ha|not|nobody|no|at|in|on|by|with|because|while|till|until|if|when|as|only|before|after|hi|hey|"
    r"hello|hiya|morning|good|okay|ok|right|dear|darling|love|thanks|thank|please|help|quick|listen|oh|ooh|"
    r"excuse|my|mr|mrs|miss|captain|doctor|come|yes|no|um|er|well|so|everybody|everyone|all|sorry)\b",
    re.IGNORECASE,
)

NEAR = 12
"""Characters between a fragment and the time or the place that it goes with."""
