"""Logs what the start of a run waits for."""

import asyncio
import logging
import time

from eval_client.core.stall import STILL_S, StallReasons
from task_server.client.client import TaskClient

log = logging.getLogger(__name__)


async def explain(client: TaskClient) -> None:
    """Log every STILL_S seconds which calls to the task server are not answered."""
    begun = time.monotonic()
    while True:
        await asyncio.sleep(STILL_S)
        now = time.monotonic()
        waits = StallReasons(now=now, server=client.calls.values())
        log.warning("the run has not started after %.0f s: %s", now - begun, "; ".join(waits.reasons()))
