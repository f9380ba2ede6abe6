"""What tests share: where the public data lies, and which real parts this machine has."""

import contextlib
import fcntl
import gc
import os
import secrets
import shutil
import socket
import socketserver
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psutil
import pytest

from eval_client.store.records import Trial
from eval_client.store.store import Store
from proctor.http.client import HttpClient, HttpxClient
from tests.database_servers import program
from tests.pace import slowly

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
"""The public data beside the checkout; tests marked `shared` run only where it is."""

BASE_IMAGE = "proctor-base:bookworm"
"""What the tests build Proctor's own images on: docker/base.sh makes it."""
ROOT = Path(__file__).resolve().parents[1]
_HEADLESS = "chromium-headless-shell"
CHROMIUM = os.environ.get("PROCTOR_CHROMIUM", _HEADLESS if program(_HEADLESS) else "chromium")
"""The browser of tests marked `browser`: a program's name or path. One without windows takes 45% less CPU."""
FAKETIME = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
"""The library that gives one process a wall clock of its own."""


@contextlib.contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[None]:
    """Serves in a thread. `shutdown` waits until the server looks for it, which it does every 0.5 s unless told."""
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


def finished(command: Sequence[str | Path], **options: Any) -> "subprocess.CompletedProcess[str]":
    """A program at its end, with what it said; `options` are those of `subprocess.run`."""
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def free_port() -> int:
    """A port to listen at later, below those that the kernel hands out: so nobody is given it in the meantime."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


class Part(NamedTuple):
    """What tests marked with a part need: programs, a module of Python, or what a function says is in the way."""

    programs: Sequence[str] = ()
    module: str = ""
    why_not: Callable[[], str | None] = lambda: None
    install: str = ""


def missing(part: str) -> str | None:
    """Why tests marked with a part can't run here, or None where they can."""
    needed = PARTS[part]
    lacking = [name for name in needed.programs if program(name) is None]
    if needed.module and find_spec(needed.module) is None:
        lacking.append(needed.module)
    if why := f"no {', '.join(lacking)}" if lacking else needed.why_not():
        return f"{why}{needed.install and '; '}{needed.install}"
    return None


def _no_engine(image: str) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # where no engine answers, the library forgets its socket
        try:
            import docker

            with contextlib.closing(docker.from_env()) as client:
                client.ping()
                client.images.get(image)
        except Exception as error:
            return f"no Docker engine with the image {image}: {error}"
        finally:
            gc.collect()
    return None


def _refused(*command: str) -> bool:
    return os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0


def _no_overlay() -> str | None:
    made = "ip link add x0 type vxlan id 1 dstport 4789"
    refused = _refused("unshare", "--net", "--mount", "--pid", "--fork", *made.split())
    return "no namespaces with overlay networks here; the kernel needs vxlan" if refused else None


def _no_cable() -> str | None:
    refused = _refused("unshare", "--net", *["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"])
    return "no network namespaces with veth interfaces here" if refused else None


def _by_root(what: str, target: str = "make test") -> str:
    return f"install {what}, or run `{target}` as root, which does"


PARTS = {
    "bindfs": Part(
        ("bindfs",), why_not=lambda: None if Path("/dev/fuse").exists() else "no FUSE here", install=_by_root("it")
    ),
    "browser": Part((CHROMIUM,), "playwright", install=_by_root("them, or name a browser in PROCTOR_CHROMIUM")),
    "compose": Part(("docker-compose",), install=_by_root("it", "make deployments")),
    "docker": Part(
        why_not=lambda: _no_engine(os.environ.get("PROCTOR_OS_IMAGE", "proctor-os:latest")),
        install="`make test` as root sets both up",
    ),
    "faketime": Part(why_not=lambda: None if FAKETIME else "no libfaketime", install=_by_root("faketime")),
    "images": Part(why_not=lambda: _no_engine(BASE_IMAGE), install="`make deployments` as root sets both up"),
    "lan": Part(why_not=_no_cable, install="run as root, with iproute2"),
    "latex": Part(("pdflatex",), install=_by_root("it (Debian: texlive-latex-base)")),
    "mariadb": Part(("mariadbd",), install=_by_root("mariadb-server")),
    "podman": Part(("podman", "runc"), install=_by_root("it", "make deployments")),
    "postgresql": Part(("postgres", "initdb"), install=_by_root("postgresql")),
    "prometheus": Part(("prometheus", "promtool"), install=_by_root("prometheus")),
    "ray": Part(module="ray", install=_by_root("proctor[ray]", "make deployments")),
    "runsc": Part(("runsc",), install=_by_root("it", "make deployments")),
    "shared": Part(why_not=lambda: None if SHARED_DATA.is_dir() else f"no public data at {SHARED_DATA}"),
    "slurm": Part(
        ("slurmctld", "slurmd", "munged"),
        why_not=lambda: "SLURM's daemons need root" if os.geteuid() else None,
        install=_by_root("slurm-wlm and munge"),
    ),
    "swarm": Part(
        ("dockerd", "ip", "nsenter", "unshare"), why_not=_no_overlay, install="run `make deployments` as root"
    ),
    "textworld": Part(module="textworld", install=_by_root("proctor[textworld]")),
    "virtuoso": Part(("virtuoso-t", "isql-vt"), install=_by_root("virtuoso-opensource-7-bin")),
}


def unscored(store: Store) -> list[Trial]:
    """The trials without a score, in the run's order."""
    left = {row["id"] for row in store.trial_rows() if row["score"] is None}
    return [trial for trial in store.trials() if trial.id in left]


def made_once(folders: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that `make` fills, once for all processes of the tests: they only read it."""
    base = folders.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder, whole = base / name, base / f"{name}.whole"
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not whole.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            whole.touch()
    return folder


def build(source: Path, dist: Path, *options: str) -> None:
    """The sdist and the wheel of a source tree, as `make dist` makes them."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(dist), *options]
    built = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=slowly(180), check=False)
    assert built.returncode == 0, built.stderr


def built_packages(folders: pytest.TempPathFactory) -> Path:
    """The folder of this checkout's sdists and wheels, once for all processes of the tests; nothing is fetched."""

    def make(folder: Path) -> None:
        for source in (ROOT, *ROOT.glob("packages/*/")):
            build(source, folder)

    return made_once(folders, "dist", make)


def working_in(folder: Path) -> list[psutil.Process]:
    """The processes that are alive in a folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.cwd() == str(folder):
                found.append(process)
        except psutil.Error:
            continue
    return found


def via(client: httpx.AsyncClient) -> HttpClient:
    """What our code calls by, through a client of httpx: to an app in this process, or to answers made up."""
    return HttpxClient(lambda route: client)
