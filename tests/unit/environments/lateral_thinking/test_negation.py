"""Whether a text denies something: questions of every common form, in both languages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.lateral_thinking.dataset import Language
from environments.lateral_thinking.hosts.negation import agree


@given(st.text(), st.sampled_from(["en", "zh"]))
def test_any_text_is_read(text: str, language: Language) -> None:
    assert agree(text, text, language)


@pytest.mark.parametrize(
    "text", ["no " * 700, ", isn't" * 300, "不是" * 1000, "或" * 2000, " " * 2000, "or " * 700, "，" * 2000]
)
def test_the_longest_question_is_read_at_once(text: str) -> None:
    assert agree(text, text, "en")
    assert agree(text, text, "zh")
