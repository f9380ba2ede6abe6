"""Counts the resources that this process holds, so that a leak shows as growth."""

import asyncio
import os
import sys
import threading
from pathlib import Path
from typing import NamedTuple


class HeldResources(NamedTuple):
    """Counts of what a process can leak; processes and files are 0 where there is no /proc."""

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
    files = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    return HeldResources(len(asyncio.all_tasks()) - 1, threading.active_count(), _descendants(), files)


def _descendants() -> int:
    """How many processes descend from this one, children of children included."""
    parents = dict(filter(None, map(_parent, Path("/proc").glob("[0-9]*/stat"))))
    found, wave = 0, {os.getpid()}
    while wave := {child for child, parent in parents.items() if parent in wave}:
        found += len(wave)
    return found


def _parent(stat: Path) -> tuple[int, int] | None:
    """A process and its parent; None where the process has ended."""
    try:
        fields = stat.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return int(stat.parent.name), int(fields[1])
