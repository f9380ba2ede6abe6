"""What the tests of deployments share."""

import contextlib

import docker
import pytest

from tests.deployments.docker_compose import remove_leftovers
from tests.pace import slowly


@pytest.fixture(scope="session")
def no_leftovers() -> None:
    """Nothing runs on the engine any more that killed runs of these tests brought up."""
    with contextlib.closing(docker.from_env(timeout=int(slowly(60)))) as engine:
        remove_leftovers(engine)
