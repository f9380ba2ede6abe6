"""The stack of docker/compose.yaml under way, as `docker-compose` runs it on the engine of the tests."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import docker

from tests.deployments.compose_projects import project
from tests.deployments.docker_images import image
from tests.pace import slowly
from tests.support import ROOT

SOCKET = Path(os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://"))
IMAGES = ("controller", "client", "worker", "worker-db", "agents", "store")


class Stack:
    """A project of docker-compose; its containers by the names of their services."""

    def __init__(self, project: str, settings: Mapping[str, str]) -> None:
        self._project = project
        self._environment = {**os.environ, "COMPOSE_HTTP_TIMEOUT": "300", **settings}

    def compose(self, *arguments: str) -> str:
        """`docker-compose ...`: what it printed. Fails where it fails."""
        done = subprocess.run(
            ["docker-compose", "--project-name", self._project, "--file", "docker/compose.yaml", *arguments],
            cwd=ROOT,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr + self._logs()
        return done.stdout

    def _logs(self) -> str:
        """The last lines of all services."""
        command = ["docker-compose", "--project-name", self._project, "--file", "docker/compose.yaml"]
        return subprocess.run(
            [*command, "--profile", "os", "logs", "--tail", "20", "--no-color"],
            cwd=ROOT,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        ).stdout

    def containers(self, service: str) -> list[str]:
        """The ids of a service's running containers."""
        return self.compose("ps", "--quiet", service).split()

    def kill(self, container: str) -> None:
        """SIGKILL to a container's first process, as a crash would end it: the engine then starts it anew."""
        with contextlib.closing(docker.from_env(timeout=int(slowly(60)))) as engine:
            os.kill(engine.containers.get(container).attrs["State"]["Pid"], signal.SIGKILL)


@contextlib.contextmanager
def stack(folder: Path, address: str, ports: Mapping[str, int]) -> Iterator[Stack]:
    """The stack's settings, with secrets in a folder of ours; nothing of it is left behind."""
    for target in IMAGES:
        image(target)
    subprocess.run([ROOT / "docker" / "secrets.sh", folder / "secrets"], check=True, capture_output=True)
    settings = {
        "PROCTOR_SECRETS": str(folder / "secrets"),
        "PROCTOR_VERSION": "test",
        "POSTGRES_IMAGE": "proctor-store:test",
        "PUBLISH": address,
        "DOCKER_SOCKET": str(SOCKET),
        "DOCKER_GID": str(SOCKET.stat().st_gid),
        **{name: str(port) for name, port in ports.items()},
    }
    running = Stack(project("e2e"), settings)
    try:
        yield running
    finally:
        running.compose("--profile", "os", "down", "--volumes")
