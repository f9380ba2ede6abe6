"""Identifies the process that owns a sandbox or plays a run, and tells whether it has ended."""

import os
from pathlib import Path

from proctor.types import Value


class Owner(Value):
    """A process, distinguished from all others that had its pid before or since."""

    machine: str
    """Boot id of the kernel and number of the pid namespace: pids of another one mean nothing here."""
    pid: int
    started: str
    """Start time of the process in clock ticks since boot, from /proc."""

    @classmethod
    def current(cls) -> "Owner":
        """This process."""
        return cls(machine=_machine(), pid=os.getpid(), started=_started(os.getpid()) or "")

    def label(self) -> str:
        """The owner as the text of a container's label."""
        return f"{self.machine} {self.pid} {self.started}"

    @classmethod
    def from_label(cls, label: str) -> "Owner | None":
        """The owner that a label names; None where it names none."""
        parts = label.split()
        if len(parts) != 3 or not parts[1].isdigit():
            return None
        return cls(machine=parts[0], pid=int(parts[1]), started=parts[2])

    def is_dead(self) -> bool:
        """True where the owner has certainly ended; False on another machine, whose processes are unknown."""
        return self.machine == _machine() and _started(self.pid) != self.started


def _machine() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"


def _started(pid: int) -> str | None:
    """Field 22 of /proc/PID/stat; None where the process has ended or is a zombie, which owns nothing."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]
