"""Publishes a run's live view in its store, where viewers read it."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator

from eval_client.monitor.snapshot import RunView
from eval_client.store.journal import Journal
from proctor.event_loop import beside

PUBLISH_S, COSTS, SELDOM_S = 1.0, 100.0, 5.0
"""Views follow each other after a second, or after so many times as long as one took to make, but within SELDOM_S."""


@contextlib.contextmanager
def published(journal: Journal, now: Callable[[], RunView]) -> Iterator[None]:
    """While inside, write the present view with the journal's commits, and at the end the last one.

    Needs a running loop.
    """

    async def repeat() -> None:
        while True:
            begun = time.perf_counter()
            if journal.published:
                journal.publish(now().model_dump_json())
            await asyncio.sleep(min(SELDOM_S, max(PUBLISH_S, COSTS * (time.perf_counter() - begun))))

    try:
        with beside(repeat()):
            yield
    finally:
        journal.publish(now().model_dump_json())
