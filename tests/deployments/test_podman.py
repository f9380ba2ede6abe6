"""Podman in Docker's place, by its socket: all tests of sandboxes and `harbor`; of `os` right answers and tampering."""

import contextlib
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from tests.e2e.docker_engine import CALL_S, IMAGE
from tests.pace import slowly, until
from tests.support import ROOT, finished

pytestmark = [pytest.mark.docker, pytest.mark.podman, pytest.mark.thorough]

PODMAN_LIMITS = 1 << 20
"""Of processes, which Podman gives to each container."""
WITHOUT = r"""#!/bin/bash
# runc, where no process may raise its limits, as Podman asks for.
previous=
for each; do
    case $previous in
    --bundle | -b) file=$each/config.json ;;
    --process | -p) file=$each ;;
    *) file= ;;
    esac
    [[ -z $file ]] || sed -i -E 's/\{"type":"RLIMIT_NPROC"[^}]*\},?//; s/,\]/]/' "$file"
    previous=$each
done
exec runc "$@"
"""
CONFIGURATION = """\
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
[engine.runtimes]
runc = ["{runc}"]
"""
STORAGE = """\
[storage]
driver = "overlay"
graphroot = "{folder}/data"
runroot = "{folder}/run"
"""
PLAYED = (
    "tests/e2e/sandbox",
    "tests/acceptance/harbor",
    "tests/acceptance/os/test_gold.py",
    "tests/acceptance/os/test_hostile.py::test_whatever_happens_to_a_watched_place_or_to_what_it_is_in_counts",
)
NOT_HERE = {
    "out_of_memory_is_known": "Podman tells no lack of memory",
    "in_memory_no_place": "its archives lose the owners of files, so `disk: tmpfs` is refused",
    "namespace": "the other engine",
}
"""Part of a test's name -> why it is not played."""


def _runtime(folder: Path) -> Path:
    """runc itself, or without the limit that nobody may set here."""
    before = resource.getrlimit(resource.RLIMIT_NPROC)
    try:
        resource.setrlimit(resource.RLIMIT_NPROC, (PODMAN_LIMITS, PODMAN_LIMITS))
    except (ValueError, OSError):
        wrapper = folder / "runc"
        wrapper.write_text(WITHOUT)
        wrapper.chmod(0o755)
        return wrapper
    resource.setrlimit(resource.RLIMIT_NPROC, before)
    return Path("/usr/sbin/runc")


@pytest.fixture
def podman(tmp_path: Path) -> Iterator[str]:
    """The address of a Podman service with the base image, of the test's own."""
    (tmp_path / "containers.conf").write_text(CONFIGURATION.format(runc=_runtime(tmp_path)))
    (tmp_path / "storage.conf").write_text(STORAGE.format(folder=tmp_path))
    settings = {
        "CONTAINERS_CONF": str(tmp_path / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(tmp_path / "storage.conf"),
    }
    socket = tmp_path / "socket"
    with (tmp_path / "log").open("wb") as log:
        service = subprocess.Popen(
            ["podman", "system", "service", "--time=0", f"unix://{socket}"], env=os.environ | settings, stderr=log
        )
    try:
        until(socket.exists, 60.0, lambda: (tmp_path / "log").read_text()[-2000:])
        host = f"unix://{socket}"
        with (
            contextlib.closing(docker.from_env(timeout=CALL_S)) as source,
            contextlib.closing(docker.DockerClient(base_url=host, timeout=CALL_S)) as target,
        ):
            target.images.load(b"".join(source.images.get(IMAGE).save(named=True)))
        yield host
    finally:
        service.terminate()
        service.wait()
        subprocess.run(["umount", "--quiet", str(tmp_path / "data" / "overlay")], check=False)


def test_sandboxes_right_answers_and_tampering_hold_on_podman(podman: str) -> None:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    chosen = " and ".join(f"not {part}" for part in NOT_HERE)
    played = finished(
        [sys.executable, "-m", "pytest", "-q", "-m", "docker", "-k", chosen, *PLAYED],
        cwd=ROOT,
        env={**variables, "DOCKER_HOST": podman, "PROCTOR_TEST_PLAYED": ""},
        timeout=slowly(1200),
    )
    assert played.returncode == 0, played.stdout[-5000:]
