"""What of a reply is its action, what is carried out for it, and the published resemblance of replies and commands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.alfworld.reply import MAX_ACTION, CommandCandidate, Profile, action_of, choose, nearest

LIST = ["go to desk 1", "look", "open drawer 1"]


def test_a_long_action_is_cut() -> None:
    assert action_of("ACTION: " + "x" * 1_000_000, "compat") == "x" * MAX_ACTION


@given(st.text(), st.sampled_from(["compat", "strict"]))
def test_any_reply_is_read(reply: str, profile: Profile) -> None:
    action = action_of(f"ACTION: {reply}", profile)
    assert action is not None
    choose(action, LIST, profile)


def test_a_command_resembles_itself_fully_and_strangers_not_at_all() -> None:
    assert CommandCandidate("put mug 1 in/on desk 1").similarity("put mug 1 in/on desk 1") == pytest.approx(1.0)
    assert CommandCandidate("take soapbar").similarity("go to desk 1") == 0.0


def test_of_a_long_text_each_part_counts() -> None:
    long = "go to " * 2_000
    assert CommandCandidate(long).similarity("go to desk 1") == pytest.approx(2.2776460336e-4, abs=1e-12)
    assert nearest(long, ["look", "go to desk 1"]) is None
