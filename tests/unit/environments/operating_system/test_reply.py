"""What of a reply is done, and what the agent is told of an output (specification section 3.3)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.operating_system.observation import HEAD, render
from environments.operating_system.reply import MAX_ANSWER_BYTES, Bash, Commit, Invalid, parse
from proctor.sandbox.shell import CommandResult
from tests.support import SHARED_DATA


def test_the_longest_answer_is_still_one() -> None:
    assert parse(f"Act: answer({'x' * MAX_ANSWER_BYTES})") == Commit("x" * MAX_ANSWER_BYTES)


@given(st.text())
def test_no_reply_breaks_the_parser(reply: str) -> None:
    assert isinstance(parse(f"Act: {reply}"), Bash | Commit | Invalid)
    assert parse(reply + "\nAct: finish") == Commit(None)


KINDER = {
    "line ends of Windows": [14, 21, 73, 123, 206, 260, 354, 398, 410, 443, 487, 495, 510, 567],
    "an indented closing fence": [30, 176, 377, 384, 409, 555],
    "a blank behind the fence": [134, 237, 281, 318, 444, 533, 598],
    "line ends of Windows, and an indented closing fence": [163, 323, 415],
}
"""Lines of the recorded replies in which only we find a block; the published code runs the empty command."""


@pytest.mark.shared
def test_every_recorded_reply_means_what_the_published_code_says_but_for_kinder_fences() -> None:
    lines = (SHARED_DATA / "os/published_replies.jsonl").read_text(encoding="utf-8").splitlines()
    others = []
    for number, line in enumerate(lines, 1):
        recorded = json.loads(line)
        action, published = parse(recorded["reply"]), recorded["published"]
        match published["action"]:
            case "bash":
                if action != Bash(published["content"]):
                    assert published["content"] == ""
                    assert isinstance(action, Bash)
                    others.append(number)
            case "commit":
                assert action == Commit(published["content"]), number
            case _:
                assert isinstance(action, Invalid), number
    assert len(lines) == 600
    assert others == sorted(number for numbers in KINDER.values() for number in numbers)


def shown(output: bytes, *, timed_out: bool = False, restarted: bool = False) -> str:
    return render(CommandResult(output=output, status=0, timed_out=timed_out, restarted=restarted), 30.0)


def test_characters_are_counted_and_not_bytes() -> None:
    assert shown(("ä" * 800).encode()) == HEAD + "ä" * 800


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert shown(b"a\xffb") == HEAD + "a\N{REPLACEMENT CHARACTER}b"
