"""Logs what the start of a run waits for."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator

from eval_client.core.stall import STILL_S, StallReasons
from task_server.client.client import TaskClient

log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def explained(client: TaskClient) -> AsyncIterator[None]:
    """While inside, log every STILL_S seconds which calls to the task server are not answered."""
    begun = time.monotonic()

    async def explain() -> None:
        while True:
            await asyncio.sleep(STILL_S)
            now = time.monotonic()
            waits = StallReasons(now=now, server=client.calls.values())
            log.warning("the run has not started after %.0f s: %s", now - begun, "; ".join(waits.reasons()))

    explaining = asyncio.create_task(explain())
    try:
        yield
    finally:
        explaining.cancel()
