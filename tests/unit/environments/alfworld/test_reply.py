"""What of a reply is its action, what is carried out for it, and the published resemblance of replies and commands."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.alfworld.reply import MAX_ACTION, CommandCandidate, Profile, action_of, choose, nearest

LIST = ["go to desk 1", "look", "open drawer 1"]


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        ("THOUGHT: hm.\nACTION: go to desk 1", "go to desk 1"),
        ("ACTION: Go To Desk 1 \r\nmore", "go to desk 1"),
        ("ACTION: look ACTION: open drawer 1\nACTION: go", "look action: open drawer 1"),
        ("ACTION: one\nACTION: two", "one"),
        ("ACTION:", ""),
        ("ACTION:\n go to desk 1", ""),
        ("go to desk 1", None),
        ("", None),
        ("ACTION: a\0b", "a\\0b"),
        ("ACTION: 去 \ud800", "去 ?"),
    ],
)
def test_the_action_is_the_rest_of_the_line_behind_the_first_mark(reply: str, action: str | None) -> None:
    assert action_of(reply, "compat") == action
    assert action_of(reply, "strict") == (action or ("go to desk 1" if "\n go" in reply else action))


@pytest.mark.parametrize(
    "form", ["ACTION:\n{}", "ACTION:\n\n```\n{}\n```", "action: so\nACTION: `{}`.", "**Action**: '{}'"]
)
def test_in_strict_an_action_is_the_same_in_any_form(form: str) -> None:
    assert action_of(form.format("go to desk 1"), "strict") == "go to desk 1"


def test_a_mark_in_other_letters_counts_in_strict_only() -> None:
    assert action_of("Action: go to desk 1", "compat") is None
    assert action_of("Action: go to desk 1", "strict") == "go to desk 1"
    assert (
        action_of("THOUGHT: \N{LATIN CAPITAL LETTER I WITH DOT ABOVE}ЖẞŒ\ud800 aCTION: Look\nmore", "strict") == "look"
    )


@pytest.mark.parametrize(
    ("reply", "compat"),
    [
        ("**ACTION:** go to desk 1", "** go to desk 1"),
        ("**ACTION**: go to desk 1", None),
        ("THOUGHT: hm.\n**ACTION: go to desk 1**", "go to desk 1**"),
        ("__ACTION:__ go to desk 1", "__ go to desk 1"),
        ("ACTION: `go to desk 1`", "`go to desk 1`"),
        ("ACTION: ``go to desk 1``.", "``go to desk 1``."),
        ('ACTION: "go to desk 1."', '"go to desk 1."'),
        ("ACTION: 'Go to desk 1'.", "'go to desk 1'."),
        ("ACTION: “go to desk 1”", "“go to desk 1”"),
        ("ACTION: go to desk 1.", "go to desk 1."),
        ("**ACTION:** *`go to desk 1.`* \r\nmore", "** *`go to desk 1.`*"),
    ],
)
def test_marks_around_an_action_are_no_part_of_it_in_strict(reply: str, compat: str | None) -> None:
    assert action_of(reply, "strict") == "go to desk 1"
    assert action_of(reply, "compat") == compat


@pytest.mark.parametrize("reply", ["ACTION: **", "ACTION: ``", "**ACTION:**", "ACTION: .", 'ACTION: ""'])
def test_marks_around_nothing_are_no_action(reply: str) -> None:
    assert action_of(reply, "strict") == ""


def test_a_long_action_is_cut() -> None:
    assert action_of("ACTION: " + "x" * 1_000_000, "compat") == "x" * MAX_ACTION


@given(st.text(), st.sampled_from(["compat", "strict"]))
def test_any_reply_is_read(reply: str, profile: Profile) -> None:
    action = action_of(f"ACTION: {reply}", profile)
    assert action is not None
    choose(action, LIST, profile)


def test_a_command_of_the_list_is_carried_out_and_one_that_resembles_it_in_compat() -> None:
    assert choose("look", LIST, "compat") == choose("look", LIST, "strict")
    near = choose("go to desk 1.", LIST, "compat")
    assert near.command == "go to desk 1"
    assert 0.01 < near.similarity < 1
    assert choose("go to desk 1.", LIST, "strict").model_dump() == {"command": "go to desk 1.", "similarity": 0.0}
    assert choose("xyzzy", LIST, "compat").model_dump() == {"command": "xyzzy", "similarity": 0.0}


def test_a_command_resembles_itself_fully_and_strangers_not_at_all() -> None:
    assert CommandCandidate("put mug 1 in/on desk 1").similarity("put mug 1 in/on desk 1") == pytest.approx(1.0)
    assert CommandCandidate("take soapbar").similarity("go to desk 1") == 0.0


def test_of_equally_near_commands_the_first_is_taken_and_none_where_none_is_near() -> None:
    assert nearest("1", ["go to desk 1", "go to sofa 1"]) == ("go to desk 1", math.exp(-3))
    assert nearest("xyzzy", ["look", "inventory"]) is None
    assert nearest("x", []) is None


def test_of_a_long_text_each_part_counts() -> None:
    long = "go to " * 2_000
    assert CommandCandidate(long).similarity("go to desk 1") == pytest.approx(2.2776460336e-4, abs=1e-12)
    assert nearest(long, ["look", "go to desk 1"]) is None
