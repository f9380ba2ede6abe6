"""The images of docker/Dockerfile, built for real: small, closed, reproducible."""

import contextlib
from collections.abc import Iterator

import docker
import pytest

from tests.e2e.docker_images import image

pytestmark = pytest.mark.images

TARGETS = ("controller", "client", "worker", "agents", "worker-db")


@pytest.fixture
def engine() -> Iterator[docker.DockerClient]:
    with contextlib.closing(docker.from_env(timeout=120)) as client:
        yield client


@pytest.mark.parametrize("target", TARGETS)
def test_every_role_starts_without_rights_on_a_read_only_root(engine: docker.DockerClient, target: str) -> None:
    said = engine.containers.run(
        image(target),
        "--version",
        network_mode="none",
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        remove=True,
    )
    assert said.decode().startswith("proctor ")
