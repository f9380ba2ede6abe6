"""The worker's side of heartbeats, and the counter of changes that they and long polls wait on."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from task_server.http.transport import Caller
from task_server.wire.errors import ApiError, TaskServerError
from task_server.wire.messages import HEARTBEAT_S
from task_server.wire.worker_messages import TAKES_ALL, Heartbeat, HeartbeatAck

log = logging.getLogger(__name__)

BATCH_S = 0.1
"""Changes within this time are sent in one heartbeat, or in one answer to a long poll."""
RETRY_S = 0.5
TRUSTED = 0.7
"""The part of its lease for which a worker counts on a controller that does not answer. The controller counts the lease
from when the heartbeat arrived, which is later."""


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


class Reporter:
    """Sends a worker's heartbeats to its controller."""

    def __init__(
        self,
        controller: str,
        caller: Caller,
        changes: Changes,
        *,
        compose: Callable[[], Heartbeat],
        on_acknowledged: Callable[[HeartbeatAck], Awaitable[None]],
        on_failed: Callable[[TaskServerError], Awaitable[None]],
        now: Callable[[], float],
    ) -> None:
        self._trusted_until: float | None = None
        """None before the first acknowledged heartbeat."""
        self.refused_since: float | None = None
        """When the controller began to answer all heartbeats by a refusal; None if it does not answer, or accepts."""
        self._on_acknowledged, self._on_failed = on_acknowledged, on_failed
        self._url = f"{controller.rstrip('/')}/workers"
        self._caller, self._changes, self._compose, self._now = caller, changes, compose, now

    def lost(self) -> bool:
        """Whether a controller that answered before has not answered for so long that it may count us as lost."""
        return self._trusted_until is not None and self._now() >= self._trusted_until

    async def run(self) -> None:
        """Send heartbeats until cancelled: on each change, batched, and every HEARTBEAT_S.

        The pause after a heartbeat is at least 20 times as long as the heartbeat took, up to HEARTBEAT_S.
        """
        cause = ""
        while True:
            seen, sent_at = self._changes.count, self._now()
            try:
                await self.report()
            except TaskServerError as error:
                if cause != (cause := f"{type(error).__name__}: {error}"):
                    log.warning("the controller did not accept a heartbeat: %s", cause)
                refuses = isinstance(error, ApiError) and not error.retryable
                self.refused_since = (self.refused_since or self._now()) if refuses else None
                await asyncio.sleep(RETRY_S)
                await self._on_failed(error)
            else:
                if cause:
                    log.warning("the controller accepts heartbeats again")
                cause, self.refused_since = "", None
                pause_s = min(max(BATCH_S, 20 * (self._now() - sent_at)), HEARTBEAT_S)
                await asyncio.sleep(pause_s)
                await self._changes.wait(seen, HEARTBEAT_S - pause_s)

    async def report(self) -> None:
        """Send one heartbeat. Raises TaskServerError."""
        sent_at = self._now()
        answer = await self._caller.call(
            "POST", self._url, HeartbeatAck, self._compose(), deadline_s=HEARTBEAT_S, headers=TAKES_ALL
        )
        self._trusted_until = sent_at + TRUSTED * answer.lease_s
        await self._on_acknowledged(answer)
