"""Places that a sentence of a talk names or points to: `at the green`, `here`, `my counter`, `at Hugo's`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from environments.stss.hearing.named.spots import mentions
from environments.stss.hearing.slots import Situation

_THING = (
    r"(?:attic|back room|barrels?|bar|bench|boat|cellar|chairs?|class(?:room)?|counter|cupboard|desk|door(?:step)?|"
    r"fire(?:side|place)?|floor|flat|garden|gate|hall|hearth|home|house|kitchen|ladder|loft|mantelpiece|office|oven|"
    r"parlour|place|porch|pub|queue|roof|room|seat|shed|shel(?:f|ves)|shop|shutters?|sill|sofa|stairs|step|store|stove|"
    r"study|table|till|wall|window|workshop|workbench|yard)"
)
_INTO = r"(?:over|by|in|round|along|up|down|back)"
_SPEAKERS = re.compile(
    rf"\b(?:my|our|the) (?:\w+ )?{_THING}\b|\b(?:mine|(?:to|with|from|see|visit|join) (?:me|us)|here|in there|"
    r"at home|i (?:sell|open|close|shut|serve))\b|"
    r"\b(?:you|please) (?:\w+ )?(?:bring|carry|take|come|drop|look|pop|stop|call|visit)\b",
    re.IGNORECASE,
)
"""Words for the speaker's own place."""
_LISTENERS = re.compile(
    rf"\byour (?:\w+ )?{_THING}\b|\b(?:yours|(?:to|with|from|see|visit) you)\b|"
    rf"\bi(?:'ll|'d|'m| could| can| shall| might)? (?:be |just )?(?:com|look|drop|carry|bring|pop|stop|call)\w* "
    rf"(?:\w+ ){{0,4}}{_INTO}\b",
    re.IGNORECASE,
)
_HERE = re.compile(r"\bhere\b(?!'s| is| are)", re.IGNORECASE)
"""A word for where both are, which may be the listener's place."""
_SOMEBODYS = re.compile(
    rf"\b([A-Z]\w+)(?:'s| is lending me the| has lent me the| (?:has|keeps) (?:\w+ ){{0,4}}{_THING})"
)


def pointed_to(sentence: str, situation: Situation, owned: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Addresses of the places that a sentence may mean; `owned`: the sectors that belong to each person."""
    yield from (spot.address for spot in mentions(sentence, situation))
    sectors = tuple(situation.places.sectors)
    for word, sector in _short_names(sectors, -1).items():
        if re.search(rf"\b{re.escape(word)}\b", sentence, re.IGNORECASE):
            yield sector
    for word, sector in _short_names(sectors, 0).items():
        if re.search(rf"\b{re.escape(word)}\b(?! [A-Z])", sentence):
            yield sector
    if _SPEAKERS.search(sentence):
        yield from owned.get(situation.speaker, ())
    if _LISTENERS.search(sentence) or _HERE.search(sentence):
        yield from owned.get(situation.listener, ())
    for found in _SOMEBODYS.finditer(sentence):
        yield from next((sectors for name, sectors in owned.items() if name.split()[0] == found[1]), ())


@lru_cache(maxsize=8)
def _short_names(sectors: tuple[str, ...], position: int) -> Mapping[str, str]:
    """Sector by one word of its name, where no other has the same there: the last one, or the first one."""
    words = [sector.split()[position] for sector in sectors]
    return {
        word: sector
        for word, sector in zip(words, sectors, strict=True)
        if words.count(word) == 1 and "'" not in word and len(sector.split()) > 1
    }
