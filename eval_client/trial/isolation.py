"""Keeps trials apart that lost their worker: what kills workers does not take a bystander's last try with it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator


class Isolation:
    """Trials whose last attempt lost its worker are suspects. One on its last try is played beside no other suspect."""

    def __init__(self, patience_s: float) -> None:
        """A trial waits at most `patience_s` seconds for the others, then it is played beside them."""
        self._patience_s = patience_s
        self._suspects = 0
        self._last_tries = 0
        self._waiting = 0
        self._changed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def entered(self, *, suspect: bool, last_try: bool) -> AsyncIterator[None]:
        """Around one attempt. Only suspects wait, and other trials never do."""
        if not suspect:
            yield
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._patience_s):
                await self._apart(last_try)
        self._count(1, last_try)
        try:
            yield
        finally:
            self._count(-1, last_try)

    async def _apart(self, last_try: bool) -> None:
        """Return once the attempt may begin. A last try that waits goes before suspects that are not on theirs."""
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
