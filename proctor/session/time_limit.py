"""The time limit of an attempt, and what does not count in it: waits for endpoints and servers, and blocked loops."""

import asyncio
from contextvars import ContextVar
from typing import Self

from proctor.event_loop import blocked_s, clock


class TimeLimit:
    """The time limit of an attempt, as a context that raises TimeoutError. It stands still while what it waits for is
    not timed, and while code blocks the event loop: that moves no timer, which is set anew where it rings too early.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds, self._scope = seconds, asyncio.timeout(None)
        self._until: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waits = 0
        self.waited_s = 0.0
        """How long it stood still for what is not timed."""

    async def __aenter__(self) -> Self:
        await self._scope.__aenter__()
        TIME_LIMIT.set(self)
        self._blocked_s = blocked_s()
        if self._seconds is not None:
            self._set(asyncio.get_running_loop().time() + self._seconds)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        self._until = None
        if self._timer is not None:
            self._timer.cancel()
        await self._scope.__aexit__(kind, error, None)

    @property
    def expired(self) -> bool:
        """Whether the time is over."""
        return self._scope.expired()

    def stop(self) -> None:
        """Stop the clock, also where it has rung just now and its task was awake already."""
        self._waits += 1
        if self._until is not None and self._scope.when() is not None and not self.expired:
            self._scope.reschedule(None)

    def go_on(self, waited_s: float) -> None:
        """Let the clock go on after a wait."""
        self._waits -= 1
        if self._waits == 0:
            self.waited_s += waited_s
            if self._until is not None:
                self._until += waited_s
                if self._timer is None:
                    self._set(self._until)

    def _set(self, until: float) -> None:
        self._until, self._timer = until, asyncio.get_running_loop().call_at(until, self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._until is None or self._waits:
            return
        before_s, self._blocked_s = self._blocked_s, blocked_s()
        self._until += self._blocked_s - before_s
        if (now := asyncio.get_running_loop().time()) < self._until:
            self._set(self._until)
        else:
            self._scope.reschedule(now)


TIME_LIMIT: ContextVar[TimeLimit | None] = ContextVar("time_limit", default=None)
"""The limit of the attempt that an asyncio task plays."""


class Untimed:
    """A block in which the running task is not out of time: what it waits for is not broken off."""

    seconds = 0.0
    """How long it took, over all times that it was entered."""

    def __enter__(self) -> None:
        self._begun, self._limit = clock(), TIME_LIMIT.get()
        if self._limit is not None:
            self._limit.stop()

    def __exit__(self, *_: object) -> None:
        waited_s = max(0.0, clock() - self._begun)
        self.seconds += waited_s
        if self._limit is not None:
            self._limit.go_on(waited_s)
