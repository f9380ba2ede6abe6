"""What Ctrl-C and `proctor stop` do.

Before the first trial they end the run; after that, one Ctrl-C drains the run and two stop it at once.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator

from eval_client.core.events import Abandon, Drain
from eval_client.core.progress import RunResult
from eval_client.run.context import RunContext
from eval_client.run.execute import execute
from eval_client.run.request import RunRequest, Watcher
from eval_client.store.connection import DatabaseError, StoreError
from proctor.tables.table import counted

STORE_PATIENCE_S = 15.0
"""A draining run ends at once when a write has waited for this long: a SIGKILL may follow the signal that drains it."""
LOOK_S = 1.0
STOPPED_BY_USER = "interrupted"


class Interrupts:
    """Executes a run that can be interrupted; `say` is called with messages for the user."""

    def __init__(self, request: RunRequest, watch: Watcher, say: Callable[[str], None]) -> None:
        self.request = request
        self._watch, self._say = watch, say
        self._presses = 0
        self._context: RunContext | None = None
        self._main: asyncio.Task[RunResult] | None = None
        self._giving_up: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None

    async def execute(self) -> RunResult:
        """Execute the run.

        Raises what `execute` does, and CancelledError for a Ctrl-C while no trials are played, or a third one.
        """
        self._main = asyncio.create_task(execute(self.request, self._watched))
        try:
            return await self._main
        finally:
            if self._giving_up is not None:
                self._giving_up.cancel()

    @contextlib.contextmanager
    def _watched(self, context: RunContext) -> Iterator[None]:
        self._context = context
        self._looking = asyncio.create_task(self._look_for_stop())
        try:
            with self._watch(context):
                yield
        finally:
            self._context = None
            if self._looking is not None:
                self._looking.cancel()
            if self._giving_up is not None:
                self._giving_up.cancel()

    def pressed(self) -> None:
        """Handle a Ctrl-C or an equivalent signal."""
        self._presses += 1
        assert self._main is not None
        if self._context is None or self._presses > 2:
            self._main.cancel()
        elif self._presses == 1:
            self._say("\ndraining: trials under way are played to their end; Ctrl-C again stops at once")
            self._context.runner.handle(Drain(STOPPED_BY_USER))
            self._giving_up = asyncio.create_task(self._give_up_on_store(self._context))
        else:
            self._context.runner.handle(Abandon(STOPPED_BY_USER))

    async def _look_for_stop(self) -> None:
        """Do what `proctor stop` asks for, as if Ctrl-C was pressed here."""
        while self._presses < 2:
            with contextlib.suppress(DatabaseError, StoreError):  # which the journal reports
                stop = await asyncio.to_thread(self.request.store.requested_stop)
                while self._presses < {None: 0, "drain": 1, "now": 2}[stop]:
                    self._say("\n`proctor stop` was called for this run")
                    self.pressed()
            await asyncio.sleep(LOOK_S)

    async def _give_up_on_store(self, context: RunContext) -> None:
        """End a draining run at once if its store accepts no writes, since draining would wait for them."""
        since, waiting_s = time.monotonic(), 0.0
        while waiting_s < STORE_PATIENCE_S:
            await asyncio.sleep(LOOK_S)
            asked = context.journal.waiting_since
            waiting_s = 0.0 if asked is None else time.monotonic() - max(since, asked)
        turns, results = context.journal.not_durable()
        trouble = context.progress.trouble or "the store does not answer"
        lost = f"not stored: {counted(turns, 'turn')} and {counted(results, 'result')}, which a resume asks for again"
        self._say(f"stopped at once: {trouble}; {lost}")
        context.runner.handle(Abandon(STOPPED_BY_USER))
