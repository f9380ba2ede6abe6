"""The event loop that our processes run on: uvloop's where the extra `fast` is installed, else asyncio's own."""

import asyncio
import contextlib
import faulthandler
import gc
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextvars import ContextVar, copy_context
from importlib.util import find_spec
from types import FrameType
from typing import Any, TypeVar

from proctor.own_code import is_library

log = logging.getLogger(__name__)

GC_THRESHOLDS = (10_000, 10, 10)
"""Arguments of `gc.set_threshold`. A turn makes hundreds of objects that live for milliseconds, and hardly any cycles:
Python's default of 700 would scan the live ones every other turn. The other two are Python's defaults, so that dead
cycles of long sessions are freed."""
Answer = TypeVar("Answer")
BLOCKED_S = 1.0
"""An event loop that is late by less is only busy."""
STANDARD_ERROR = 2
LOOK_S = 0.25
"""How often a `BlockWatch` looks."""
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


class BlockWatch:
    """Knows how long code has blocked the running loop, and logs each line that does for over BLOCKED_S, once."""

    def __init__(self) -> None:
        self._loop, self._home = asyncio.get_running_loop(), threading.get_ident()
        self._ticked_at, self._blocked_s = time.monotonic(), 0.0
        self._lock, self._prompts, self._prompt_s = threading.Lock(), 0, 0.0
        self._said: set[str] = set()

    def blocked_s(self) -> float:
        """How long the loop was blocked in all; the time at a prompt is part of it."""
        since_s = time.monotonic() - self._ticked_at
        return self._blocked_s + (since_s if self._prompts or since_s - LOOK_S > BLOCKED_S else 0.0)

    def prompt_s(self) -> float:
        """How long somebody was typing at prompts in all."""
        return self._prompt_s + (time.monotonic() - self._ticked_at if self._prompts else 0.0)

    @contextlib.contextmanager
    def at_prompt(self) -> Iterator[None]:
        """While inside, somebody types: the loop counts as blocked, by no mistake of the code's."""
        self._tick(prompts=1)
        try:
            yield
        finally:
            self._tick(prompts=-1)

    def _tick(self, prompts: int = 0) -> None:
        with self._lock:
            self._blocked_s, self._prompt_s, self._ticked_at = self.blocked_s(), self.prompt_s(), time.monotonic()
            self._prompts += prompts

    async def beat(self) -> None:
        """Know that the loop runs."""
        while True:
            self._tick()
            await asyncio.sleep(LOOK_S)

    def look(self, over: threading.Event) -> None:
        """Log what blocks the loop, in a thread: code of one task that runs at two looks in a row."""
        before = None
        while not over.wait(LOOK_S):
            late = not self._prompts and time.monotonic() - self._ticked_at - LOOK_S > BLOCKED_S
            task = asyncio.current_task(self._loop) if late else None
            if task is not None and task is before and (where := self._place(task)) and where not in self._said:
                self._said.add(where)
                told = "await there, call it by asyncio.to_thread, or let the function be a plain `def`"
                log.warning("%s has blocked the event loop for over %g s; %s", where, BLOCKED_S, told)
            before = task

    def _place(self, task: "asyncio.Task[Any]") -> str | None:
        """File and line of a world or an agent that the task executes now."""
        frame, first, place = sys._current_frames().get(self._home), getattr(task.get_coro(), "cr_frame", None), None
        while frame is not None:
            if place is None and not is_library(frame.f_code.co_filename):
                place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            if frame is first:
                return place
            frame = frame.f_back
        return None  # it executes another one by now


_WATCH: ContextVar[BlockWatch | None] = ContextVar("watch", default=None)


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """While inside, code that blocks the running loop is logged with its line, and `clock` stands still for it."""
    watch, over = BlockWatch(), threading.Event()
    token = _WATCH.set(watch)
    threading.Thread(target=watch.look, args=(over,), name="watch of the event loop", daemon=True).start()
    try:
        with beside(watch.beat()):
            yield
    finally:
        over.set()
        _WATCH.reset(token)


def at_prompt() -> contextlib.AbstractContextManager[None]:
    """A context in which `clock` stands still, since somebody types."""
    watch = _WATCH.get()
    return contextlib.nullcontext() if watch is None else watch.at_prompt()


def blocked_s() -> float:
    """How long code has blocked the loop of this task, as far as it is `watched`."""
    watch = _WATCH.get()
    return 0.0 if watch is None else watch.blocked_s()


def clock() -> float:
    """The monotonic clock for limits: it stands still while code blocks the loop, which sets it back by BLOCKED_S."""
    watch = _WATCH.get()
    return time.monotonic() if watch is None else time.monotonic() - watch.blocked_s()


def played_clock() -> float:
    """The monotonic clock for what trials take: it stands still while somebody types at a breakpoint's prompt."""
    watch = _WATCH.get()
    return time.monotonic() if watch is None else time.monotonic() - watch.prompt_s()


def run(main: Coroutine[None, None, Answer]) -> Answer:
    """Run a process's main coroutine and return its result. Raises what the coroutine raises."""
    with _tuned_collector(), asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main)


def in_thread(name: str, call: Callable[[], Any], *then: Callable[[], None]) -> asyncio.Future[Any]:
    """What a plain call returns, in a thread that holds up no end of the process; `then` is called once it is over."""
    loop, context = asyncio.get_running_loop(), copy_context()
    done: asyncio.Future[Any] = loop.create_future()

    def told(set_it: Callable[[Any], None], what: object) -> None:
        for each in then:
            each()
        if not done.done():
            set_it(what)

    def run() -> None:
        outcome: tuple[Callable[[Any], None], object]
        try:
            outcome = done.set_result, context.run(call)
        except StopIteration as error:  # which no future can hold
            outcome = done.set_exception, RuntimeError(f"raised {error!r}")
        except BaseException as error:
            outcome = done.set_exception, error
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(told, *outcome)

    threading.Thread(target=run, name=name, daemon=True).start()
    return done


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
