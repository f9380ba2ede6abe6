"""An event loop with a clock of its own, which jumps to the next timer whenever nothing else is left to do."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        found = super().select(0)
        if not found and timeout is not None:
            self.now += timeout
        return found


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Its `time` passes only in sleeps and timeouts, of which none takes any time of ours."""

    def __init__(self) -> None:
        self._simulated = _Selector()
        super().__init__(self._simulated)

    def time(self) -> float:
        return self._simulated.now


def simulated(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, by a simulated clock that begins at 0."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(work)


def now() -> float:
    """The simulated time of the running loop."""
    return asyncio.get_running_loop().time()
