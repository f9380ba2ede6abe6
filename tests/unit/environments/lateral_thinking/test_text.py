"""What two texts have in common."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.lateral_thinking.dataset import Language
from environments.lateral_thinking.text import character_bleu, share, stem, words


def test_forms_of_one_word_are_one() -> None:
    for forms in ("stops stopped stopping stop", "cause caused causing causes", "carry carries carried"):
        assert len({stem(word) for word in forms.split()}) == 1
    assert {stem(word) for word in ("glass", "is", "fell", "see")} == {"glass", "is", "fell", "see"}


def test_english_words_are_stems_without_stop_words() -> None:
    assert words("He was the woman's HUSBAND, and didn’t know.", "en") == {"woman", "husband", "know"}


def test_a_text_of_stop_words_is_compared_by_them_and_one_without_words_by_itself() -> None:
    assert words("Is it?", "en") == {"is", "it"}
    assert words(" ?! ", "en") == {"?!"}
    assert words("", "en") == frozenset()


def test_chinese_is_compared_by_pairs_of_neighbours_and_whole_foreign_words() -> None:
    assert words("他是熊，有DNA。", "zh") == {"他是", "是熊", "有", "dna"}


def test_share_is_of_the_first_set() -> None:
    assert share({"a", "b"}, {"b", "c", "d"}) == 0.5
    assert share(set(), {"a"}) == 0.0


@pytest.mark.parametrize(
    ("text", "reference", "likeness"),
    [
        ("aab", "ab", 2 / 3),
        ("ab", "ab", 1.0),
        ("ab", "abcd", math.exp(1 - 4 / 2)),
        ("xb", "abcd", math.exp(1 - 4 / 2) / 2),
        ("abcdefgh", "abcd", 1 / 2),
        ("xyz", "ab", 0.0),
        ("", "ab", 0.0),
    ],
)
def test_bleu_counts_characters_as_often_as_the_reference_has_them_and_punishes_brevity(
    text: str, reference: str, likeness: float
) -> None:
    assert character_bleu(text, reference) == pytest.approx(likeness)


@given(st.text(), st.sampled_from(["en", "zh"]))
def test_a_text_covers_itself_and_nothing_raises(text: str, language: Language) -> None:
    found = words(text, language)
    assert share(found, found) == (1.0 if text.strip() else 0.0)
    assert 0.0 <= character_bleu(text, text[::-1]) <= 1.0
