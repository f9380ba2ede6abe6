"""Isolates trials that lost their worker, so that a trial that kills workers does not cost another its last attempt."""

import asyncio
import contextlib
from collections.abc import AsyncIterator


class Isolation:
    """A trial whose previous attempt lost its worker is a suspect. On its last attempt it runs beside no other suspect.

    A trial waits at most `patience_s` seconds for the others; after that it runs beside them.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._suspects = 0
        self._last_tries = 0
        self._waiting = 0
        self._changed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def entered(self, *, suspect: bool, last_try: bool) -> AsyncIterator[None]:
        """Surround one attempt. Only suspects wait."""
        if not suspect:
            yield
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._patience_s):
                await self._wait_for_others(last_try)
        self._count(1, last_try)
        try:
            yield
        finally:
            self._count(-1, last_try)

    async def _wait_for_others(self, last_try: bool) -> None:
        """Return once the attempt may begin. Last attempts that wait go before other suspects."""
        self._waiting += last_try
        try:
            while self._last_tries or (self._suspects if last_try else self._waiting):
                await self._changed.wait()
        finally:
            self._waiting -= last_try

    def _count(self, change: int, last_try: bool) -> None:
        self._suspects += change
        self._last_tries += change * last_try
        self._changed.set()
        self._changed = asyncio.Event()
