"""The paths of a turn and of a fault through the client's process grow by no call and no file."""

from collections.abc import Sequence

from benchmarks.turn_path import fault_path, files, path


def check(calls: Sequence[str], most_calls: int, most_files: int) -> None:
    """The bound of calls is a tenth above what is reached: a body that comes late adds a few."""
    listed = "\n".join(calls)
    assert len(calls) <= most_calls, listed
    assert len(files(calls)) <= most_files, listed


def test_a_turn_passes_through_no_more_calls_and_files_than_it_did() -> None:
    check(path(), 90, 16)


def test_a_task_servers_error_reaches_its_row_through_no_more_calls_and_files_than_it_did() -> None:
    check(fault_path(), 104, 20)
