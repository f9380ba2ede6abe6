"""Places named in a text: by name, by nickname, by a common word for their kind, or as somebody's home."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from environments.stss.hearing.slots import Situation
from environments.stss.hearing.words import lead_to, within
from environments.stss.town.places import Mention, Places

_KINDS = (
    ("store", "shop"),
    ("inn", "pub", "bar", "tavern", "taproom", "snug", "public house"),
    ("green", "lawn", "grass", "park", "meadow"),
    ("cafe", "café", "coffee shop", "coffee house"),
    ("bakery", "baker's", "bakehouse"),
    ("college", "campus"),
    ("school", "classroom", "schoolroom", "schoolhouse", "schoolyard"),
    ("workshop",),
    ("library",),
    ("pharmacy", "chemist's"),
    ("market",),
)
"""Common words for the same kind of place."""
_BEFORE_IT = r"(?:the|my|your|our|this|that|own|at|in|to|from|inside|outside|near|behind|\w+'s|here|the village)"
_ONLINE = (
    r"on-?line|zoom|skype|video ?(?:call|chat|meeting|conference)s?|webinars?|live ?streams?|streams?|"
    r"streaming|virtual(?:ly)?|internet"
    r"|on the (?:web|net|computer|screen)|by video|over video|on video|over the (?:computer|screen)|from home|"
    r"each at home|multiplayer|group call|log (?:in|on)|tune in|dial in|e-?meeting|on(?: the| a)? screen"
)
_OFFLINE = re.compile(
    rf"\b(?:not|no more|instead of|rather than|given up on|done with)(?: on| over| by| the)* (?:{_ONLINE})\b",
    re.IGNORECASE,
)
"""Words by which something is not online, or no longer."""
_DENIED = re.compile(
    r"\b(?:not|instead of|rather than|than|isn't|can't meet|moved from|transferred from|from|(?<!front )(?<!back )of"
    r"|too much (?:mud|noise|wind|water|dust)|rode past|walked past)(?: at| in| on| to)?(?: the| my| your)?\s*$",
    re.IGNORECASE,
)
_POSSESSIVE = re.compile(
    r"^'s (?:got|heating|roof|closed|shut|full|too|flooded|being|has|out|windows)\b", re.IGNORECASE
)
_HOME_WORDS = (
    r"(?:house|place|home|kitchen|garden|flat|cottage|parlour|door|fireside|sitting room|living room|doorstep)"
)
_WORK = r"(?:shop|store|inn|bar|bench|workshop|school|bakery|table|side|desk|suggestion|request|\w+ing)\b"
"""What makes a name before it no home: `Dev's workshop`."""
_BEFORE_MINE = "at|oh|yes|no|ok|okay|perhaps|maybe|probably|definitely|just|so|then|sure|back|here|always"
_MINE = re.compile(
    rf"^(?:(?!not\b)\w+, |(?:{_BEFORE_MINE}) )?(?:at home|mine)(?=\W|$)|\bhome to me\b|\bcome (?:over |round |up "
    rf"|along )?to me\b|"
    rf"\b(?:(?:at|to|round|round at|from) mine\b|(?:my|our) (?:own )?{_HOME_WORDS}\b|(?:i'll be|"
    r"i'm) (?:at home|in all (?:day|evening|morning|afternoon))|at home with me)",
    re.IGNORECASE,
)
_YOURS = re.compile(
    r"\b(?:(?:i|we)(?:'ll|'d| can| could)? come (?:over |round )?to you\b|(?:at|to|round|from) (?:yours|urs)\b|"
    rf"your (?:own )?{_HOME_WORDS}\b)",
    re.IGNORECASE,
)
_THEIRS = re.compile(rf"\b(?:his|her|their) (?:own )?{_HOME_WORDS}\b", re.IGNORECASE)
_EITHER = re.compile(r"\bor (?:at )?(?:mine|yours|my|your)\b|\bwhether i come to you or\b", re.IGNORECASE)


_FOLLOWS = re.compile(
    r"\s*(?:$|[^\w\s'])|'s (?:got|heating)|\s+(?:at|on|in|today|tonight|tomm?orr?ow|and|or|with|for|from|by|"
    r"to|if|so|where|is|are|was|now|please|before|after|until|till|who|which|"
    r"because|when|this|would|will|could|can|has|have|had|as|instead|rather|like|half|quarter|noon|say|just|you|i|we|"
    r"it|around|about|then|right|early|later|together|again|maybe|perhaps|while|"
    r"but|not|it's|i'm|library|hall|yard|garden|kitchen|gate|steps|afterwards|i'll|tuesday|monday|the|my|steps|yesterday|nine|ten|eight|seven|some|alone|every|next)\b",
    re.IGNORECASE,
)
"""What may follow a common word that names a place: no other noun, as in `shop window`."""


_INSTEAD = re.compile(r"\b(?:no|not|sorry|instead|rather|so|now|and|then|but|to|into|moved)\b", re.IGNORECASE)
_OTHERS = re.compile(
    r"\b(?:(?:he|she|they)(?:'s| is|'re| are)|(?:i|we)(?:'ve| have| had)? (?:bought|got|was|were|saw|found|left|heard"
    r"|met|went|lost|came)|afterwards?|after that)\b[^.!?;,]*$",
    re.IGNORECASE,
)
"""What somebody else does, or what was before or comes after it."""


class Where(NamedTuple):
    """The place of what a text invites to, and all places that it names."""

    place: str | None = None
    online: bool = False
    mentions: tuple[Mention, ...] = ()


@lru_cache(maxsize=8)
def _common_words(sectors: tuple[str, ...]) -> Sequence[tuple[str, re.Pattern[str], str]]:
    """Common word, its pattern, and sector, where only one sector is of its kind."""
    found: dict[str, str] = {}
    for words in _KINDS:
        fits = [sector for sector in sectors if sector.lower().split()[-1] in words]
        if len(fits) == 1:
            found |= dict.fromkeys(words, fits[0])
    firsts = [sector.split()[0] for sector in sectors]
    for sector in sectors:
        first = sector.split()[0]
        if firsts.count(first) == 1 and not first.lower().endswith("'s") and first.lower() != "the":
            found.setdefault(first, sector)
    return [(word, _pattern(word), sector) for word, sector in found.items()]


def _pattern(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])", re.IGNORECASE if word.islower() else 0)


def where(text: str, named: Sequence[Mention], counted: Sequence[Mention]) -> Where:
    """The place of what a text invites to, and whether it is online; of the places `named` only some are `counted`."""
    online = within(_ONLINE, _OFFLINE.sub(" ", text))
    if _EITHER.search(text) or not counted:
        return Where(None, online, tuple(named))
    return Where(_chosen(text, counted).address, online, tuple(named))


def _chosen(text: str, spots: Sequence[Mention]) -> Mention:
    """The first place, or a later one that takes its place."""
    chosen = spots[0]
    for spot in spots[1:]:
        if _INSTEAD.search(text[chosen.end : spot.start]):
            chosen = spot
    return chosen


def is_denied_place(text: str, spot: Mention) -> bool:
    lead = lead_to(text, spot.start)
    return bool(_DENIED.search(lead) or _OTHERS.search(lead) or _POSSESSIVE.match(text[spot.end :]))


def mentions(text: str, situation: Situation) -> list[Mention]:
    """All places named, in order and without overlaps. What was found in the last texts is kept."""
    return list(_mentions(text, situation._replace(before=tuple(situation.before))))


@lru_cache(maxsize=256)
def _mentions(text: str, situation: Situation) -> Sequence[Mention]:
    taken: list[Mention] = []
    found = [*_by_kind(text, situation.places), *_by_name(text, situation.places), *_homes(text, situation)]
    for spot in sorted(found, key=lambda spot: spot.start - spot.end):
        if not any(other.start < spot.end and spot.start < other.end for other in taken):
            taken.append(spot)
    return sorted(taken)


def _by_name(text: str, places: Places) -> Iterator[Mention]:
    """Places by name; a single common word counts only where a place may stand."""
    for spot in places.mentions(text):
        name = text[spot.start : spot.end]
        led = re.search(rf"\b{_BEFORE_IT}\s+$", lead_to(text, spot.start), re.IGNORECASE) is not None
        if " " in name or not name.islower() or (led and _FOLLOWS.match(text[spot.end :])):
            yield spot


def _by_kind(text: str, places: Places) -> Iterator[Mention]:
    sectors = tuple(dict.fromkeys(spot.partition(":")[0] for spot in places.sectors))
    lower = text.lower()
    for word, pattern, sector in _common_words(sectors):
        for match in pattern.finditer(text) if word.lower() in lower else ():
            if _stands_alone(text, match, word):
                yield Mention(*match.span(), sector)


def _stands_alone(text: str, match: re.Match[str], word: str) -> bool:
    """Whether a word names the place: not a first word of some other name, and not the head of an event."""
    after, lead = text[match.end() :], lead_to(text, match.start())
    if not word.islower():
        named = re.search(r"\b(?:at|the|to|from)\s+$", lead, re.IGNORECASE) is not None
        return named and not re.match(r"\s+[A-Z]", after)
    begins = re.search(r"(?:^|[.!?,;:]\s*)$", lead) is not None
    fragment = begins and re.match(r"\s*(?:[.,!?;:]|$)|\s+\w+[.,]", after) is not None
    placed = (
        re.search(rf"\b{_BEFORE_IT}\s+(?:(?:village|town|harbour|own|old|local)\s+)?$", lead, re.IGNORECASE) is not None
    )
    return fragment or (placed and _FOLLOWS.match(after) is not None)


def _homes(text: str, situation: Situation) -> Iterator[Mention]:
    homes = situation.places.homes
    for pattern, who in ((_MINE, situation.speaker), (_YOURS, situation.listener)):
        if who in homes:
            yield from (Mention(*match.span(), homes[who].partition(":")[0]) for match in pattern.finditer(text))
    named: list[tuple[int, str]] = []
    lower = text.lower()
    for name, home in homes.items():
        first = name.split()[0]
        if first.lower() not in lower:
            continue
        for match in re.finditer(rf"\b{first}\b", text):
            named.append((match.start(), home))
        at_home = (
            rf"\b(?:(?:at|to|over at|over to|up at|round at) {first}'s(?! +(?:\w+ )?{_WORK})|"
            rf"{first}'s {_HOME_WORDS})\b"
        )
        for match in re.finditer(at_home, text, re.IGNORECASE):
            yield Mention(*match.span(), home.partition(":")[0])
    said = [(-1, homes[name]) for line in situation.before for name in homes if name.split()[0] in line.text]
    for match in _THEIRS.finditer(text):
        before = [home for start, home in (*said, *sorted(named)) if start < match.start()]
        if before:
            yield Mention(*match.span(), before[-1].partition(":")[0])
