"""What every process of ours says of itself: its version, memory, CPU, files, and how late its event loop is."""

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
    """The figures of this process; `role` is its part, `now` a monotonic clock."""

    def __init__(self, role: str, now: Callable[[], float] = time.monotonic) -> None:
        self._role, self._now = role, now
        self._lag = Histogram(
            "proctor_event_loop_lag_seconds", "How much later than asked a waiting coroutine went on.", LAG_SECONDS
        )

    async def sleep(self, seconds: float) -> None:
        """Sleep, and note by how much it took longer: so long the event loop was busy with something else."""
        asleep = self._now()
        await asyncio.sleep(seconds)
        self._lag.observe(max(0.0, self._now() - asleep - seconds))

    async def watch(self, every_s: float = 0.5) -> None:
        """Sleep again and again, for processes that have no such loop of their own."""
        while True:
            await self.sleep(every_s)

    def expose(self) -> str:
        """All of them, in the Prometheus text format."""
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
    """Now; where the system has no /proc, the most there ever was."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _open_files() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0
