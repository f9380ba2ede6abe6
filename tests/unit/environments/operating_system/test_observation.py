"""What the agent is told of an output (specification section 3.3)."""

import pytest

from environments.operating_system.observation import EMPTY, HEAD, TRUNCATED, render, text
from proctor.sandbox import CommandResult


def shown(output: bytes, *, timed_out: bool = False, restarted: bool = False) -> str:
    return render(CommandResult(output=output, status=0, timed_out=timed_out, restarted=restarted), 30.0)


def test_an_output_follows_its_heading_and_a_blank_line() -> None:
    assert shown(b"a\nb\n") == "The output of the OS:\n\na\nb"


@pytest.mark.parametrize("output", [b"", b"\n", b"\n\n", b"\x1b[0m\n"])
def test_no_output_says_so(output: bytes) -> None:
    assert shown(output) == "The output of the OS is empty."


def test_801_characters_are_cut_to_780_and_800_are_not() -> None:
    assert shown(b"x" * 800) == HEAD + "x" * 800
    assert shown(b"x" * 801) == HEAD + "x" * 780 + "\n" + TRUNCATED


def test_characters_are_counted_and_not_bytes() -> None:
    assert shown(("ä" * 800).encode()) == HEAD + "ä" * 800


def test_trailing_newlines_do_not_count() -> None:
    assert shown(b"x" * 800 + b"\n") == HEAD + "x" * 800


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert shown(b"a\xffb") == HEAD + "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize(
    "escaped",
    [
        b"\x1b[1;31mred\x1b[0m",
        b"\x1b]0;title\x07red",
        b"\x1b]8;;http://x\x1b\\red\x1b]8;;\x1b\\",
        b"\x1b(Bred",
        b"re\x1b[?25ld",
    ],
)
def test_escape_sequences_are_removed(escaped: bytes) -> None:
    assert text(escaped) == "red"


def test_an_interrupted_command_is_told_with_its_limit_even_when_the_output_was_cut() -> None:
    assert shown(b"x" * 900, timed_out=True).endswith(
        f"{TRUNCATED}\n[the command was interrupted after the time limit of 30 s]"
    )


def test_a_restarted_shell_is_told() -> None:
    assert shown(b"", restarted=True) == f"{EMPTY}\n[the shell has ended; a new one was started in /]"
