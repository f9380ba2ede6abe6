"""Says which process owns a sandbox, and whether it still lives."""

import os
from pathlib import Path

from proctor.types import Value


class Owner(Value):
    """A process, told apart from every other that ever had its pid."""

    machine: str
    """Boot id of the kernel and number of the pid namespace: pids of another one say nothing here."""
    pid: int
    started: str
    """Start time of the process in clock ticks since boot, from /proc."""

    @classmethod
    def current(cls) -> "Owner":
        """This process."""
        return cls(machine=_machine(), pid=os.getpid(), started=_started(os.getpid()) or "")

    def label(self) -> str:
        """The owner as the text of a label."""
        return f"{self.machine} {self.pid} {self.started}"

    @classmethod
    def from_label(cls, label: str) -> "Owner | None":
        """The owner a label names, None where it names none."""
        parts = label.split()
        if len(parts) != 3 or not parts[1].isdigit():
            return None
        return cls(machine=parts[0], pid=int(parts[1]), started=parts[2])

    def is_dead(self) -> bool:
        """True where the owner surely lives no more; False for one of another machine, of which nothing is known."""
        return self.machine == _machine() and _started(self.pid) != self.started


def _machine() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"


def _started(pid: int) -> str | None:
    """Field 22 of /proc/PID/stat; a zombie has no start time, since it owns nothing."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]
