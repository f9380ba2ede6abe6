"""Compose projects by owner. What a killed test run leaves has a restart policy: it would come back with the engine."""

import contextlib
import re

import docker
import docker.errors
from docker.models.networks import Network
from docker.models.volumes import Volume

from proctor.sandbox.owner import Owner

LABEL = "com.docker.compose.project"
"""What docker-compose marks all that it makes with."""
_NAME = re.compile(r"proctor-[a-z0-9]+-(?P<namespace>\d+)-(?P<pid>\d+)-(?P<started>\d+)")


def project(purpose: str) -> str:
    """The name of a project of this process's own, which tells it apart from every other that ever had its pid."""
    owner = Owner.current()
    return f"proctor-{purpose}-{_namespace(owner)}-{owner.pid}-{owner.started}"


def remove_leftovers(engine: docker.DockerClient) -> None:
    """Remove containers, networks and volumes of the projects whose process lives no more."""
    for container in engine.containers.list(all=True, filters={"label": LABEL}, ignore_removed=True):
        if _is_left(container.labels[LABEL]):
            with contextlib.suppress(docker.errors.NotFound):
                container.remove(force=True, v=True)
    kept: list[Network | Volume] = [*engine.networks.list(filters={"label": LABEL})]
    kept += engine.volumes.list(filters={"label": LABEL})
    for each in kept:
        if _is_left(each.attrs["Labels"][LABEL]):
            with contextlib.suppress(docker.errors.NotFound):
                each.remove()


def _is_left(name: str) -> bool:
    """Whether a process of our pid namespace, of this boot or an earlier one, owned the project and is gone."""
    found, us = _NAME.fullmatch(name), Owner.current()
    if found is None or found["namespace"] != _namespace(us):
        return False
    return Owner(machine=us.machine, pid=int(found["pid"]), started=found["started"]).is_dead()


def _namespace(owner: Owner) -> str:
    return owner.machine.rpartition("/")[2]
