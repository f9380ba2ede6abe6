"""What users and judges say, as requests, ratings and verdicts; whatever they say, nothing else is raised."""

import math
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from environments.simulbench import reply
from environments.simulbench.reply import UnreadableAnswer

PROFILES: tuple[reply.Profile, ...] = ("strict", "compat")


def test_a_fence_that_is_never_closed_is_read_at_once() -> None:
    with pytest.raises(UnreadableAnswer, match="no JSON"):
        reply.user_request("```" + "\n" * 1_000_000)


@pytest.mark.parametrize("piece", ["rating ", "rating: (", "[[", "rating is [[", "\\\\[", "9", "[[9"])
def test_a_long_answer_is_read_in_time_that_grows_with_its_length(piece: str) -> None:
    for profile in PROFILES:
        with pytest.raises(UnreadableAnswer):
            reply.rating("[[" + piece * (100_000 // len(piece)), profile)


@given(st.text(alphabet=st.sampled_from('[]{}"`0123456789.ABC:userating \n\x00雪'), max_size=60))
@example("[[٣]]")
@example("[[1e400]]")
@example("NaN")
@example("[[" + "9" * 400 + "]]")
@example('{"user": {"request": "\\ud800"}}')
def test_any_text_is_read_within_range_or_unreadable(text: str) -> None:
    assert readable(lambda: 1 <= reply.rating(text, "strict") <= 10)
    assert readable(lambda: 0 <= reply.rating(text, "compat") < math.inf)
    assert readable(lambda: reply.verdict(text, "strict") in "ABC")
    assert readable(lambda: reply.verdict(text, "compat") in "ABC")
    assert readable(lambda: reply.user_request(text).request != "")


def readable(holds: Callable[[], bool]) -> bool:
    """Whether it holds of what was read, if anything could be."""
    try:
        return holds()
    except UnreadableAnswer:
        return True
