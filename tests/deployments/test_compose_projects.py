"""What a killed run of these tests leaves on the engine goes at the start of the next."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator

import docker
import docker.errors
import pytest

from tests.deployments.docker_compose import LABEL, project, remove_leftovers
from tests.e2e.docker_engine import IMAGE
from tests.pace import slowly
from tests.support import ROOT

NAMED = "from tests.deployments.docker_compose import project; print(project('leftovers'))"


@pytest.fixture
def engine() -> Iterator[docker.DockerClient]:
    with contextlib.closing(docker.from_env(timeout=int(slowly(60)))) as client:
        yield client


@pytest.mark.docker
def test_the_projects_of_dead_runs_are_removed_and_no_others(engine: docker.DockerClient) -> None:
    named = subprocess.run([sys.executable, "-c", NAMED], cwd=ROOT, capture_output=True, text=True, check=True)
    dead, alive = named.stdout.strip(), project("leftovers")
    operators, foreign = f"operators-{dead}", dead.replace("-leftovers-", "-leftovers-1")  # of another pid namespace
    names = [dead, alive, operators, foreign]
    try:
        for name in names:
            bring_up(engine, name)
        assert all(len(parts(engine, name)) == 3 for name in names)
        remove_leftovers(engine)
        assert [len(parts(engine, name)) for name in names] == [0, 3, 3, 3]
    finally:
        for name in names:
            remove(engine, name)


def bring_up(engine: docker.DockerClient, name: str) -> None:
    """A running container, a network and a volume, marked as docker-compose marks them."""
    labels = {LABEL: name}
    engine.volumes.create(name, labels=labels)
    engine.networks.create(name, labels=labels, internal=True)
    engine.containers.run(IMAGE, ["sleep", "1h"], name=name, detach=True, network_mode="none", labels=labels)


def parts(engine: docker.DockerClient, name: str) -> list[str]:
    """The ids of what there is of a project."""
    of_it = f"{LABEL}={name}"
    containers = engine.containers.list(all=True, filters={"label": of_it})
    networks, volumes = engine.networks.list(filters={"label": of_it}), engine.volumes.list(filters={"label": of_it})
    return [str(part.id) for part in (*containers, *networks, *volumes)]


def remove(engine: docker.DockerClient, name: str) -> None:
    """Remove what `bring_up` made of it, where it is still there."""
    with contextlib.suppress(docker.errors.NotFound):
        engine.containers.get(name).remove(force=True)
        engine.networks.get(name).remove()
        engine.volumes.get(name).remove()
