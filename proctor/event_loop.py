"""The event loop that our processes run on: uvloop's where the extra `fast` is installed, else asyncio's own."""

import asyncio
import contextlib
import gc
from collections.abc import Callable, Coroutine, Iterator
from importlib.util import find_spec
from typing import TypeVar

COLLECT_AFTER = (10_000, 10, 10)
"""Of `gc.set_threshold`. A turn makes hundreds of objects that live for some milliseconds, and hardly a cycle: Python's
own 700 would look at those under way every other turn. The other two are Python's: dead cycles of sessions that lived
long must not pile up."""
Answer = TypeVar("Answer")


def run(main: Coroutine[None, None, Answer]) -> Answer:
    """What a process's main coroutine returns. Raises what it raises."""
    with _seldom_collecting(), asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main)


@contextlib.contextmanager
def _seldom_collecting() -> Iterator[None]:
    """What is loaded by now is never looked at again, and what comes seldom: a seventh less CPU for a client's turn."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if find_spec("uvloop") is None:
        return None
    import uvloop

    return uvloop.new_event_loop
