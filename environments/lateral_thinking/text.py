"""Similarity of texts: by content words in English, by pairs of characters in Chinese."""

import functools
import math
import re
from collections import Counter
from collections.abc import Iterator, Set

from environments.lateral_thinking.dataset import Language

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_CHINESE = re.compile(r"[\u4e00-\u9fff]+")
_STOP_WORDS_TEXT = """
    a about after again all also am an and any are as at be became because become been before being both but
    by can could did do does doing done during each either even ever for from further get gets had has have
    having he her here hers herself him himself his how i if in into is it it's its itself just me might more
    most much must my myself of off on once only or other our ours out over own please s same shall she
    should so some such t than that that's the their theirs them themselves then there there's these they
    this those through to too until up upon very was we were what when where which while who whom whose why
    will with would you your yours"""
_STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())
_SENTENCE_END = re.compile(r"[.!?;。！？；\n]+")


@functools.lru_cache(maxsize=1 << 10)
def words(text: str, language: Language) -> frozenset[str]:
    """The words that texts are compared by: stems without stop words, or pairs of neighbouring Chinese characters.

    For a text of stop words alone these are the stop words, for a text without words the whole text.
    """
    found = frozenset(_pairs(text)) if language == "zh" else frozenset(_stems(text))
    return found or frozenset(_WORD.findall(text.casefold())) or frozenset(filter(None, [text.strip()]))


def share(of: Set[str], within: Set[str]) -> float:
    """The share of one set's words that occur in another, from 0 to 1; 0 for an empty set."""
    return len(of & within) / len(of) if of else 0.0


def character_bleu(text: str, reference: str) -> float:
    """BLEU-1 on characters: the share of a text's characters that occur in a reference, with brevity penalty.

    Each character counts at most as often as in the reference. Where a text of n characters is shorter than the
    reference of m, the share is multiplied by exp(1 - m/n) (Papineni et al. 2002). 0 for an empty text.
    """
    if not text:
        return 0.0
    precision = (Counter(text) & Counter(reference)).total() / len(text)
    return precision * math.exp(min(0.0, 1 - len(reference) / len(text)))


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [sentence for sentence in _SENTENCE_END.split(text) if sentence.strip()]


def _stems(text: str) -> Iterator[str]:
    for word in _WORD.findall(text.casefold().replace("’", "'")):
        base = word.removesuffix("'s").removesuffix("n't")
        if base not in _STOP_WORDS:
            yield stem(base)


def _pairs(text: str) -> Iterator[str]:
    for run in _CHINESE.findall(text):
        yield from (run[at : at + 2] for at in range(max(1, len(run) - 1)))
    yield from (word for word in _WORD.findall(_CHINESE.sub(" ", text).casefold()))


def stem(word: str) -> str:
    """A word without the commonest English endings: stops, stopped and stopping become the same stem."""
    for ending, instead in (("ies", "y"), ("ied", "y"), ("ing", ""), ("ed", ""), ("ly", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and not word.endswith("ss") and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending) + instead
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeioulsz":
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word
