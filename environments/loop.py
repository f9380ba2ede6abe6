"""The event loop that our processes run on: uvloop's where the extra `fast` is installed, else asyncio's own."""

import asyncio
from collections.abc import Callable, Coroutine
from importlib.util import find_spec
from typing import TypeVar

Answer = TypeVar("Answer")


def run(main: Coroutine[None, None, Answer]) -> Answer:
    """What a process's main coroutine returns. Raises what it raises."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if find_spec("uvloop") is None:
        return None
    import uvloop

    return uvloop.new_event_loop
