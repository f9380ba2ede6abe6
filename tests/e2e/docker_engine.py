"""A Docker engine of a test's own, to be stopped and started again."""

import contextlib
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import docker

from tests.pace import slowly, until

IMAGE = "proctor-os:latest"
START_S = 60.0
CALL_S = int(slowly(120))


class OwnEngine:
    """dockerd with its own data, sockets and containers."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._folder = folder
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self.host = f"unix://{folder / 'docker.sock'}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        # containerd takes no name with two marks in a row, as the folder's random letters may give.
        name = re.sub("[^a-z0-9]", "", self._folder.name)
        command = [
            *("dockerd", "--data-root", str(self._folder / "data"), "--exec-root", str(self._folder / "exec")),
            *("--pidfile", str(self._folder / "pid"), "--host", self.host, "--bridge=none", "--iptables=false"),
            *("--ip6tables=false", "--ip-forward=false", "--shutdown-timeout=1", f"--containerd-namespace={name}"),
            f"--containerd-plugins-namespace={name}-plugins",
            *self._options,
        ]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            self._await_answer()
        except BaseException:
            self.stop()
            raise

    def _await_answer(self) -> None:
        until(self._accepts, START_S, lambda: (self._folder / "log").read_text()[-2000:])
        with contextlib.closing(self.client()) as client:
            client.ping()

    def _accepts(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self._folder / "docker.sock")) == 0

    def client(self) -> docker.DockerClient:
        """A client of this engine; to be closed."""
        return docker.DockerClient(base_url=self.host, timeout=CALL_S)

    def stop(self) -> None:
        """SIGTERM, as a system does; its containers end with it."""
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(timeout=slowly(60))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def signal(self, number: int) -> None:
        """Send a signal to it alone; its containers know nothing of it."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, as of a system that is short of memory."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def containers(self) -> int:
        """How many containers there are, stopped ones too."""
        with contextlib.closing(self.client()) as client:
            return len(client.api.containers(all=True))


@contextlib.contextmanager
def own_engine(*options: str) -> Iterator[OwnEngine]:
    """An engine with the base image, copied from the one that DOCKER_HOST names, with more options."""
    folder = Path(tempfile.mkdtemp(prefix="proctor-e2e-", dir="/tmp"))
    engine = OwnEngine(folder, *options)
    engine.start()
    try:
        with (
            contextlib.closing(docker.from_env(timeout=CALL_S)) as source,
            contextlib.closing(engine.client()) as target,
        ):
            target.images.load(b"".join(source.images.get(IMAGE).save(named=True)))
        yield engine
    finally:
        with contextlib.suppress(AssertionError):
            engine.stop()
        shutil.rmtree(folder, ignore_errors=True)
