"""Detects negation. Ways of asking and idioms that contain a word of negation deny nothing."""

import functools
import re

from environments.lateral_thinking.dataset import Language

_AUXILIARY = (
    "(?:is|was|are|were|am|do|does|did|has|have|had|can|could|will|would|shall|should|may|might|must|need|dare)"
)
_CONTRACTED = "(?:ai|are|ca|could|dare|did|do|does|had|has|have|is|might|must|need|sha|should|was|were|wo|would)n['’]t"
_PRONOUN = "(?:he|she|it|they|we|you|i|there|this|that|these|those|one)"
_MATTER = "(?:it|that|this|the (?:truth|answer|case|reason|cause|point|fact|explanation|secret))"
_NAMED = r"(?:(?:the|an?|his|her|its|their|my|our|your)\s+\w+|(?-i:[A-Z])\w+)"
_SUBJECT = rf"(?:{_PRONOUN}\b|{_NAMED}|(?:any|some|all|both|every|each)\w*\b)"
_START = r"(?:^|(?<=[.?!:;…\n]))\W*(?:(?:so|then|but|and|well|ok|okay|hmm|now|or|maybe|perhaps|also|surely)\b\W+)*"
_PAUSE = "[,;.?!:–—-]"
_FACT = "(?:true|so|the case|correct|right|possible|likely|obvious|clear|certain|a fact)"
_CLAIM = rf"(?:(?:true|correct|right|the case|a fact|that|because|mean|follow|seem|said)\b|{_FACT}(?:\s+that\b|\W*$))"
_TO_SAY = "(?:that|to (?:say|think|assume|believe|suppose|conclude)(?: that)?)"


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


_IDLE_ENGLISH = _any_of(
    # A choice of two answers: yes or no, whether or not, or didn't he, or was it not.
    r"\b(?:yes|true|right|correct)\b\W{0,2}(?:or|/|,)\W{0,2}(?:is (?:it|that) |a )?"
    r"(?:no|not|false|wrong)\b(?: true| so| right)?",
    rf"\bor\s+{_CONTRACTED}(?:\s+{_PRONOUN}\b)?",
    rf"\bor\s+{_AUXILIARY}\s+(?:{_PRONOUN}|{_NAMED})\s+not\b",
    rf"\bor\s+{_PRONOUN}\s+(?:{_CONTRACTED}|{_AUXILIARY}\s+not)\b",
    r"\bor\s+(?:is\s+not|not|no(?=\W*$))",
    # A tag at the end: isn't it, did he not, isn't that so, no.
    rf"(?<=\w)\s+{_CONTRACTED}\s+(?:he|she|it|they|we)\W*$",
    rf"{_PAUSE}\s*{_CONTRACTED}\s+(?:{_PRONOUN}|{_NAMED})(?:\s+(?:all|{_FACT}))?\W*$",
    rf"{_PAUSE}\s*{_AUXILIARY}\s+{_PRONOUN}\s+not(?:\s+{_FACT})?(?:\W*$|(?=\s*[,;]))",
    rf"{_PAUSE}\s*(?:no|not|not so|not true|not right|not correct)\W*$",
    # A question that expects a yes: isn't it true, wasn't he, could it not be.
    rf"(?:{_START}|,\s*){_CONTRACTED}(?=\s+{_SUBJECT})",
    rf"\b{_AUXILIARY}\s+{_MATTER}\s+not\s+(?:be\s+|have\s+been\s+)?(?={_CLAIM})",
    rf"\b{_AUXILIARY}\s+(?:you|we)\s+not(?=\s+(?:also\s+)?(?:agree|think|say|tell|admit|know|believe|find|suppose)\b)",
    rf"\b{_AUXILIARY}\s+there\s+not(?=\s+(?:a|any)\s+(?:chance|possibility|way)\b)",
    # The asker's remarks on the question.
    r"^\W*I (?:do not|don['’]t) know(?=\W+(?:if|whether|but)\b)",
    r"^\W*(?:I am |I['’]m )?not (?:quite |really )?(?:sure|certain)(?=\W+(?:if|whether|but)\b)",
    r"\bif I(?: am|['’]m) not (?:mistaken|wrong)\b|\bam I not (?:right|correct)\b",
    r"^(?:ok|okay|so|well|hmm|\W)*\bno\b(?=[,.;:!])",
    # Idioms.
    r"(?<!had )(?<!have )(?<!has )\b(?:no|without(?: an?y?)?) (?:doubt|question (?:that|about|but)|denying)\b",
    r"\bwithout (?:question|fail)\b|\b(?:cannot|can['’]t|can not) (?:be denied|deny)\b",
    r"\bnot (?:(?:just|merely|simply)\b(?=.*\bbut\b)|(?:only|least|long|to mention)\b)",
    r"\bno (?:matter|wonder|sooner|less|more than)\b",
    r"\b(?:none|no|nothing|nobody|no one) (?:else )?(?:other than|but|except)\b|\bnothing (?:else|more) than\b",
    r"\b(?:cannot|can['’]t|can not|could not|couldn['’]t) help (?:but|\w+ing)\b|\bnever ?mind\b",
    r"\b(?:nobody|no one) (?:doubts?|can doubt|can deny|denies|would deny)\b|^\W*not to be\b",
    rf"\b(?:not|{_CONTRACTED})\s+(?:be\s+)?(?:wrong|incorrect|false|untrue|mistaken|impossible|unlikely)(?=\s+{_TO_SAY})",
)
_DENYING_ENGLISH = _any_of(
    rf"\bit(?: is|['’]s| was) not {_FACT} {_TO_SAY}\b",
    rf"\bit (?:isn|wasn)['’]t {_FACT} {_TO_SAY}\b",
    rf"\b(?:it|that)(?: is|['’]s| was| be)? (?:false|untrue|incorrect|a lie) {_TO_SAY}\b",
    r"\b(?:am I|would I be|would it be) (?:wrong|mistaken) (?:in (?:saying|thinking)|to (?:say|think|assume))\b",
)
"""A denial of what follows it: it is not true that, is it false that."""
_NOT_ENGLISH = re.compile(
    r"\b(?:not|no|never|nobody|nothing|none|nowhere|neither|nor|without|cannot|unable)\b|n['’]t\b", re.IGNORECASE
)

_HAN = r"[\u4e00-\u9fff]"
_MARKS = r"，,、/\s“”\"‘’「」『』"
_END = r"[\s”’」』）)？?。．.！!~～…]*$"
_ASKER_CHINESE = _any_of(
    rf"^\W*我?(?:还|也)?不(?:太|大)?(?:知道?|确定|清楚|晓得)(?={_HAN}{{0,8}}(?:是不是|是否|有没有|会不会|能不能))",
    r"(?:如果|要是|若|假如)?我?(?:没有?|不)[猜记弄理说看]解?错的话",
)
"""The asker's remarks on the question."""
_EITHER_CHINESE = re.compile(
    rf"(?<!一)({_HAN}{{1,3}})[了过着]?[{_MARKS}]*(?:还是|或者?|或是|抑或|与|和|也)?[{_MARKS}]*[不没]\1", re.IGNORECASE
)
"""A choice between a verb and its denial: 是不是, 愿不愿意, 死了没死, 会还是不会."""
_EXPECTING_CHINESE = _any_of(
    "难道(?:说|就|还|也)*不(?:就|正|也|都|会|可能|应该|应|该)?是",
    "莫非不(?:就|正)?是|莫不(?:就)?是|岂不(?:就|正)?是|何尝不是|不(?:就|正)是",
    "该不会(?:就)?是?|不会(?:就)?是(?=[^。？?]*吧)|(?:^|(?<=[，,。：:]))不会(?=[^。？?]*吧)|不会(?=[^，。？?]*了吧)",
)
"""A question that expects a yes: 难道不是, 不就是."""
_IDLE_CHINESE = _any_of(
    # A tag at the end: 不是吗, 不对吗, 没错吧, 了没有, 还是不会.
    rf"(?<=.)(?:难道)?不是(?:这样|如此|真的)?的?(?:吗|么|嘛|吧){_END}",
    rf"[，,。；;、！!？?\s](?:难道|这|那|我)*(?:不[是对会]|没[说猜记]?错|没有)(?:这样|如此|真的)?的?[吗么嘛吧呢啊呀]?{_END}",
    rf"(?<=.)(?<![都也还并全本毫])(?<!从来)(?:不是|没有|没|不)[呢啊呀]?{_END}",
    rf"还是(?:没有?|不)[是会有能对]?(?:这样|如此)?[呢啊呀]?{_END}",
    # Idioms.
    "毫无疑[问义]|无疑|没错(?=[，,吧])|没问题|不用说|说不定|不得不|不能不|不可不|不会不|不无|无非|莫非|不得已|不可思议|好不容易",
    "忍不住|禁不住|免不了|少不了|不禁|不由得?|不知不觉|不约而同|不小心|不幸|不料|不少|不错|不妨|不惜|不愧|不外乎",
    "不[过久断仅同但只光止单管论]|差不多|对不起|了不起|恨不得|巴不得|怪不得|有无|无意[中间]|无[论比数辜聊]|未[来婚]|非[常洲]|除非",
    rf"没有(?:任何)?(?:疑问|问题|疑义)|[不无]可否认|不容否认|[不毋无][容庸可]置疑|毫不怀疑|不言而喻|不出所料|[或、/][{_MARKS}]*无关",
    "难不成|没准|保不[准齐]|说不准|不如说|不乏|不瞒",
    "没收|没落|[淹沉埋出覆吞湮隐]没|[特分个告离区差识性级鉴辨派类永诀]别|别[人墅的处离致]",
)
_NOT_CHINESE = re.compile("[不没未无非别]|(?<![能可是])否[认定决]")


def negated(text: str, language: Language) -> bool:
    """Whether a text is negated. In English a denial of a denial is none."""
    text = asserted(text, language)
    if language == "zh":
        return _NOT_CHINESE.search(text) is not None
    rest, denials = _DENYING_ENGLISH.subn(" ", text)
    return (_NOT_ENGLISH.search(rest) is not None) != (denials % 2 == 1)


@functools.lru_cache(maxsize=1 << 10)
def asserted(text: str, language: Language) -> str:
    """The text without the ways of asking and idioms that contain a word of negation but deny nothing."""
    if language == "en":
        return _IDLE_ENGLISH.sub(" ", text)
    text = _EITHER_CHINESE.sub(r"\1", _ASKER_CHINESE.sub("", text))
    return _IDLE_CHINESE.sub("", _EXPECTING_CHINESE.sub("是", text))
