"""Words of everyday English that the grammar is made of."""

import re
from functools import lru_cache

NUMBERS = {
    name: number
    for number, name in enumerate(
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"), 1
    )
}
HOUR = rf"(?:{'|'.join(NUMBERS)}|1[0-2]|0?[1-9])"
"""An hour of the twelve-hour clock."""
BEGINS = r"(?:^|(?<=[.!?;:]\s)|(?<=[.!?]\s[\"'(]))"
"""The beginning of a sentence."""


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


VERBS = word_set(
    """
    accompany act add answer arrange ask assemble attach bake bathe beat boil borrow bowl bring brush build
    bury buy call camp carry cast catch change chat check choose chop clean clear climb close collect compare
    compose cook copy count cover cut cycle dance deal decorate deliver dig dine discuss drag draw drink drive
    drop dry dust eat empty escort examine exercise explore fasten feed fetch fill film find finish fish fix
    fly fold fry gather get give go greet grind guard haggle hand hang harvest have hear help hide hike hire
    hold hunt inspect invite iron jog join judge jump keep knit knock lay lead learn leave lend lift light
    listen load lock look lower make mark measure meet mend mind mix move mow nail oil open organise organize
    pack paint park pay peel phone photograph pick place plan plant play polish post pour practice practise
    prepare press print pull pump push put race raise rake read record rehearse relax remind rent repair
    replace rescue return ride ring rinse roast roll row rub run sail sand save saw scrape scrub search see
    sell send set sew shake share sharpen shell shift shop shovel show shut sign sing sit skate sketch slice
    smoke soak solder solve sort sow spread stack stamp steer stir stitch store stretch study supervise sweep
    swim switch take talk taste teach tell tend test throw tidy tie tighten toast tow transcribe translate
    trim try tune turn type unload unlock unpack visit wait wake walk wash watch water wax weed weigh wheel
    wind wipe wrap write
    bail bind carve chase distribute edit explain forward grease hem knead launch loosen mop nail paddle patch
    persuade plough prune recite refill remove repaint repot rescue review rewire saddle scan scatter shave shear
    sieve sift splice sprinkle staple swap text transplant umpire vacuum varnish weave weld whisk whitewash
    whittle witness wring
    """
)
"""Verbs that may begin a request, in their base form."""
EMPTY = word_set(
    """
    a about actually count after again all along also an and another any anyone anything are around as ask asking at
    attend away back be being big bit both bring but by call came can chance change come comes coming could couple
    day do does doing done dear else errand even event evening every everybody everyone favor favour favours
    few fine for forgive free friend friends from full fun get getting give go goes going good got great guess
    half hand happen has have having he hear hello help her here hey hi him his hold hope hour how huge i idea
    if in instead into is it its job join joining just keep kind kindly kindness know last late later least
    let let's like listen little long look looking lot lots love lovely make making matter may maybe me mean
    meet meeting might mind mine minute minutes moment more morning much must my myself need never new news
    next nice night no not nothing now of off okay on once one ones only or other our out over part people
    perhaps person place plan plans please problem promise proposition put question quick quite rather ready
    really right room said same say see send shall share she should show simple small so some somebody someone
    something sometime soon sorry sort spare start stay still stuff such sure tag take talk tell than thank
    thanks that the their them then there these they thing things think this those thought time to together
    today told tomorrow tonight too town true try turn two up us use very wait want was watch way we welcome
    well what whatever when where which while who whole why will wish with without wonder wonderful word work
    worry wrong mistake misunderstand misunderstood online live internet web visit company
    would yes yet you your yours yourself
    """
)
"""Words that name no activity when they stand alone: small words, light verbs, and nouns for anything at all."""
LEAD = 300
"""So many characters before a part of a text tell what it is."""
_FILLERS = re.compile(
    r",? ?\b(?:um+|uh+|er+m?|hm+)\b[,.]?|, (?:like|well|you know|honestly|perhaps|maybe|hear me out|oh),|"
    r", i mean[^,.]*,|\blike,",
    re.IGNORECASE,
)
_SPELLINGS = {
    typed: spelt
    for spelt, all_typed in {
        "and": "n", "you": "u", "your": "ur", "are": "r", "please": "pls plz", "before": "b4", "through": "thru",
        "because": "bc", "tonight": "2nite tonite", "tomorrow": "tmrw tmr tmoz 2moro",
        "I'm": "im", "I've": "ive", "can't": "cant", "don't": "dont",
        "won't": "wont", "didn't": "didnt", "isn't": "isnt", "aren't": "arent", "wasn't": "wasnt",
        "doesn't": "doesnt", "haven't": "havent", "hasn't": "hasnt", "couldn't": "couldnt", "wouldn't": "wouldnt",
        "shouldn't": "shouldnt", "that's": "thats", "what's": "whats", "there's": "theres", "you're": "youre",
        "it's": "its", "he's": "hes", "she's": "shes", "they're": "theyre",
    }.items()
    for typed in all_typed.split()
}  # fmt: skip
"""Words as they are typed in text messages, and as they are spelt."""
_ITS = r" \d| (?:not|at|on the|now|outside|cancelled|moved)\b"
_BC = r" (?:of|i|it|the|my|we|he|she|they|you|u|its)\b"
_TYPED = re.compile(rf"(?<![\w'-])(?:{'|'.join(_SPELLINGS)})(?![\w'-])(?<!letter n)(?<!its(?!{_ITS}))(?<!bc(?!{_BC}))")
"""One of them; `its` and `bc` only before words that leave no doubt."""
_WORD = re.compile(r"[\w'-]+")
_RANGE = re.compile(r"(?<![\d-])(\d{1,2}(?::\d\d)?) ?[-–] ?(\d{1,2}(?::\d\d| ?[ap]\.?m\b))", re.IGNORECASE)
_BETWEEN = re.compile(rf"\bbetween ({HOUR}(?::\d\d)?(?: ?[ap]\.?m\.?)?) and (?={HOUR}\b)", re.IGNORECASE)


def plain(text: str) -> str:
    """A text on one line, with straight quotes, the words of text messages spelt out, and no fillers such as `um`."""
    straight = " ".join(text.replace("’", "'").replace("‘", "'").split())
    spelt = _TYPED.sub(lambda match: _SPELLINGS[match[0]], straight)
    ranged = _BETWEEN.sub(r"from \1 to ", _RANGE.sub(r"\1 to \2", _FILLERS.sub(" ", spelt)))
    return " ".join(ranged.split())


def lead_to(text: str, at: int) -> str:
    """The words before a part of a text, at most `LEAD` characters: in a long text each takes no longer to read."""
    return text[max(0, at - LEAD) : at]


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return re.split(r"(?<=[.!?;])\s+", text)


@lru_cache(maxsize=2048)
def within(pattern: str, text: str) -> bool:
    """Whether words of a pattern occur in a text; case does not matter. What was found in the last texts is kept."""
    return _whole_words(pattern).search(text) is not None


@lru_cache(maxsize=512)
def _whole_words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?:(?<!\w)|(?='))(?:{pattern})(?!\w)", re.IGNORECASE)


def is_empty(phrase: str) -> bool:
    """Whether a phrase names nothing that one could do."""
    words = _WORD.finditer(phrase.lower())
    return all(word[0] in EMPTY or word[0] in NUMBERS or word[0].isdigit() for word in words)
