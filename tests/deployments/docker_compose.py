"""The stack of docker/compose.yaml under way, as `docker-compose` runs it on the engine of the tests."""

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import docker
import docker.errors
from docker.models.networks import Network
from docker.models.volumes import Volume

from proctor.process_owner import Owner
from tests.deployments.docker_images import image
from tests.pace import slowly
from tests.support import ROOT, finished

LABEL = "com.docker.compose.project"
"""What docker-compose marks all that it makes with."""
_NAME = re.compile(r"proctor-[a-z0-9]+-(?P<namespace>\d+)-(?P<pid>\d+)-(?P<started>\d+)")
SOCKET = Path(os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://"))
PROFILES = ("--profile", "os", "--profile", "agent", "--profile", "client", "--profile", "alerts")
IMAGES = ("controller", "client", "worker", "worker-db", "agents", "store", "prometheus")


def project(purpose: str) -> str:
    """The name of a project of this process's own, which tells it apart from every other that ever had its pid."""
    owner = Owner.current()
    return f"proctor-{purpose}-{_namespace(owner)}-{owner.pid}-{owner.started}"


def remove_leftovers(engine: docker.DockerClient) -> None:
    """Remove containers, networks and volumes of the projects whose process lives no more.

    What a killed test run leaves has a restart policy: it would come back with the engine.
    """
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


class Stack:
    """A project of docker-compose; its containers by the names of their services."""

    def __init__(self, project: str, settings: Mapping[str, str]) -> None:
        self._project = project
        self._environment = {**os.environ, "COMPOSE_HTTP_TIMEOUT": "300", **settings}

    def compose(self, *arguments: str) -> str:
        """`docker-compose ...`: what it printed. Fails where it fails."""
        done = finished(
            ["docker-compose", "--project-name", self._project, "--file", "docker/compose.yaml", *arguments],
            cwd=ROOT,
            env=self._environment,
        )
        assert done.returncode == 0, done.stdout + done.stderr + self._logs()
        return done.stdout

    def _logs(self) -> str:
        """The last lines of all services."""
        command = ["docker-compose", "--project-name", self._project, "--file", "docker/compose.yaml"]
        return finished(
            [*command, *PROFILES, "logs", "--tail", "20", "--no-color"], cwd=ROOT, env=self._environment
        ).stdout

    def containers(self, service: str) -> list[str]:
        """The ids of a service's running containers."""
        return self.compose("ps", "--quiet", service).split()

    def kill(self, container: str) -> None:
        """SIGKILL to a container's first process, as a crash would end it: the engine then starts it anew."""
        with contextlib.closing(docker.from_env(timeout=int(slowly(60)))) as engine:
            os.kill(engine.containers.get(container).attrs["State"]["Pid"], signal.SIGKILL)


@contextlib.contextmanager
def stack(folder: Path, address: str, more: Mapping[str, object]) -> Iterator[Stack]:
    """The stack with ports and other settings, and secrets in a folder of ours; nothing of it is left behind."""
    for target in IMAGES:
        image(target)
    subprocess.run([ROOT / "docker" / "secrets.sh", folder / "secrets"], check=True, capture_output=True)
    settings = {
        "PROCTOR_SECRETS": str(folder / "secrets"),
        "PROCTOR_VERSION": "test",
        "POSTGRES_IMAGE": "proctor-store:test",
        "PROMETHEUS_IMAGE": "proctor-prometheus:test",
        "PUBLISH": address,
        "DOCKER_SOCKET": str(SOCKET),
        "DOCKER_GID": str(SOCKET.stat().st_gid),
        **{name: str(value) for name, value in more.items()},
    }
    running = Stack(project("e2e"), settings)
    try:
        yield running
    finally:
        running.compose(*PROFILES, "down", "--volumes")
