"""The table of replies stands in the acceptance tests; here is what no table shows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.knowledge_graph.reply import (
    MAX_ARGUMENTS,
    MAX_CALLS,
    FinalAnswer,
    LooseAnswer,
    NoAction,
    ToolRequests,
    read,
    shorten,
)

NAMES = ("Bell", "Bell & Sons", "Bell, Sons (and daughters)", "")


@given(st.text(), st.booleans())
def test_any_reply_is_read(reply: str, strict: bool) -> None:
    assert isinstance(read(shorten(reply), NAMES, strict), FinalAnswer | LooseAnswer | ToolRequests | NoAction)


@given(st.text(alphabet="(),# 'ab"), st.booleans())
def test_any_line_of_an_action_is_read(text: str, strict: bool) -> None:
    found = read("Action: " + text, NAMES, strict)
    assert isinstance(found, ToolRequests)
    assert all(call.written.startswith(f"{call.function}(") for call in found.calls)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 200_000,
        "a(" * 100_000,
        "(" * 200_000,
        "Action" * 40_000,
        "a(b," * 50_000,
        "a(b," * 50_000 + ")",
        "#" * 200_000,
    ],
)
def test_a_long_line_is_read_only_in_part(text: str) -> None:
    for names in ((), NAMES):
        found = read(f"Action: {text}", names)
        assert isinstance(found, ToolRequests)
        assert len(found.calls) <= MAX_CALLS
        assert all(len(call.arguments or ()) <= MAX_ARGUMENTS for call in found.calls)


@pytest.mark.parametrize(
    "text", ["final answer:" * 20_000, "final answer" + " " * 200_000, "final answer:" + "*" * 200_000]
)
def test_a_long_reply_without_an_answer_is_read_quickly(text: str) -> None:
    assert read(text) == NoAction()
