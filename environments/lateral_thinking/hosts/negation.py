"""Counts denials: words that negate, or call something false.

Ways of asking and idioms that contain such a word deny nothing.
"""

import functools
import re
from collections.abc import Set
from itertools import filterfalse
from typing import NamedTuple

from environments.lateral_thinking.dataset import Language
from environments.lateral_thinking.text import words

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
_FACT = (
    "(?:true|so|the case|correct|right|possible|plausible|likely|probable|obvious|evident|apparent|clear|certain|sure"
    "|known|reasonable|a fact)"
)
_CLAIM = rf"(?:(?:true|correct|right|the case|a fact|that|because|mean|follow|seem|said)\b|{_FACT}(?:\s+that\b|\W*$))"
_WRONG = "(?:false|wrong|incorrect|untrue|mistaken|lie)"
_TO_SAY = "(?:that|to (?:say|think|assume|believe|suppose|conclude)(?: that)?)"


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


_IDLE_ENGLISH = _any_of(
    # A choice of two answers: yes or no, whether or not, or didn't he, or was it not.
    r"\b(?:yes|true|right|correct|real|fact|confirm)\b\W{0,2}(?:or|/|,)\W{0,2}(?:is (?:it|that|this) |am I )?(?:an? )?"
    rf"(?:no|not|deny|fiction|fake|{_WRONG})\b(?: true| so| right)?",
    r"\bor\s+(?:is (?:it|that|this)|am I|(?:have|did) I (?:got|get) (?:it|that|this))"
    rf"\s+(?:an? |on the )?{_WRONG}(?: track)?\W*$",
    r"\bor\s+(?:do|did|have) I mis\w+\W*$|\bor\s+(?:is it )?something else\W*$",
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
    rf"\b{_AUXILIARY}\s+{_MATTER}\s+not\s+(?:be\s+|have\s+been\s+)?(?={_CLAIM})(?!\w+ at all\b)",
    rf"\b{_AUXILIARY}\s+{_MATTER}\s+not\s+(?=(?:be\s+)?{_WRONG}\b)",
    rf"\b{_AUXILIARY}\s+(?:you|we|I)\s+not"
    r"(?=\s+(?:\w+ly\s+|also\s+)?(?:agree|assume|conclude|think|say|tell|admit|know|believe|find|suppose)\b)",
    rf"\b{_AUXILIARY}\s+there\s+not(?=\s+(?:a|any)\s+(?:chance|possibility|way)\b)",
    # The asker's remarks on the question.
    r"^\W*I (?:do not|don['’]t) know(?=\W+(?:if|whether|but)\b)",
    r"^\W*(?:I am |I['’]m )?not (?:quite |really )?(?:sure|certain)(?=\W+(?:if|whether|but)\b)",
    r"\b(?:if|unless) I(?: am|['’]m)(?: not)? (?:mistaken|wrong)\b|\bam I not (?:right|correct)\b",
    r"\bI (?:may|might|could) be (?:mistaken|wrong)(?=\W+but\b)",
    r"^(?:ok|okay|so|well|hmm|\W)*\bno\b(?=[,.;:!])",
    # Idioms.
    r"(?<!had )(?<!have )(?<!has )\b(?:no|without(?: an?y?)?|beyond(?: an?y?)?)"
    r" (?:doubts?|question(?:(?= (?:that|about|but)\b)|(?<=beyond question))|denying|mistake)\b",
    r"\bI (?:(?:do not|don['’]t) doubt|have no doubts?)\b",
    r"\bwithout (?:question|fail)\b|\b(?:cannot|can['’]t|can not) (?:be denied|deny)\b",
    r"\bnot (?:(?:just|merely|simply)\b(?=.*\bbut\b)|(?:least|long|to mention)\b)",
    rf"\bnot only\b(?=.*(?:\b(?:but|also)\b|[,;]\s*{_PRONOUN}\b))",
    r"\bno (?:matter|wonder|sooner|less|more than)\b",
    r"\b(?:none|no|nothing|nobody|no one) (?:else )?(?:other than|but|except)\b",
    r"\bnothing (?:else|more) than\b|\bno offen[cs]e\b",
    r"\b(?:cannot|can['’]t|can not|could not|couldn['’]t) help (?:but|\w+ing)\b|\bnever ?mind\b",
    r"\b(?:nobody|no one) (?:doubts?|can doubt|can deny|denies|would deny)\b|^\W*not to be\b",
    rf"\b(?:not|{_CONTRACTED})\s+(?:be\s+)?(?:{_WRONG}|impossible|unlikely)(?=\s+{_TO_SAY})",
)
_NOT_ENGLISH = re.compile(
    r"\b(?:not|non?|nope|nah|nay|never|nobody|nothing|none|nowhere|neither|nor|without|cannot|unable)\b"
    r"|\b(?:hardly|scarcely|barely)\b|n['’]t\b",
    re.IGNORECASE,
)
_FALSE_ENGLISH = _any_of(
    rf"\b(?:{_WRONG}|lies|falsely|wrongly|incorrectly|inaccurate|invalid|baseless|unfounded|groundless|unreal)\b",
    r"\b(?:mist(?:ak|ook)|misunder|misconce|misbelie|misread|misrepresent|misstat|mislead|ill-founded)",
    r"\b(?:evidence against|cover story|less than (?:true|right|correct)|errors?\b)",
    r"\b(?:erron|fallac|myth|fiction|fictit|fake|bogus)",
    r"\b(?:hoax|rumou?r|nonsense|inventions?\b|invented\b|fabricat|made up\b|illusion|pretend|pretence|red herring)",
    r"\b(?:debunk|preclud|prevent|negati|invalidat|inconsisten|incompatib|hallucinat|fantas(?:y|ies)\b|superstition)",
    r"\b(?:absurd|ridicul|preposter|far-fetched|exaggerat|imagin(?:ed?|ary|ation)\b|dream|joke|trick|liars?\b|lied\b)",
    r"\b(?:lying (?:when|that|about|if)|mak(?:e|es|ing) up|bad (?:guess|idea|one)|something else)\b",
    r"\b(?:cross(?:ed|ing)? (?:off|out)\b|too \w+ to say\b|dismiss|discount|discard|disregard|ceas(?:e[sd]?|ing)\b)",
    r"\b(?:impossib|improbab|implausib|unlikel|unpro|unsup|untenab|unjust|unthinkab|unbeliev|questionable|dubious)",
    r"\bdoubt(?:s|ed|ful|ing)?\b",
    r"\b(?:den(?:y|ies|ied|ial)|disagree|disbelie|dispute|disprove|refut|reject|contradict|exclud|refus|avoid)",
    r"\b(?:rul(?:e|es|ed|ing) out|out of the question|(?:off|wide of) the mark|far from|anything but|except)\b",
    r"\b(?:opposite|contrary|reverse|converse|inverse|other way a?round|instead|rather than|other than|else than)\b",
    r"\b(?:fail(?:s|ed|ing)? to|lack(?:s|ed|ing)?|unlike|untruth\w*|falsehoods?|(?:in|by) no)\b",
    r"\b(?:drop|stop|forget|abandon)(?:s|p?ed|p?ing)? (?:the|my|this|that|thinking|believing|assuming)\b",
)
_CALLED_ENGLISH = re.compile(
    r"\b(?:(?:is|was|be|been|has|does|would|could|might|can)\s+it|it(?:['’]s|\s+is|\s+was))\s+"
    r"((?:(?!that\b)[\w'’-]+\s+){1,5}?)(?:that|to say)\b",
    re.IGNORECASE,
)
"""What a statement is called: is it ... that."""
_AFFIRMING_TEXT = """
    acceptable accurate agreed apparent appear argue assume assumed assumption authentic belief believable believe
    believed case cause central certain clear come common conceivable conclude conclusion confirmed consistent
    convincing correct credible crucial decisive deduce demonstrated due enough essential established evident
    expected explanation fact fair follow genuine given good guess happen have help helpful hold idea implied imply
    important impression indicated indisputable inevitable infer interesting justified key know knowledge known
    legitimate likely logical matter mean meant mentioned natural necessary normal ok okay opinion plausible point
    possible presume presumed probable proof proved proven realistic reason reasonable relevant revealed right safe
    said say secret seem sensible shown significant sound stated story suggested suppose supposed sure tell think
    thinkable told true truth turn undeniable understand understanding understood undoubted unquestionable valid
    view vital warranted worth written"""
_AFFIRMING_ENGLISH = frozenset(_AFFIRMING_TEXT.split())
"""Words that call a statement true, possible or important."""
_NEUTRAL_ENGLISH = re.compile(
    r"(?!un|in|im)\w+ly|(?:un|in)(?:doubted|deniab|questionab|disputab|evitab)ly|indeed|perhaps|maybe|quite|still|always|often|already|not|be|been"
)
_OPPOSED = re.compile("(?:un|in|im|il|ir|dis|non)(?=.{4})")
"""What makes the opposite of a word."""

_HAN = r"[\u4e00-\u9fff]"
_MARKS = r"，,、/\s“”\"‘’「」『』"
_END = r"[\s”’」』）)？?。．.！!~～…]*$"
_ASKER_CHINESE = _any_of(
    rf"^\W*我?(?:还|也)?不(?:太|大)?(?:知道?|确定|清楚|晓得)(?={_HAN}{{0,8}}(?:是不是|是否|有没有|会不会|能不能))",
    "(?:如果|要是|若|假如)?我?(?:没有?|不)[猜记弄理说看]?解?错(?:的话|(?=[，,：:]))",
    "有没有[说猜记弄搞想]?错[吗呢吧]?",
    rf"还是我?[说猜记弄搞想看]错了[吗呢]?{_END}",
    # A choice of two answers.
    "真假|真的假的|是真是假|真的?(?:还是|或者?|或是|抑或|与|和|、|/)是?假的?",
    "对错|是对是错|对的?(?:还是|或者?|或是|抑或|与|和|、|/)是?错的?|正确(?:还是|或者?|或是|与|和|、|/)错误",
)
"""The asker's remarks on the question, and choices of two answers."""
_EITHER_CHINESE = re.compile(
    rf"(?<!一)({_HAN}{{1,3}})[了过着]?[{_MARKS}]*(?:还是|或者?|或是|抑或|与|和|也)?[{_MARKS}]*[不没](?!发生)\1",
    re.IGNORECASE,
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
    rf"(?<=.)(?<![并绝也都])(?:难道)?不是(?:这样|如此|真的)?的?(?:吗|么|嘛|吧){_END}",
    rf"[，,。；;、！!？?\s](?:难道|这|那|我)*(?:不[是对会]|没有?[说猜记弄搞想看]?错|没有)(?:这样|如此|真的)?的?[吗么嘛吧呢啊呀]?{_END}",
    rf"(?<=.)(?<![都也还并全本毫])(?<!从来)(?:不是|没有|没|不)[呢啊呀]?{_END}",
    rf"还是(?:没有?|不)[是会有能对]?(?:这样|如此)?[呢啊呀]?{_END}",
    # Idioms.
    "毫无疑[问义]|无疑|没有?错(?=[，,吧])|不用说|说不定|不得不|不能不|不可不|不会不|不无|无非|莫非|不得已|不可思议|好不容易",
    "忍不住|禁不住|免不了|少不了|不禁|不由得?|不知不觉|不约而同|不小心|不幸|不料|不少|不错|不妨|不惜|不愧|不外乎",
    "不[过久断仅但只光止单管论]|差不多|对不起|了不起|恨不得|巴不得|怪不得|有无|无意[中间]|无[论比数辜聊]|未[来婚]|非[常洲]|除非",
    "没毛病|没(?:有|什么|啥|任何)*(?:疑问|问题|疑义)",
    rf"(?:[不无]可|不容|不能|无法)否认|[不毋无][容庸可用必须](?:置疑|怀疑)|毫不怀疑|不言而喻|不出(?:所料|意外)|[或、/][{_MARKS}]*无关",
    "难不成|没准|保不[准齐]|说不准|不如说|不乏|不瞒|不好意思",
    "没收|没落|[淹沉埋出覆吞湮隐]没|[特分个告离区差识性级鉴辨派类永诀]别|别[人墅的处离致]",
)
_NOT_CHINESE = re.compile(
    "[不没未无非别勿莫毋弗甭岂]|(?<![能可是与或])否(?:[认定决命掉]|(?=[。.！!？?]?$))|答案是否定|(?:很|极|甚|鲜)少"
    "|哪(?:里|儿|有|会|能|是|来)|怎么?(?:可能|会|能)|谁(?:说|会)|何[曾来以]|鬼才|才怪"
)
_FALSE_CHINESE = re.compile(
    "假(?![如若设期日牙发])|错(?!过)|谎|骗|误|谬|讹|伪|谣|幻|臆|虚构|子虚|编造|捏造|杜撰|冒充|吹牛|玩笑|扯淡|[瞎胡乱][说扯编讲话]|传[闻说言]"
    "|荒[唐诞]|可疑|怀疑|质疑|存疑|违背|有[违悖]|相[悖反]|反(?:面|过来|之|了)|是反的|对立面|颠倒|矛盾|出入|为零|反驳|推翻|排除|放弃"
    "|拒绝|避免|缺[乏少]"
)
_CALLED_CHINESE = re.compile(rf"(?:是|属于)(?![否或吗吧么呢嘛])({_HAN}{{1,6}}?)的?[对是]?[吗吧么呢]?(?!{_HAN})")
"""What a statement is called: ...是...吗."""
_AFFIRMING_CHINESE = re.compile(
    "真|对|事实|实[话情]|正确|准确|这[样么]|如此|可能|关键|重[要点]|主要|核心|原因|起因|因为|结果|答案|谜|题|确[定实]|肯定|必[然要]|合理|成立|正常"
    "|存在|发生|情况|故事|经过|意思|说法|道理|逻辑|依据|猜|推|想|说"
)


class Denials(NamedTuple):
    """How often a text denies."""

    negations: int
    falsehoods: int
    """Words such as false, lie or impossible."""


def agree(question: str, statement: str, language: Language) -> bool:
    """Whether a question asks if a statement is so: it denies as often as the statement, and calls no more false."""
    asked, said = denials(question, language), denials(statement, language)
    if asked.negations != said.negations or asked.falsehoods > said.falsehoods:
        return False
    one, other = words(question, language), words(statement, language)
    opposed = language == "en" and (_opposed(one - other, other) or _opposed(other - one, one))
    return not opposed and not _called_false(question, statement, language)


def denials(text: str, language: Language) -> Denials:
    """The denials of a text, but for those of ways of asking and idioms."""
    text = asserted(text, language)
    patterns = (_NOT_CHINESE, _FALSE_CHINESE) if language == "zh" else (_NOT_ENGLISH, _FALSE_ENGLISH)
    return Denials(*(sum(1 for _ in pattern.finditer(text)) for pattern in patterns))


def _called_false(question: str, statement: str, language: Language) -> bool:
    """Whether a question calls what it is about something that is in no list, and not in the statement either."""
    question = asserted(question, language)
    if language == "zh":
        names = filterfalse(_AFFIRMING_CHINESE.search, _CALLED_CHINESE.findall(question))
        return any(set(name).isdisjoint(statement) for name in names)
    for name in _CALLED_ENGLISH.findall(question.casefold()):
        named = {word for word in name.split() if not _NEUTRAL_ENGLISH.fullmatch(word)}
        if named.isdisjoint(_AFFIRMING_ENGLISH) and words(" ".join([statement, *named]), "en") - words(statement, "en"):
            return True
    return False


def _opposed(some: Set[str], others: Set[str]) -> bool:
    """Whether a word is the opposite of another: unhappy of happy."""
    return any(_OPPOSED.sub("", word, count=1) in others for word in some if _OPPOSED.match(word))


@functools.lru_cache(maxsize=1 << 10)
def asserted(text: str, language: Language) -> str:
    """The text without the ways of asking and idioms that contain a word of negation but deny nothing."""
    if language == "en":
        return _IDLE_ENGLISH.sub(" ", text)
    text = _EITHER_CHINESE.sub(r"\1", _ASKER_CHINESE.sub("", text))
    return _IDLE_CHINESE.sub("", _EXPECTING_CHINESE.sub("是", text))
