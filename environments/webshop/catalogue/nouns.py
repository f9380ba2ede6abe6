"""Extracts the nouns of product titles, by which a reward compares the kinds of products.

They are extracted once, when a catalogue is made, and stored in it with the name and version of the extractor.
"""

import functools
import re
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import NamedTuple

_WORD = re.compile(r"[^\W_]+(?:['’.][^\W_]+)*")
_CLOSED = """
    a about above across after against all along also am among an and any are around as at away back be because been
    before behind below beneath beside between beyond both but by can compatible could do does down during each
    eight either every few five for four from further had has have her here hers him his how i if in inside instead
    into is it its just like many may me more most much my near neither new nine no non none nor not of off old on
    once one only onto or other our out outside over own per plus same seven several she should since six so some
    such ten than that the their them then there these they this those three through to toward towards two under
    until up upon us use very via vs was we were what when where which while who whom whose why will with within
    without would you your yours"""
_ADJECTIVES = """
    active adult anti artificial authentic basic best big black blue bold bright brown casual chic classic clean
    clear cold cool cozy crisp cute daily dark dead deep different double dry dual durable easy electric elegant
    essential ethnic everyday extra fast fat favorite fine firm fit flat flexible floral formal free fresh full
    funny gentle genuine gold golden good gorgeous gray great green grey handmade happy hard heavy high holiday hot
    huge indoor innovative intense large last late latest lean light lightweight little long loose low lower lush
    luxurious luxury magic main male mature medium men's metallic mid mild mini modern moisturizing multi natural
    navy neutral next nice nude official orange organic original outdoor oval pink plain portable premium pretty pro
    professional pure purple quick quiet raw ready real red rich right rose rough round royal rustic safe sexy sharp
    sheer shiny short silent silver simple single skinny sleek slim slip slow small smart smooth soft solid special
    square stainless standard sticky strong stylish sunny super sweet tall thick thin tight tiny top total
    traditional triple true ultra unique unisex universal upper urban useful vintage warm waterproof wet white wide
    wild wireless wooden yellow young yummy"""
_VERBS = """
    add adds buy comes fits fitted gets give gives go goes help helps keep keeps let lets listed look looks love
    loves made make makes need needs protect protects see sent works"""
_NOUNS = """
    alternative animal assembly beanie bed bedding belly body bracelet building butterfly cable capital ceiling
    cleaning clothing coating cooking crystal deed drive earring evening family feed five fly glove groove hospital
    jelly jewel journal lighting lily lining living massive meal medal metal morning native olive oval packaging
    padding painting panel pedal petal piercing preservative pudding reed ring seasoning seed serving setting shed
    sleeve speed spring sting stove string stuffing supply swing table thing thread topping towel training vegetable
    wedding weed wing"""
_KNOWN_NOUNS = frozenset(_NOUNS.split())
_OTHERS = frozenset(f"{_CLOSED} {_ADJECTIVES} {_VERBS}".split())
_ADJECTIVE_ENDINGS = ("able", "ible", "ful", "less", "ous", "ive", "ish", "ical", "ly", "ing", "ed", "proof")


class NounExtractor(NamedTuple):
    """A function that extracts nouns, with its name and version."""

    name: str
    version: str
    nouns: Callable[[str], tuple[str, ...]]
    """Returns the nouns of a title in lower case, in order, with repeats."""


def lexical(title: str) -> tuple[str, ...]:
    """The words of a title without numbers, function words, and words with the ending of an adjective, adverb or verb.

    The first word is taken for a brand and may have any ending.
    """
    found = _WORD.findall(title.lower())
    return (*filter(_is_content, found[:1]), *filter(_is_noun, found[1:]))


def _is_content(word: str) -> bool:
    return word[0].isalpha() and len(word) > 1 and word not in _OTHERS


@functools.lru_cache(maxsize=1 << 16)
def _is_noun(word: str) -> bool:
    return _is_content(word) and (word in _KNOWN_NOUNS or not (len(word) > 4 and word.endswith(_ADJECTIVE_ENDINGS)))


def extractor(name: str) -> NounExtractor:
    """The extractor with this name: `lexical`, or a spaCy model (`en_core_web_lg`, `en_core_web_sm`).

    Raises ValueError if spaCy or the model is not installed.
    """
    if name == "lexical":
        return NounExtractor("lexical", "1", lexical)
    try:
        model = import_module("spacy").load(name)
    except (ImportError, OSError) as error:
        raise ValueError(
            f"nouns: {name!r}: {error}; use lexical, or install spaCy and the model of this name"
        ) from error

    def tagged(title: str) -> tuple[str, ...]:
        return tuple(token.text.lower() for token in model(title) if token.pos_ in ("NOUN", "PROPN"))

    return NounExtractor(name, f"{model.meta['version']}, spaCy {version('spacy')}", tagged)
