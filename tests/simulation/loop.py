"""An event loop in virtual time, without threads or sockets, that runs many processes.

Everything a task schedules carries its context, and the context says whose it is. So a process that is killed simply
never goes on, not even to its `finally`; one that is stopped finds all that arrived meanwhile when it is continued; and
the clock leaps to whatever is due next.
"""

import asyncio
import contextvars
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from concurrent.futures import Executor
from enum import Enum
from typing import Any, TypeVar, TypeVarTuple, Unpack, cast

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")
Work = Generator[Any, None, Result] | Coroutine[Any, Any, Result]

THREAD_S = 0.001
"""What is given to a thread is done after this long, by the loop itself, where nothing else is said."""


class State(Enum):
    """What a process is doing."""

    RUNS = "runs"
    STOPPED = "stopped"
    DEAD = "dead"


class Handle(asyncio.TimerHandle):
    """What is to be called, at once or at a moment: without what asyncio adds, which costs more than many calls."""

    __slots__ = ("is_timer",)
    _callback: Callable[..., object]
    _args: Sequence[Any]
    _cancelled: bool
    _context: contextvars.Context

    def __init__(
        self,
        callback: Callable[..., object],
        args: Sequence[Any],
        context: contextvars.Context | None,
        *,
        is_timer: bool = False,
    ) -> None:
        self._callback, self._args, self.is_timer = callback, args, is_timer
        self._context = context if context is not None else contextvars.copy_context()
        self._cancelled = False

    def cancel(self) -> None:
        self._cancelled = True


class Process:
    """A process: whatever its context is found in. Its clock began at a moment of its own."""

    def __init__(self, name: str, clock_began: float) -> None:
        self.name = name
        self.state = State.RUNS
        self.clock_began = clock_began
        self.context = contextvars.copy_context()
        self.context.run(_PROCESS.set, self)
        self.tasks: list[asyncio.Task[Any]] = []
        """All ever made: a killed task that nobody held would be put away in an orderly manner, by its destructor."""
        self.parked: deque[Handle] = deque()
        """What has come due since it was stopped or killed."""


_PROCESS: contextvars.ContextVar[Process] = contextvars.ContextVar("process")
NOBODY = contextvars.Context()
"""For what happens by itself, whoever lives or dies."""


def current() -> Process:
    """Whose code runs now."""
    return _PROCESS.get()


class NothingLeft(Exception):
    """Nothing is due and nothing is ready: whatever is waited for will never come."""


class VirtualLoop(asyncio.AbstractEventLoop):
    """The part of an event loop that our code uses; the rest raises NotImplementedError."""

    def __init__(self) -> None:
        self._now = 0.0
        self._ready: deque[Handle] = deque()
        self._timers: list[tuple[float, int, Handle]] = []
        self._order = itertools.count()
        self.errors: list[str] = []
        """What nobody caught."""
        self.thread_s: Callable[[], tuple[float, float]] = lambda: (THREAD_S, 0.0)
        """After how long a thread does what it is given, and how much later that is known."""

    def run(self, until: Callable[[], bool], latest: float) -> None:
        """Run until something holds, at most to a moment. Raises NothingLeft."""
        asyncio._set_running_loop(self)
        try:
            while not until() and self._now < latest:
                self._turn()
        finally:
            asyncio._set_running_loop(None)

    def _turn(self) -> None:
        timers, ready = self._timers, self._ready
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
        if not ready:
            if not timers:
                raise NothingLeft
            self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now:
            ready.append(heapq.heappop(timers)[2])
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                self._execute(handle)

    def _execute(self, handle: Handle) -> None:
        process = handle._context.get(_PROCESS)
        if process is not None and process.state is not State.RUNS:
            process.parked.append(handle)
            return
        try:
            handle._context.run(handle._callback, *handle._args)
        except Exception as error:
            self.call_exception_handler({"message": f"in {handle._callback}", "exception": error})

    def stop_process(self, process: Process) -> None:
        """SIGSTOP."""
        if process.state is State.RUNS:
            process.state = State.STOPPED

    def continue_process(self, process: Process) -> None:
        """SIGCONT: first what its sockets hold, then the timers that ran out meanwhile, as event loops do it."""
        if process.state is State.STOPPED:
            process.state = State.RUNS
            self._ready.extend(sorted(process.parked, key=lambda handle: handle.is_timer))
            process.parked.clear()

    def put_away(self, process: Process) -> None:
        """Let the tasks of a process end by cancellation, when nothing they do matters any more."""
        process.state = State.STOPPED
        self.continue_process(process)
        for task in process.tasks:
            if not task.done():
                task.cancel()

    def time(self) -> float:
        return self._now

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_soon(
        self,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: contextvars.Context | None = None,
    ) -> Handle:
        handle = Handle(callback, args, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: contextvars.Context | None = None,
    ) -> Handle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: contextvars.Context | None = None,
    ) -> Handle:
        handle = Handle(callback, args, context, is_timer=True)
        heapq.heappush(self._timers, (when, next(self._order), handle))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Work[Result], *, name: str | None = None, context: contextvars.Context | None = None, **_: Any
    ) -> asyncio.Task[Result]:
        task: asyncio.Task[Result] = asyncio.Task(coro, loop=self, name=name, context=context)
        owner = context.get(_PROCESS) if context is not None else _PROCESS.get(None)
        if owner is not None:
            owner.tasks.append(task)
        return task

    def run_in_executor(
        self,
        executor: Executor | None,
        func: Callable[[Unpack[Arguments]], Result],
        *args: *Arguments,
    ) -> asyncio.Future[Result]:
        done: asyncio.Future[Result] = self.create_future()
        before_s, after_s = self.thread_s()

        def know(result: Result | None, error: Exception | None) -> None:
            if done.done():
                return
            if error is None:
                done.set_result(cast(Result, result))
            else:
                done.set_exception(error)

        def work() -> None:
            if done.cancelled():
                return
            result, error = None, None
            try:
                result = func(*args)
            except Exception as raised:
                error = raised
            if after_s:
                self.call_later(after_s, know, result, error)
            else:
                know(result, error)

        self.call_later(before_s, work)
        return done

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.errors.append(f"{context.get('message')}: {context.get('exception')!r}")
