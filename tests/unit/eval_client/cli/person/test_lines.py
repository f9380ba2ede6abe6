"""Lines that a person types on a terminal."""

import asyncio
import os
import pty
import termios
from collections.abc import Iterator

import pytest

from eval_client.cli.person.lines import TypedLines


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Where a person types, and the standard input of a program."""
    typing, standard_input = pty.openpty()
    yield typing, standard_input
    os.close(typing)
    os.close(standard_input)


def test_lines_of_a_terminal_come_one_at_a_time(terminal: tuple[int, int]) -> None:
    typing, standard_input = terminal
    lines = TypedLines(standard_input)
    os.write(typing, b"first\nsecond\n\x04")

    async def typed() -> list[str | None]:
        return [await lines.next() for _ in range(3)]

    assert asyncio.run(typed()) == ["first", "second", None]


def test_a_line_that_ctrl_c_threw_away_is_not_waited_for_while_the_loop_stands_still(
    terminal: tuple[int, int],
) -> None:
    """A terminal forgets at Ctrl-C what was typed: between the loop's word that there is a line and the read of it."""
    typing, standard_input = terminal
    os.write(typing, b"thrown away\n")

    async def interrupted() -> str | None:
        loop, forgotten = asyncio.get_running_loop(), asyncio.Event()

        def forget() -> None:
            termios.tcflush(standard_input, termios.TCIFLUSH)
            loop.remove_reader(standard_input)
            loop.call_later(0.05, forgotten.set)

        waiting = asyncio.create_task(TypedLines(standard_input).next())
        await asyncio.sleep(0)
        loop.add_reader(standard_input, forget)
        await forgotten.wait()
        os.write(typing, b"kept\n")
        return await waiting

    assert asyncio.run(interrupted()) == "kept"
