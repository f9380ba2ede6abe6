"""Analyses a text into search tokens: Lucene's English analysis as Anserini configures it.

Words are split by Unicode UAX 29, then possessive 's, stop words and endings (`porter`) are removed. Differences from
Lucene: each kana is a token of its own, and numbers that are not decimal digits (½, ①) are not tokens.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from environments.webshop.catalogue.porter import stem

MAX_TOKEN = 255
"""Limit in characters; longer words are cut into pieces of this length (Lucene's StandardTokenizer)."""
_CACHED = 40
"""Limit in characters for keeping the tokens of a part, since agents may write many longer ones."""
_KEPT = 1 << 16
"""Limit of parts whose tokens are kept."""
_STOP_WORDS = """
    a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to
    was will with"""
_AROUND = '()[],.;:!?"'
"""Marks that are no part of a word at whose ends they stand."""
STOP_WORDS = frozenset(_STOP_WORDS.split())

_SINGLE = "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_ODD_NUMBERS = (
    "\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2079\u2080-\u2089\u2150-\u215f\u2189\u2460-\u249b\u24ea-\u24ff"
    "\u2776-\u2793\u3192-\u3195\u3220-\u3229\u3248-\u324f\u3251-\u325f\u3280-\u3289\u32b1-\u32bf"
)
_PICTOGRAPH = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u2388\u23cf\u23e9-\u23f3"
    "\u23f8-\u23fa\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u2605\u2607-\u2612\u2614-\u2685\u2690-\u2705"
    "\u2708-\u2712\u2714\u2716\u271d\u2721\u2728\u2733\u2734\u2744\u2747\u274c\u274e\u2753-\u2755\u2757"
    "\u2763-\u2767\u2795-\u2797\u27a1\u27b0\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d"
    "\u3297\u3299\U0001f000-\U0001faff]"
)
_PICTURE = f"{_PICTOGRAPH}[\ufe0f\U0001f3fb-\U0001f3ff]*(?:\u200d{_PICTOGRAPH}[\ufe0f\U0001f3fb-\U0001f3ff]*)*"
_MARK = "\u0300-\u036f\u0483-\u0489\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u20d0-\u20ff"
_WORD = rf"(?:[^\W{_SINGLE}{_ODD_NUMBERS}]|[{_MARK}])"
_LETTER = rf"[^\W\d_{_SINGLE}{_ODD_NUMBERS}]"
_BETWEEN_LETTERS = "['\u2018\u2019\uff07.\u2024\ufe52\uff0e:\u00b7\u0387\u2027\ufe13\ufe55\uff1a]"
_BETWEEN_DIGITS = "['\u2018\u2019\uff07.\u2024\ufe52\uff0e,;\u037e\u060c\u066c\u2044\ufe50\ufe54\uff0c\uff1b]"
_RUN = rf"{_WORD}+(?:(?:(?<={_LETTER}){_BETWEEN_LETTERS}(?={_LETTER})|(?<=\d){_BETWEEN_DIGITS}(?=\d)){_WORD}+)*"
_TOKEN = re.compile(rf"(?P<run>{_RUN})|[{_SINGLE}]|{_PICTURE}")
_POSSESSIVE = re.compile("['\u2019\uff07][sS]$")


def words(text: str) -> Iterator[str]:
    """The words of a text by UAX 29, in order, without those of underscores only."""
    for match in _TOKEN.finditer(text):
        word = match[0]
        if match["run"] is None or any(map(str.isalnum, word)):
            yield from (word[at : at + MAX_TOKEN] for at in range(0, len(word), MAX_TOKEN))


def tokens(text: str) -> list[str]:
    """The tokens of a document or a query, in order, with repeats; none contains white space."""
    return list(chain.from_iterable(map(_parts.__getitem__, text.split())))


class _Parts(dict[str, tuple[str, ...]]):
    """The tokens of parts, which are found where they are not kept yet; all are forgotten when there are too many."""

    def __missing__(self, part: str) -> tuple[str, ...]:
        found = _of_part(part)
        if len(part) <= _CACHED:
            if len(self) >= _KEPT:
                self.clear()
            self[part] = found
        return found


_parts = _Parts()


def _of_part(part: str) -> tuple[str, ...]:
    """The tokens of a part without white space; no word crosses white space."""
    bare = part.strip(_AROUND)
    if bare.isascii() and bare.isalnum():  # nearly all are one word, which need not be looked for
        found: Iterable[str] = (bare.lower(),)
    else:
        found = (_POSSESSIVE.sub("", word).lower() for word in words(part))
    return tuple(stem(word) for word in found if word not in STOP_WORDS)
