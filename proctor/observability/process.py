"""Metrics of every Proctor process: its version, memory, CPU, open files, and the lag of its event loop."""

import asyncio
import functools
import time
from collections.abc import Callable
from importlib.metadata import version

from prometheus_client import CollectorRegistry, Gauge, Histogram, ProcessCollector

LAG_SECONDS = (0.005, 0.02, 0.1, 0.5, 2.0)
_version = functools.cache(version)


class ProcessMetrics(CollectorRegistry):
    """The metrics of this process; `role` is the label of its kind, `now` a monotonic clock."""

    def __init__(self, role: str, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        build = Gauge(
            "proctor_build_info", "The version of this process, and its role.", ["role", "version"], registry=self
        )
        build.labels(role, _version("proctor")).set(1)
        ProcessCollector(registry=self)
        self._lag = Histogram(
            "proctor_event_loop_lag_seconds",
            "Delay of a coroutine's wake-up after a sleep.",
            buckets=LAG_SECONDS,
            registry=self,
        )

    async def sleep(self, seconds: float) -> None:
        """Sleep, and record the delay of the wake-up, during which the event loop was busy."""
        asleep = self._now()
        await asyncio.sleep(seconds)
        self._lag.observe(max(0.0, self._now() - asleep - seconds))

    async def watch(self, every_s: float = 0.5) -> None:
        """Call `sleep` in an endless loop, for processes that call it nowhere else."""
        while True:
            await self.sleep(every_s)
