"""What Ctrl-C does to a run: before the first trial it ends the run; then once drains, twice stops at once."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator

from eval_client.core.progress import RunResult
from eval_client.execute import RunRequest, Watcher, execute
from eval_client.run.context import RunContext

STORE_PATIENCE_S = 15.0
"""A draining run ends at once when a write has waited so long: whoever stops it (SIGKILL follows) waits no longer."""
LOOK_S = 1.0
STOPPED_BY_USER = "interrupted"


class Interrupts:
    """Executes a run that can be told to stop; `say` gets what its user is to know of that."""

    def __init__(self, order: RunRequest, watch: Watcher, say: Callable[[str], None]) -> None:
        self.order = order
        self._watch, self._say = watch, say
        self._presses = 0
        self._played: RunContext | None = None
        self._main: asyncio.Task[RunResult] | None = None
        self._giving_up: asyncio.Task[None] | None = None

    async def execute(self) -> RunResult:
        """Execute the run; CancelledError where it was ended at once. Raises what `execute` does."""
        self._main = asyncio.create_task(execute(self.order, self._watched))
        try:
            return await self._main
        finally:
            if self._giving_up is not None:
                self._giving_up.cancel()

    @contextlib.contextmanager
    def _watched(self, played: RunContext) -> Iterator[None]:
        self._played = played
        try:
            with self._watch(played):
                yield
        finally:
            self._played = None
            if self._giving_up is not None:
                self._giving_up.cancel()

    def pressed(self) -> None:
        """Ctrl-C was pressed, or what means the same."""
        self._presses += 1
        assert self._main is not None
        if self._played is None or self._presses > 2:
            self._main.cancel()
        elif self._presses == 1:
            self._say("\ndraining: trials under way are played to their end; Ctrl-C again stops at once")
            self._played.runner.drain(STOPPED_BY_USER)
            self._giving_up = asyncio.create_task(self._give_up_on_store(self._played))
        else:
            self._played.runner.abandon(STOPPED_BY_USER)

    async def _give_up_on_store(self, played: RunContext) -> None:
        """End a draining run at once when its store takes nothing: to drain would be to wait for that."""
        since, waiting_s = time.monotonic(), 0.0
        while waiting_s < STORE_PATIENCE_S:
            await asyncio.sleep(LOOK_S)
            asked = played.journal.waiting_since
            waiting_s = 0.0 if asked is None else time.monotonic() - max(since, asked)
        turns, results = played.journal.not_durable()
        trouble = played.runner.progress.trouble or "the store does not answer"
        lost = f"not stored: {turns} turns and {results} results, which a resume asks for again"
        self._say(f"stopped at once: {trouble}; {lost}")
        played.runner.abandon(STOPPED_BY_USER)
