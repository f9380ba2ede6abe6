"""A counter that tasks can wait on: long polls and heartbeats use it."""

import asyncio
from contextlib import suppress


class Changes:
    """Counts changes. A caller that knows one count can wait for the next."""

    def __init__(self) -> None:
        self.count = 0
        self._next = asyncio.Event()
        self.closed = False

    def notify(self) -> None:
        """Count one change and wake every waiter."""
        self.count += 1
        self._next.set()
        self._next = asyncio.Event()

    def close(self) -> None:
        """Wake every waiter; `wait` returns at once from now on."""
        self.closed = True
        self.notify()

    async def wait(self, seen: int, timeout_s: float) -> None:
        """Return when the count is no longer `seen`, or after `timeout_s`."""
        if self.closed or self.count != seen or timeout_s <= 0:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._next.wait()
