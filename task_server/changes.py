"""A counter that can be waited on: what long polls and heartbeats listen to."""

import asyncio


class Changes:
    """Counts changes of something; whoever knows a count can wait for the next."""

    def __init__(self) -> None:
        self.count = 0
        self._next = asyncio.Event()
        self.closed = False

    def notify(self) -> None:
        """Something changed: everyone who waits goes on."""
        self.count += 1
        self._next.set()
        self._next = asyncio.Event()

    def close(self) -> None:
        """Nobody waits from now on."""
        self.closed = True
        self.notify()

    async def wait(self, seen: int, timeout_s: float) -> None:
        """Come back when the count is no longer `seen`, or after `timeout_s`."""
        if self.closed or self.count != seen or timeout_s <= 0:
            return
        try:
            async with asyncio.timeout(timeout_s):
                await self._next.wait()
        except TimeoutError:
            return
