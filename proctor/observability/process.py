"""Metrics of every Proctor process: its version, memory, CPU, open files, and the lag of its event loop."""

import asyncio
import os
import resource
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from proctor.observability.metrics import Histogram, family, gauge

LAG_SECONDS = (0.005, 0.02, 0.1, 0.5, 2.0)


class ProcessMetrics:
    """The metrics of this process; `role` is the label of its kind, `now` a monotonic clock."""

    def __init__(self, role: str, now: Callable[[], float] = time.monotonic) -> None:
        self._role, self._now = role, now
        self._lag = Histogram(
            "proctor_event_loop_lag_seconds", "Delay of a coroutine's wake-up after a sleep.", LAG_SECONDS
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

    def expose(self) -> str:
        """All metrics in the Prometheus text format."""
        build = {(self._role, version("proctor")): 1.0}
        return (
            gauge("proctor_build_info", "The version of this process, and its role.", ("role", "version"), build)
            + gauge("process_resident_memory_bytes", "Resident memory.", (), {(): _resident_bytes()})
            + family(
                "process_cpu_seconds_total", "counter", "CPU time, user and system.", (), {(): time.process_time()}
            )
            + gauge("process_open_fds", "Open files and sockets.", (), {(): _open_files()})
            + self._lag.expose()
        )


def _resident_bytes() -> int:
    """Current memory; where the system has no /proc, the peak so far."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _open_files() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0
