"""The event loop of our processes."""

import gc
import weakref

import pytest

from proctor import event_loop


class Cycle:
    """An object that only the garbage collector can free."""

    def __init__(self) -> None:
        self.self = self


async def garbage(count: int) -> int:
    """The number of cycles, of those made, that are alive at the end."""
    left = [weakref.ref(Cycle()) for _ in range(count)]
    return sum(ref() is not None for ref in left)


def test_cycles_are_collected_seldom_but_collected() -> None:
    assert gc.get_threshold()[0] < event_loop.GC_THRESHOLDS[0]
    count = 20 * event_loop.GC_THRESHOLDS[0]
    assert 0 < event_loop.run(garbage(count)) < count / 2


def test_what_is_loaded_is_left_out_while_the_loop_runs_and_no_longer() -> None:
    before = gc.get_threshold(), gc.get_freeze_count()

    async def inside() -> tuple[tuple[int, int, int], int]:
        return gc.get_threshold(), gc.get_freeze_count()

    thresholds, frozen = event_loop.run(inside())
    assert thresholds == event_loop.GC_THRESHOLDS
    assert frozen > 10_000
    assert (gc.get_threshold(), gc.get_freeze_count()) == before


def test_all_is_as_before_after_an_error() -> None:
    before = gc.get_threshold()

    async def fails() -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        event_loop.run(fails())
    assert gc.get_threshold() == before
