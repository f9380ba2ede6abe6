"""The event loop that our processes run on: uvloop's where the extra `fast` is installed, else asyncio's own."""

import asyncio
import contextlib
import gc
import resource
import sys
from collections.abc import Callable, Coroutine, Iterator
from importlib.util import find_spec
from typing import Any, TypeVar

GC_THRESHOLDS = (10_000, 10, 10)
"""Arguments of `gc.set_threshold`. A turn makes hundreds of objects that live for milliseconds, and hardly any cycles:
Python's default of 700 would scan the live ones every other turn. The other two are Python's defaults, so that dead
cycles of long sessions are freed."""
Answer = TypeVar("Answer")
MOST_DESCRIPTORS = 65_536
"""No process of ours asks for more files and connections at once."""
FEW_DESCRIPTORS, DESCRIPTORS_BESIDE, DESCRIPTORS_EACH = 512, 128, 3
"""Those that a run may need anyhow, beside its trials, and for each trial (model, task server, sandbox)."""


def run(main: Coroutine[None, None, Answer]) -> Answer:
    """Run a process's main coroutine and return its result. Raises what the coroutine raises."""
    with _tuned_collector(), asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main)


def allow_descriptors(needed: int = MOST_DESCRIPTORS) -> int:
    """Let this process have so many files and connections open at once, as far as its hard limit goes; how many it may.

    Its soft limit is raised only if it has to be: 1,024 is a common one.
    """
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (sys.maxsize if each == resource.RLIM_INFINITY else each for each in limits)
    wanted = min(needed, hard, MOST_DESCRIPTORS)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, limits[1]))
    return max(soft, wanted)


def descriptors_for(trials: int) -> int:
    """The files and connections that so many trials at once may need."""
    return max(FEW_DESCRIPTORS, DESCRIPTORS_BESIDE + DESCRIPTORS_EACH * trials)


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
