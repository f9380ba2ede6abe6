"""A worker's side of the heartbeat."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from task_server.changes import Changes
from task_server.http.transport import Caller
from task_server.wire.errors import TaskServerError, TurnConflict
from task_server.wire.messages import HEARTBEAT_S, Heartbeat, HeartbeatAck

log = logging.getLogger(__name__)

BATCH_S = 0.1
"""Changes within this time make one heartbeat, or one answer to a long poll."""
RETRY_S = 0.5


@dataclass(frozen=True, slots=True)
class Contact:
    """Pure: whether a worker may still believe that its controller counts on it."""

    until: float | None = None

    def acknowledged(self, sent_at: float, lease_s: float) -> "Contact":
        """The controller took a heartbeat that was sent then; it counts from when it came, which is later."""
        return Contact(sent_at + 0.7 * lease_s)

    def lost(self, now: float) -> bool:
        """True once a controller that was there has been silent for 0.7 of its lease."""
        return self.until is not None and now >= self.until


class Reporter:
    """Tells the controller how a worker stands, again and again."""

    def __init__(
        self,
        controller: str,
        caller: Caller,
        changes: Changes,
        *,
        compose: Callable[[], Heartbeat],
        on_taken: Callable[[HeartbeatAck], Awaitable[None]],
        on_replaced: Callable[[], Awaitable[None]],
        now: Callable[[], float],
    ) -> None:
        self.contact = Contact()
        self._on_taken, self._on_replaced = on_taken, on_replaced
        self._url = f"{controller.rstrip('/')}/workers"
        self._caller = caller
        self._compose = compose
        self._changes = changes
        self._now = now

    async def run(self) -> None:
        """Heartbeats for ever: on each change, batched, and every HEARTBEAT_S; at most a twentieth of the time."""
        silent = False
        while True:
            seen, sent_at = self._changes.count, self._now()
            try:
                await self.report()
            except TaskServerError as error:
                if not silent:
                    log.warning("the controller takes no heartbeat: %s: %s", type(error).__name__, error)
                silent = True
                if isinstance(error, TurnConflict):
                    await self._on_replaced()
                await asyncio.sleep(RETRY_S)
            else:
                silent = False
                pause_s = min(max(BATCH_S, 20 * (self._now() - sent_at)), HEARTBEAT_S)
                await asyncio.sleep(pause_s)
                await self._changes.wait(seen, HEARTBEAT_S - pause_s)

    async def report(self) -> None:
        """One heartbeat. Raises TaskServerError."""
        sent_at = self._now()
        taken = await self._caller.call("POST", self._url, HeartbeatAck, self._compose(), deadline_s=HEARTBEAT_S)
        self.contact = self.contact.acknowledged(sent_at, taken.lease_s)
        await self._on_taken(taken)
