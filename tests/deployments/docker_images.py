"""Proctor's images as docker/Dockerfile makes them, from this checkout, without pulling one: proctor-<target>:test."""

import contextlib
import fcntl
import functools
import sys
from collections.abc import Iterator

import docker

from tests.e2e.proctor import environment
from tests.pace import slowly
from tests.support import BASE_IMAGE, ROOT, finished

BASE_PYTHON = "3.11"
EXTRAS = "otel"
"""Of which there are wheels, beside those that the images have anyway."""
WHEELHOUSE = ROOT / "docker" / "wheelhouse"


def image(target: str) -> str:
    """The name of a target's image, built if what it is made of has changed since."""
    build(target, f"proctor-{target}:test")
    return f"proctor-{target}:test"


@functools.cache
def build(target: str, name: str, *, afresh: bool = False, extras: str = "") -> None:
    """Build a target under a name; `afresh` without anything kept of earlier builds, with further `extras` of ours."""
    with _alone(), contextlib.closing(docker.from_env(timeout=int(slowly(900)))) as client:
        _fetch_wheels()
        client.images.build(
            path=str(ROOT),
            dockerfile="docker/Dockerfile",
            target=target,
            tag=name,
            buildargs={"BASE": BASE_IMAGE, "EXTRAS": extras},
            network_mode="host",  # the engine of the tests has no network of its own; only apt asks for one
            nocache=afresh,
            rm=True,
            forcerm=True,
        )


def fetch_wheels() -> None:
    """Before the first build, which else fetches them: scripts/test.sh does it beside the base image."""
    with _alone():
        _fetch_wheels()


def _fetch_wheels() -> None:
    """The wheelhouse, where it is older than what it comes from."""
    inputs = [ROOT / "requirements.lock", ROOT / "pyproject.toml", ROOT / "docker" / "wheels.sh"]
    if WHEELHOUSE.is_dir() and WHEELHOUSE.stat().st_mtime > max(path.stat().st_mtime for path in inputs):
        return
    done = finished(
        [str(ROOT / "docker" / "wheels.sh"), BASE_PYTHON], env=environment(PYTHON=sys.executable, EXTRAS=EXTRAS)
    )
    assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """One build at a time in this checkout."""
    with (ROOT / "docker" / "Dockerfile").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
