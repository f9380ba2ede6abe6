"""Porter's stemmer: the original algorithm as Lucene implements it (M. F. Porter, Program 14(3), 1980)."""

import re

_VOWELS = "aeiou"
_STEP_2 = (
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("logi", "log"),
)
_STEP_3 = (
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
)
_STEP_4 = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent"),
    *("ion", "ou", "ism", "ate", "iti", "ous", "ive", "ize"),
)
_ENDINGS_2, _ENDINGS_3 = (tuple(ending for ending, _ in step) for step in (_STEP_2, _STEP_3))
_SEQUENCES = re.compile("v+c+")


def stem(word: str) -> str:
    """The stem of a lower-case word; words of one or two letters or with a digit at the end are unchanged."""
    if len(word) < 3 or word[-1].isdecimal():
        return word
    word = _step_1b(_step_1a(word))
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    if word.endswith(_ENDINGS_2):
        word = _replaced(word, _STEP_2)
    if word.endswith(_ENDINGS_3):
        word = _replaced(word, _STEP_3)
    return _step_5(_step_4(word))


def _shape(word: str) -> str:
    """The word with v for each vowel and c for each consonant; y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        vowel = letter in _VOWELS or (letter == "y" and shape[-1:] == "c")
        shape += "v" if vowel else "c"
    return shape


def _measure(word: str) -> int:
    """The number of vowel sequences followed by a consonant sequence: Porter's m."""
    return len(_SEQUENCES.findall(_shape(word)))


def _short(word: str) -> bool:
    """Whether a word ends consonant, vowel, consonant, the last not w, x or y: Porter's *o."""
    return _shape(word)[-3:] == "cvc" and word[-1] not in "wxy"


def _doubled(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _shape(word)[-1] == "c"


def _step_1a(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _step_1b(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    ending = next((ending for ending in ("ed", "ing") if word.endswith(ending)), None)
    if ending is None or "v" not in _shape(word[: -len(ending)]):
        return word
    word = word[: -len(ending)]
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if _doubled(word) and word[-1] not in "lsz":
        return word[:-1]
    return word + "e" if _measure(word) == 1 and _short(word) else word


def _replaced(word: str, endings: tuple[tuple[str, str], ...]) -> str:
    """The word with its first ending in the list replaced if the rest has a measure above 0."""
    for ending, instead in endings:
        if word.endswith(ending):
            base = word[: -len(ending)]
            return base + instead if _measure(base) > 0 else word
    return word


def _step_4(word: str) -> str:
    if not word.endswith(_STEP_4):
        return word
    for ending in _STEP_4:
        if word.endswith(ending):
            base = word[: -len(ending)]
            if ending == "ion" and base[-1:] not in ("s", "t"):
                continue
            return base if _measure(base) > 1 else word
    return word


def _step_5(word: str) -> str:
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _short(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word
