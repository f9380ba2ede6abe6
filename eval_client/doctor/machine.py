"""Checks of this machine: installed packages and programs, the folder of runs, memory and limits."""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from eval_client.doctor.finding import Finding, fail, ok, skip, warn
from proctor import registry
from proctor.event_loop import descriptors_for

MEBI, GIBI = 1 << 20, 1 << 30
DISK_SHORT_BYTES, DISK_FULL_BYTES = 2 * GIBI, 100 * MEBI
MEMORY_SHORT_BYTES = GIBI
NETWORK = frozenset(
    {"nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb3", "afs", "glusterfs", "orangefs", "panfs"}
    | {"fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.juicefs", "fuse.s3fs", "fuse.gcsfuse"}
)
"""Linux's names of file systems that other machines share."""
_SEARCH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin", "/usr/libexec"])


@dataclass(frozen=True)
class FolderFacts:
    """The folder of the runs, or the existing folder in which it would be created."""

    folder: str
    trouble: str | None
    """Why nothing can be written there; None where something can."""
    free_bytes: int
    network: str | None = None
    """The type of its file system where other machines share it, by Linux's name."""


def packages() -> list[Finding]:
    """Findings on Python, Proctor, and the packages that every run needs."""
    missing = [name for name, extra in _required() if extra is None and not _installed(name)]
    found = [fail("package-missing", f"package {name} is not installed") for name in missing]
    return found or [ok("python", f"proctor {version('proctor')}, Python {sys.version.split()[0]} ({sys.executable})")]


def extras(environments: Iterable[str]) -> list[Finding]:
    """Whether the packages that these environments need are installed."""
    return [_extra(name) for name in environments]


def _extra(environment: str) -> Finding:
    needed = [name for name, extra in _required() if extra == environment]
    missing = [name for name in needed if not _installed(name)]
    fix = f"pip install 'proctor[{environment}]'"
    if missing:
        return warn("extra-missing", f"environment {environment}: no package {', '.join(missing)}", fix)
    try:
        registry.load(environment)
    except (ImportError, registry.UnknownEnvironment) as error:
        return warn("extra-missing", f"environment {environment}: {error}")
    return ok("extra", f"environment {environment}: {', '.join(needed) or 'nothing more needed'}")


def _required() -> list[tuple[str, str | None]]:
    """(package, the extra that needs it; None for Proctor itself)."""
    pairs = []
    for line in requires("proctor") or ():
        package, _, marker = line.partition(";")
        extra = re.search(r"extra\s*==\s*['\"]([\w.-]+)['\"]", marker)
        name = re.match(r"[\w.-]+", package)
        if name is not None and name[0] != "proctor":
            pairs.append((name[0], extra[1] if extra else None))
    return pairs


def _installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def programs() -> list[Finding]:
    """Findings on the database servers that environments and stores can use."""
    return [
        _program("mariadb", "mariadbd", lambda what: warn("mariadb-missing", what)),
        _program(
            "postgresql",
            "postgres",
            lambda what: skip("postgresql", f"{what}; only a store that several clients share needs one"),
        ),
        _program(
            "virtuoso", "virtuoso-t", lambda what: skip("virtuoso", f"{what}; only large knowledge graphs need one")
        ),
    ]


def _program(kind: str, name: str, missing: Callable[[str], Finding]) -> Finding:
    folders = [_SEARCH, *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True))]
    path = shutil.which(name, path=os.pathsep.join(folders))
    return missing(f"no program {name} on this machine") if path is None else ok(kind, path)


def folder_facts(folder: Path) -> FolderFacts:
    """Facts about the folder of runs. Writes and removes a temporary file; creates no folder."""
    existing = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    trouble = None
    try:
        with tempfile.NamedTemporaryFile(dir=existing, prefix=".proctor-doctor-") as file:
            file.write(b"\0" * 4096)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        trouble = error.strerror or str(error)
    kind = file_system(existing.resolve(), _mounts())
    return FolderFacts(str(folder), trouble, shutil.disk_usage(existing).free, kind if kind in NETWORK else None)


def _mounts() -> str:
    try:
        return Path("/proc/self/mountinfo").read_text(errors="replace")
    except OSError:
        return ""


def file_system(folder: Path, mounts: str) -> str | None:
    """The type of the file system that holds a folder, by the text of Linux's `mountinfo`; None where it is unknown."""
    found: tuple[int, str | None] = (0, None)
    for line in mounts.splitlines():
        mounted, _, source = line.partition(" - ")
        if mounted.count(" ") < 5:
            continue
        place = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), mounted.split(" ")[4]))
        if folder.is_relative_to(place) and len(place.parts) >= found[0]:  # a later mount hides an earlier one
            found = len(place.parts), source.split(" ")[0]
    return found[1]


def folder_findings(facts: FolderFacts, needed_bytes: int = 0, *, in_sqlite: bool = True) -> list[Finding]:
    """Whether a run that writes at most `needed_bytes` fits into the folder; `in_sqlite`: so does its store."""
    if facts.trouble is not None:
        found = [fail("runs-folder-unwritable", f"nothing can be written to {facts.folder}: {facts.trouble}")]
    elif facts.network is not None and in_sqlite:
        found = [warn("runs-folder-network", f"{facts.folder} is on a network file system ({facts.network})")]
    else:
        found = [ok("runs-folder", f"{facts.folder} can be written to")]
    what = f"{facts.free_bytes / GIBI:.1f} GiB free at {facts.folder}"
    if needed_bytes:
        what += f", the run may take {max(0.01, needed_bytes / GIBI):.2f} GiB"
    if facts.free_bytes < max(DISK_FULL_BYTES, needed_bytes):
        found.append(fail("disk-short", what))
    else:
        short = facts.free_bytes < max(DISK_SHORT_BYTES, 2 * needed_bytes)
        found.append(warn("disk-short", what) if short else ok("disk", what))
    return found


def available_memory() -> int | None:
    """Bytes that can still be used without swapping (Linux's MemAvailable); None on other systems."""
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        return None
    found = re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def memory_finding(available: int | None) -> Finding:
    """Whether the available bytes are enough for a client and a few sandboxes."""
    if available is None:
        return skip("memory", "this system does not report its available memory")
    what = f"{available / GIBI:.1f} GiB of memory available"
    return ok("memory", what) if available >= MEMORY_SHORT_BYTES else warn("memory-short", what)


def descriptor_finding(limit: int, trials: int) -> Finding:
    """Whether the limit of open files is enough for so many trials at once."""
    needed = descriptors_for(trials)
    what = f"{limit} files may be open at once"
    if limit >= needed:
        return ok("descriptors", what)
    return warn("descriptors-few", f"{what}; {needed} are needed", f"ulimit -n {needed}, in the shell that starts it")
