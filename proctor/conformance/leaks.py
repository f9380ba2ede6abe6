"""Counts the resources that this process holds, so that a leak shows as growth."""

import asyncio
import threading
from typing import NamedTuple

import psutil


class HeldResources(NamedTuple):
    """Counts of what a process can leak."""

    tasks: int
    threads: int
    processes: int
    files: int

    def growth(self, before: "HeldResources") -> str:
        """The counts that grew, in words."""
        counts = zip(self._fields, self, before, strict=True)
        return ", ".join(f"{now} {name} ({then} before)" for name, now, then in counts if now > then)


async def held_resources() -> HeldResources:
    """The counts of this process, without the calling task."""
    process = psutil.Process()
    children = len(process.children(recursive=True))
    return HeldResources(len(asyncio.all_tasks()) - 1, threading.active_count(), children, process.num_fds())
