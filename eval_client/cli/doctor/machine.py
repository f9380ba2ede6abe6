"""Checks of this machine: packages, Docker, the folder of runs and the store."""

import asyncio
import contextlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path

from eval_client.cli.doctor.finding import Finding, Status, fail, ok, skip, warn
from eval_client.cli.usage import in_thread
from eval_client.shared_disk import INSTEAD, NETWORK, distrust, file_system
from eval_client.store.connection import DatabaseError, StoreError, connect, most_row_bytes, parsed_url, reason
from eval_client.store.migration import use_rights
from eval_client.store.tables import OLDEST_SCHEMA, SCHEMA_VERSION
from proctor import registry

MEBI, GIBI = 1 << 20, 1 << 30
DISK_SHORT_BYTES, DISK_FULL_BYTES = 2 * GIBI, 100 * MEBI
WISHED_ROW_BYTES = 16 * MEBI
"""What a store's server should take: turns hold whole replies of models."""
LAYERS = frozenset({"overlay", "fuse.fuse-overlayfs", "aufs"})
"""Linux's names of what holds a container's own files, which go with it."""


def extras(environments: Iterable[str], *, needed: bool) -> list[Finding]:
    """Python, and whether the packages of these environments are installed; a problem only where they are `needed`."""
    python = ok("python", f"proctor {version('proctor')}, Python {sys.version.split()[0]} ({sys.executable})")
    return [python, *(_extra(name, needed=needed) for name in environments)]


def _extra(environment: str, *, needed: bool) -> Finding:
    packages = _packages_of(environment)
    what, fix = f"environment {environment}: ", f"pip install 'proctor[{environment}]'"
    if missing := [name for name in packages if not _installed(name)]:
        what += f"no package {', '.join(missing)}"
        return lacks_package(what, fix) if needed else skip("extra", f"{what}; {fix} to play it here")
    try:
        registry.load(environment)
    except (ImportError, registry.UnknownEnvironment) as error:
        return lacks_package(f"{what}{error}", "pip install the package that is named")
    return ok("extra", what + (", ".join(packages) or "nothing more needed"))


def lacks_package(what: str, fix: str) -> Finding:
    """The finding on packages of an environment that are not installed."""
    return warn("extra-missing", what, "this machine can't play tasks of this environment", fix)


def _packages_of(environment: str) -> list[str]:
    """The packages that an environment's extra needs."""
    lines = [line.partition(";") for line in requires("proctor") or ()]
    wanted = re.compile(rf"extra\s*==\s*['\"]{re.escape(environment)}['\"]")
    names = [re.split(r"[^\w.-]", package.strip())[0] for package, _, marker in lines if wanted.search(marker)]
    return [name for name in names if name != "proctor"]


def _installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


async def docker(image: str, patience_s: float, *, needed: bool) -> list[Finding]:
    """Findings on the Docker engine and a sandbox's image; problems are failures where `needed`."""
    if find_spec("docker") is None:
        what, fix = "no package docker", "pip install 'proctor[os]'"
        missing = lacks_package(what, fix).model_copy(update={"status": Status.FAIL})
        return [missing if needed else skip("docker", f"{what}; {fix} to play os here")]
    from proctor.sandbox.docker_exec import reach

    try:
        async with asyncio.timeout(patience_s):
            await reach()
        return await in_thread(_engine, image, patience_s, needed=needed)
    except Exception as error:  # the SDK raises errors of other libraries too
        late = f"Docker: the engine does not answer within {patience_s:g} s"
        what, why = late if isinstance(error, TimeoutError) else str(error), "the sandboxes of `os` are containers"
        fix = "start it (systemctl start docker), or name another: export DOCKER_HOST=unix:///path/to/docker.sock"
        return [(fail if needed else warn)("docker-down", what, why, fix)]


def _engine(image: str, patience_s: float, *, needed: bool) -> list[Finding]:
    import docker.errors

    from proctor.sandbox.docker_containers import is_podman, unlimited

    with contextlib.closing(docker.from_env(timeout=max(1, int(patience_s)))) as client:
        info, podman = client.info(), is_podman(client)
        named = f"{'Podman' if podman else 'Docker engine'} {info.get('ServerVersion', '?')}"
        told = "; it tells no lack of memory: a sandbox that ends of it is played again" if podman else ""
        engine = [ok("docker", named + told)]
        if lacking := " and ".join(unlimited(info)):
            why = f"one agent can use all of the machine's {lacking}"
            fix = "run the engine as root, or on a kernel with cgroup v2"
            engine.append(warn("docker-unlimited", f"{named} can't limit the {lacking} of a container", why, fix))
        try:
            client.images.get(image)
        except docker.errors.ImageNotFound:
            what, why = f"Docker has no image {image}", "sandboxes start from this image"
            fix = f"docker build -t {image} docker/os, or set another in the task's parameters: {{image: ...}}"
            return [*engine, (fail if needed else warn)("docker-image-missing", what, why, fix)]
        return [*engine, ok("docker-image", f"image {image}")]


def folder(runs: Path, *, in_sqlite: bool) -> list[Finding]:
    """Whether the folder of runs can hold a run, and its store where that is `in_sqlite`. Creates no folder."""
    existing = next(parent for parent in (runs.absolute(), *runs.absolute().parents) if parent.exists())
    kind = file_system(existing.resolve()).kind if in_sqlite else None
    where = _unwritable(runs, existing) or place(runs, kind, distrust(existing) if in_sqlite else None)
    return [where, disk(runs, shutil.disk_usage(existing).free)]


def _unwritable(runs: Path, existing: Path) -> Finding | None:
    try:
        with tempfile.NamedTemporaryFile(dir=existing, prefix=".proctor-doctor-") as file:
            file.write(b"\0" * 4096)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        what = f"nothing can be written to {runs}: {error.strerror or error}"
        return fail("runs-folder-unwritable", what, "runs are stored in this folder", "choose another: -o FOLDER")
    return None


def place(runs: Path, kind: str | None, distrusted: str | None) -> Finding:
    """Whether a store in SQLite is safe in a folder on a file system of this type; `distrusted` says why it is not."""
    if distrusted is not None:
        why = "without its locks a run can be damaged there"
        return fail("runs-folder-network", distrusted, why, INSTEAD)
    if kind in LAYERS:
        return warn(
            "runs-folder-container",
            f"{runs} is within this container, not mounted",
            "the results go with the container",
            "mount a volume there: docker run --volume proctor-runs:/runs, or name a database server: --store URL",
        )
    shared = f"; it is on a disk that machines share ({kind}), whose locks hold" if kind in NETWORK else ""
    return ok("runs-folder", f"{runs} can be written to{shared}")


def disk(runs: Path, free: int) -> Finding:
    """Whether the free bytes of a folder are enough for a run."""
    what = f"{free / GIBI:.1f} GiB free at {runs}"
    if free >= DISK_SHORT_BYTES:
        return ok("disk", what)
    fix = "free some space, or choose another folder: -o FOLDER"
    return (fail if free < DISK_FULL_BYTES else warn)("disk-short", what, "a run waits while the disk is full", fix)


def store(url: str) -> Finding:
    """Whether a store answers, its account has the rights that a run needs, and its runs can be read."""
    shown = "the store's URL"
    try:
        parsed = parsed_url(url)
        shown = parsed.render_as_string(hide_password=True)
        if parsed.get_backend_name() != "sqlite":
            parsed = parsed.update_query_dict({"connect_timeout": "5"})
        engine = connect(parsed)
        with engine.connect() as connection:
            row_bytes = most_row_bytes(connection)
    except (StoreError, DatabaseError) as error:
        what = f"{shown}: {reason(error) if isinstance(error, DatabaseError) else error}"
        return fail("store-unreachable", what, "no result can be recorded", "check the URL, and that the server runs")
    try:
        schemas = use_rights(engine)
    except DatabaseError as error:
        fix = "grant the account CREATE, SELECT, INSERT, UPDATE and DELETE in the database"
        return fail("store-rights", f"{shown}: {reason(error)}", "a run creates tables and writes rows", fix)
    finally:
        engine.dispose()
    version = ".".join(map(str, engine.dialect.server_version_info or ()))
    return _usable(f"{shown}: {engine.dialect.name} {version}", schemas, row_bytes)


def _usable(shown: str, schemas: Sequence[int], row_bytes: int | None) -> Finding:
    """The finding on a store whose account has all rights."""
    if others := [str(number) for number in schemas if not OLDEST_SCHEMA <= number <= SCHEMA_VERSION]:
        known = f"this version reads {OLDEST_SCHEMA} to {SCHEMA_VERSION}"
        what, why = f"{shown}: holds runs of schema {', '.join(others)}; {known}", "it can't read or resume them"
        return fail("store-schema", what, why, "use the version of Proctor that wrote them, or another database")
    if row_bytes is not None and row_bytes < WISHED_ROW_BYTES:
        what, why = f"max_allowed_packet is {row_bytes:,} bytes", "a turn with more is a fault of its trial"
        return warn("store-rows", f"{shown}: {what}", why, "set the server's max_allowed_packet to 16M or more")
    return ok("store", f"{shown}: tables and rows can be written")
