"""Disks that machines share: SQLite keeps no write-ahead log there, and their locks are tried before they are trusted.

A write-ahead log needs memory that all its readers share, which is that of one machine.
"""

import fcntl
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

NETWORK = frozenset(
    {"nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb3", "afs", "glusterfs", "pvfs2", "panfs", "wekafs"}
    | {"fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.juicefs", "fuse.s3fs", "fuse.gcsfuse"}
)
"""Linux's names of file systems that other machines share."""
LOCAL_LOCKS = frozenset({"nolock", "local_lock=all", "local_lock=posix", "local_lock=flock", "localflock"})
"""Options of mounts whose locks other machines don't see."""
INSTEAD = "choose a folder on a disk of this machine: -o FOLDER, or a database server: --store URL"
_HELD = 3
_TRY = f"""
import fcntl, sys
with open(sys.argv[2], "r+b") as file:
    try:
        getattr(fcntl, sys.argv[1])(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        sys.exit({_HELD})
"""
_TRY_S = 60.0


class FileSystem(NamedTuple):
    """What holds a folder."""

    kind: str | None
    """Linux's name of its type; None where it is unknown."""
    options: frozenset[str] = frozenset()

    @property
    def is_shared(self) -> bool:
        """Whether other machines share it."""
        return self.kind in NETWORK


def file_system(inside: Path, mounts: str | None = None) -> FileSystem:
    """The file system of a folder, by the text of Linux's `mountinfo`, that of this process by default."""
    if mounts is None:
        known = Path("/proc/self/mountinfo")
        mounts = known.read_text(errors="replace") if known.exists() else ""
    depth, found = 0, FileSystem(None)
    for line in mounts.splitlines():
        mounted, _, source = line.partition(" - ")
        if mounted.count(" ") < 5:
            continue
        at = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), mounted.split(" ")[4]))
        if inside.is_relative_to(at) and len(at.parts) >= depth:  # a later mount hides an earlier one
            kind, *rest = source.split(" ")
            depth, found = len(at.parts), FileSystem(kind, frozenset(",".join(rest[1:]).split(",")))
    return found


def journal_mode(path: str) -> str:
    """SQLite's mode for a store's file: a rollback journal where other machines share its disk."""
    return "TRUNCATE" if file_system(Path(path).resolve()).is_shared else "WAL"


def distrust(folder: Path, elsewhere: Sequence[str] = ()) -> str | None:
    """Why the locks of a disk that machines share can't be trusted; None for other disks, and where they can.

    `elsewhere` is a command that runs the one that follows it on another machine, such as srun.
    """
    there = file_system(folder.resolve())
    why = _tried_locks(folder, there.options, elsewhere) if there.is_shared else None
    return None if why is None else f"{folder} is on a disk that machines share ({there.kind}), and {why}"


def _tried_locks(folder: Path, options: frozenset[str], elsewhere: Sequence[str]) -> str | None:
    """What is wrong with locks in a folder, as two processes try them, or two machines."""
    if local := sorted(options & LOCAL_LOCKS):
        return f"it is mounted with {local[0]}: other machines don't see its locks"
    for name in ("lockf", "flock"):
        lock = getattr(fcntl, name)
        try:
            with tempfile.NamedTemporaryFile(dir=folder, prefix=".proctor-lock-") as file:
                lock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not _is_held(name, file.name, elsewhere):
                    return f"two {'machines' if elsewhere else 'processes'} were given the same lock ({name})"
                lock(file, fcntl.LOCK_UN)
                if _is_held(name, file.name, elsewhere):
                    return f"a lock that was released stays ({name})"
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"a file can't be locked ({name}): {getattr(error, 'strerror', None) or error}"
    return None


def _is_held(name: str, path: str, elsewhere: Sequence[str]) -> bool:
    """Whether a process is refused a lock. Raises OSError where it can't tell."""
    command = [*elsewhere, sys.executable, "-I", "-S", "-c", _TRY, name, path]
    done = subprocess.run(command, timeout=_TRY_S, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode not in (0, _HELD):
        raise OSError("; ".join(done.stderr.strip().splitlines()[-2:]) or f"exit code {done.returncode}")
    return done.returncode == _HELD


if __name__ == "__main__":
    if (distrusted := distrust(Path(sys.argv[1]), sys.argv[2:])) is not None:
        fix = "choose another disk that all nodes see: --output FOLDER, or a database server: PROCTOR_STORE"
        sys.exit(f"{distrusted}; {fix}")
