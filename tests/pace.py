"""How fast this machine is, so that no test depends on absolute time: a deadline scales, a budget is a multiple.

The yardstick is the machine of benchmarks/RESULTS.md, and on it a fixed piece of Python work, `piece()`, which takes
it 1 ms of CPU (PIECE_S). A deadline is written as seconds on that machine and multiplied by FACTOR:

    async with asyncio.timeout(slowly(10)):

A budget of CPU is written as seconds of that machine too. A Meter times the work and the piece by turns in the same
process, takes the best of each, and gives what the work would take there: its multiple of the piece.

    assert cost_s(lambda: load(path), tries=8) < 0.010  # ten pieces

FACTOR is measured once for each test session, by the process that starts first. Workers of pytest-xdist and child
processes get it by the variable PROCTOR_TEST_PACE, which a person can set too: `PROCTOR_TEST_PACE=4 make test`.
"""

import asyncio
import os
import statistics
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

VARIABLE = "PROCTOR_TEST_PACE"
PIECE_S = 0.001
"""CPU of `piece()` on the machine of RESULTS.md: so that a game's load, a shop's query and a page's step, timed beside
pieces, cost what stands there."""
MOST = 20.0
"""A machine that is slower than this fails its tests."""
BUSY_VARIABLE = "PROCTOR_TEST_BUSY"
BUSY_PROCESSORS = float(os.environ.get(BUSY_VARIABLE, "2"))
"""How many processors one test keeps busy: a client and a server, say; of tests that mostly wait, a part of one."""
_LOOKS, _PIECES = 9, 20
"""So many times so many pieces are timed for FACTOR: 0.2 s on the machine of RESULTS.md."""
_BESIDE = 3
"""So many pieces are timed before and after what a Meter times."""


def piece() -> int:
    """The fixed work: strings, a dictionary, a sort and integers, as the code under test has them."""
    found: dict[str, list[int]] = {}
    for number in range(3_000):
        found.setdefault(f"item {number * number % 977}", []).append(number)
    total = sum(len(word) for word in " ".join(sorted(found)).split())
    for number in range(12_000):
        total += number * number
    return total


def piece_s(times: int = 20) -> float:
    """CPU of the piece in this process now, best of so many, in seconds."""
    best = float("inf")
    for _ in range(times):
        began = time.process_time()
        piece()
        best = min(best, time.process_time() - began)
    return best


class Meter:
    """What work costs on the machine of RESULTS.md: `with meter:` around each try of it, then `cost_s`."""

    _latest = (-float("inf"), float("inf"))
    """CPU time of this process after the latest pieces, and the best of them, for work that follows at once."""

    def __init__(self) -> None:
        self._tries: list[float] = []
        self._pieces: list[float] = []

    def __enter__(self) -> Self:
        ended, best = Meter._latest
        at_once = 0 <= time.process_time() - ended < PIECE_S
        self._pieces.append(best if at_once else piece_s(_BESIDE))
        self._began = time.process_time()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self._tries.append(time.process_time() - self._began)
        self._pieces.append(piece_s(_BESIDE))
        Meter._latest = time.process_time(), self._pieces[-1]

    @property
    def cost_s(self) -> float:
        """CPU in seconds of that machine, all threads of this process: best try over best piece."""
        return min(self._tries) / min(self._pieces) * PIECE_S


def cost_s(work: Callable[[], object], tries: int = 1) -> float:
    """What a call costs on the machine of RESULTS.md, in seconds of CPU: best of so many tries."""
    meter = Meter()
    for _ in range(tries):
        with meter:
            work()
    return meter.cost_s


def slowly(seconds: float) -> float:
    """A deadline of so many seconds on the machine of RESULTS.md, for this machine as it is now."""
    return seconds * FACTOR


def until(true: Callable[[], bool], within_s: float = 60.0, seen: Callable[[], object] = lambda: "") -> None:
    """Returns as soon as a condition holds; it must within so long a deadline. `seen` says what there is instead.

    Between two looks it waits twice as long as a look takes: what is looked at needs the processor too. A fiftieth of
    the time since the first one is waited at least: long waits cost little.
    """
    began = looked = time.monotonic()
    give_up = looked + slowly(within_s)
    while not true():
        now = time.monotonic()
        assert now < give_up, f"not within {slowly(within_s):.0f} s: {seen()}"
        time.sleep(max(0.02, 2 * (now - looked), (now - began) / 50))
        looked = time.monotonic()


async def in_time(true: Callable[[], bool], within_s: float = 60.0) -> None:
    """`until` for a test in an event loop, where what is waited for may need the loop; its looks cost little."""
    async with asyncio.timeout(slowly(within_s)):
        while not true():  # noqa: ASYNC110 - what changes it sets no event
            await asyncio.sleep(0.001)


def factor(pace: float, processes: int, processors: int, busy: float = BUSY_PROCESSORS) -> float:
    """By how much deadlines grow: the pace of one process, and the share that parallel test processes leave each."""
    share = max(1.0, busy * processes / processors) if processes > 1 else 1.0
    return min(MOST, max(1.0, pace * share))


def _pace() -> float:
    """How many times as long as on the machine of RESULTS.md work takes here now, by the clock on the wall."""
    given = os.environ.get(VARIABLE)
    if given is not None:
        return _read(given)
    looks = []
    for _ in range(_LOOKS):
        began = time.perf_counter()
        for _ in range(_PIECES):
            piece()
        looks.append((time.perf_counter() - began) / _PIECES)
    measured = min(MOST, max(1.0, statistics.median(looks) / PIECE_S))
    os.environ[VARIABLE] = f"{measured:.2f}"
    return measured


def _read(given: str) -> float:
    try:
        return float(given)
    except ValueError:
        raise ValueError(
            f"{VARIABLE}: {given!r} is not a number; give 1 for a fast machine, 4 for a slow one"
        ) from None


FACTOR = factor(_pace(), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")), os.cpu_count() or 1)
"""How many times slower than the machine of RESULTS.md this one is now, from 1 to MOST."""
