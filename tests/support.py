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
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

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


def free_port() -> int:
    """A port to listen at later, below those that the kernel hands out: so nobody is given it in the meantime."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def missing(part: str) -> str | None:
    """Why tests marked with a part can't run here, or None where they can."""
    return {
        "browser": _browser,
        "docker": _docker,
        "compose": _compose,
        "faketime": _faketime,
        "images": _images,
        "lan": _lan,
        "latex": _latex,
        "mariadb": _mariadb,
        "postgresql": _postgresql,
        "prometheus": _prometheus,
        "ray": _ray,
        "runsc": _runsc,
        "shared": _shared,
        "swarm": _swarm,
        "textworld": _textworld,
        "virtuoso": _virtuoso,
    }[part]()


def _docker() -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # where no engine answers, the library forgets its socket
        trouble = _docker_trouble()
        gc.collect()
    return trouble


def _docker_trouble() -> str | None:
    try:
        import docker

        client = docker.from_env()
        client.ping()
        client.images.get(os.environ.get("PROCTOR_OS_IMAGE", "proctor-os:latest"))
        client.close()
    except Exception as error:
        return f"no Docker engine with the image proctor-os: {error}; `make test` as root sets both up"
    return None


def _browser() -> str | None:
    if not program(CHROMIUM):
        return f"no {CHROMIUM}; install it, name it in PROCTOR_CHROMIUM, or run `make test` as root, which does"
    if find_spec("playwright") is None:
        return "no playwright; run `make test`, which installs it"
    return None


def _latex() -> str | None:
    if program("pdflatex"):
        return None
    return "no pdflatex; install it (Debian: texlive-latex-base), or run `make test` as root, which does"


def _images() -> str | None:
    try:
        import docker

        client = docker.from_env()
        client.ping()
        client.images.get(BASE_IMAGE)
        client.close()
    except Exception as error:
        gc.collect()
        return f"no Docker engine with the image {BASE_IMAGE}: {error}; `make deployments` as root sets both up"
    return None


def _compose() -> str | None:
    if program("docker-compose"):
        return None
    return "no docker-compose; install it, or run `make deployments` as root, which does"


def _runsc() -> str | None:
    if program("runsc"):
        return None
    return "no runsc; install it, or run `make deployments` as root, which does"


def _prometheus() -> str | None:
    if program("prometheus") and program("promtool"):
        return None
    return "no promtool; install prometheus, or run `make test` as root, which does"


def _mariadb() -> str | None:
    if program("mariadbd"):
        return None
    return "no mariadbd; install mariadb-server, or run `make test` as root, which does"


def _postgresql() -> str | None:
    if program("postgres") and program("initdb"):
        return None
    return "no PostgreSQL server; install postgresql, or run `make test` as root, which does"


def _faketime() -> str | None:
    if FAKETIME:
        return None
    return "no libfaketime; install faketime, or run `make test` as root, which does"


def _lan() -> str | None:
    """Whether a pair of connected interfaces can be made."""
    made = "ip link add v0 type veth peer name v1"
    if os.geteuid() or subprocess.run(["unshare", "--net", *made.split()], capture_output=True, check=False).returncode:
        return "no network namespaces with veth interfaces here; run as root, with iproute2"
    return None


def _virtuoso() -> str | None:
    if program("virtuoso-t") and program("isql-vt"):
        return None
    return "no Virtuoso; install virtuoso-opensource-7-bin, or run `make test` as root, which does"


def _swarm() -> str | None:
    programs = [name for name in ("dockerd", "ip", "nsenter", "unshare") if program(name) is None]
    if programs:
        return f"no {', '.join(programs)} for nodes of a swarm; `make deployments` as root installs them"
    overlay = ("ip", "link", "add", "x0", "type", "vxlan", "id", "1", "dstport", "4789")
    probe = subprocess.run(
        ["unshare", "--net", "--mount", "--pid", "--fork", *overlay], capture_output=True, check=False
    )
    if probe.returncode:
        return "no namespaces with overlay networks here; run `make deployments` as root on a kernel that has vxlan"
    return None


def _textworld() -> str | None:
    if find_spec("textworld"):
        return None
    return "no textworld; pip install 'proctor[textworld]', or run `make test` as root, which does"


def _ray() -> str | None:
    if find_spec("ray"):
        return None
    return "no Ray; pip install 'proctor[ray]', or run `make deployments` as root, which does"


def _shared() -> str | None:
    return None if SHARED_DATA.is_dir() else f"no public data at {SHARED_DATA}"


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
