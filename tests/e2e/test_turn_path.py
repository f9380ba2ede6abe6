"""The paths of a turn and of a fault through the client's process grow by no call and no file."""

import tempfile
from collections.abc import Callable, Sequence

from benchmarks.turn_path import fault_path, files, path
from tests.e2e.preloaded import python
from tests.pace import slowly
from tests.support import ROOT

TRIES = 3


def forked(arguments: list[str], environment: dict[str, str]) -> str:
    """What a forked program prints: its calls are those of one that is started."""
    with tempfile.TemporaryFile("w+") as printed:  # beside busy processes a pipe's 190 KB were cut at 64 KiB
        with python(*arguments, cwd=ROOT, environment=environment, stdout=printed) as playing:
            assert playing.wait(timeout=slowly(120)) == 0
        printed.seek(0)
        return printed.read()


def check(play: Callable[[], Sequence[str]], most_calls: int, most_files: int) -> None:
    """The bound of calls is a tenth above what is reached. The best of three counts; a late write adds a few."""
    for _ in range(TRIES):
        calls = play()
        if len(calls) <= most_calls and len(files(calls)) <= most_files:
            break
    listed = "\n".join(calls)
    assert len(calls) <= most_calls, listed
    assert len(files(calls)) <= most_files, listed


def test_a_turn_passes_through_no_more_calls_and_files_than_it_did() -> None:
    check(lambda: path(forked), 89, 26)


def test_a_task_servers_error_reaches_its_row_through_no_more_calls_and_files_than_it_did() -> None:
    check(lambda: fault_path(forked), 96, 23)
