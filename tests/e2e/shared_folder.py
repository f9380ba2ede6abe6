"""A disk that other machines share, as Linux lists it: a folder of this machine, shown at another place by FUSE."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

BINDFS = ("bindfs", "-o", "subtype=sshfs")


@contextlib.contextmanager
def shared_folder(within: Path) -> Iterator[Path]:
    """Where the folder `server` is mounted, both made in this one. Its locks are those of the mount."""
    server, mounted = within / "server", within / "mounted"
    server.mkdir()
    mounted.mkdir()
    subprocess.run([*BINDFS, server, mounted], check=True)
    try:
        yield mounted
    finally:
        subprocess.run(["umount", "--lazy", mounted], check=True)
