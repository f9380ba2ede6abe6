"""A real Ray cluster on this machine: every node a `ray start` of its own, at a loopback address of its own."""

import contextlib
import ctypes
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.pace import slowly
from tests.support import ROOT

RAY = Path(sys.executable).with_name("ray")
READY_S = slowly(120.0)
PIDFD_GETFD = 438
"""Linux's call that copies a file descriptor of another process; the same number on every architecture."""
IMPATIENT = {  # notice a dead node sooner than by defaults, but bear a busy machine
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "10000",
    "RAY_health_check_failure_threshold": "6",
    "RAY_raylet_start_wait_time_s": "90",
    "RAY_USAGE_STATS_ENABLED": "0",
}


def processes() -> dict[int, int]:
    """Every process and its parent."""
    found: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    return found


def descendants(pid: int) -> set[int]:
    """A process and all that it and they have started."""
    parents, found = processes(), {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def read_of(pid: int, what: str) -> str:
    """`cmdline` or `environ` of a process, blanks for zeros; empty where it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/{what}").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


@contextlib.contextmanager
def held_open(pid: int) -> Iterator[None]:
    """While inside, the sockets between a process and its children stay open, even when it is dead."""
    libc, process = ctypes.CDLL(None, use_errno=True), os.pidfd_open(pid)
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, process)
        for name in os.listdir(f"/proc/{pid}/fd"):
            copy = libc.syscall(PIDFD_GETFD, process, int(name), 0)
            if copy < 0 or not os.readlink(f"/proc/self/fd/{copy}").startswith("socket:"):
                if copy >= 0:
                    os.close(copy)
                continue
            ours = stack.enter_context(socket.socket(fileno=copy))
            if ours.family != socket.AF_UNIX or ours.getsockname() or ours.getpeername():  # not a pair
                ours.close()
        yield


class Node:
    """One `ray start`, and everything that runs on it."""

    def __init__(self, address: str, folder: Path, *options: str) -> None:
        self.address = address
        self._log = folder / f"{address}.log"
        command = [str(RAY), "start", "--block", f"--node-ip-address={address}", "--object-store-memory=80000000"]
        environment = {**os.environ, **IMPATIENT, "PYTHONPATH": str(ROOT)}
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [*command, *options], cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def await_ready(self) -> None:
        """Until Ray says so; nodes that start side by side on one machine race for ports."""
        ends = time.monotonic() + READY_S
        while "block forever" not in self._log.read_text():
            assert self.process.poll() is None, self._log.read_text()
            assert time.monotonic() < ends, self._log.read_text()
            time.sleep(0.1)

    def process_of(self, *words: str) -> int:
        """The process on this node with these words in its command line."""
        (found,) = self.processes_of(*words)
        return found

    def processes_of(self, *words: str) -> list[int]:
        """All such."""
        return [pid for pid in descendants(self.process.pid) if all(w in read_of(pid, "cmdline") for w in words)]

    def kill(self, spare: Iterable[int] = ()) -> None:
        """kill -9 of all of it at once, as when a machine loses its power; the spared ones don't know yet."""
        for pid in descendants(self.process.pid) - set(spare):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


class RayCluster:
    """A head node that takes no workers, and nodes that each take two of the environment `db`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.create_server(("127.0.0.2", 0)) as free:
            port = free.getsockname()[1]
        self.address = f"127.0.0.2:{port}"
        self.nodes: dict[str, Node] = {}
        options = [f"--port={port}", "--num-cpus=0", "--include-dashboard=false", f"--temp-dir={folder}/ray"]
        self.head = self._start("127.0.0.2", "--head", *options)

    def add(self, address: str) -> None:
        """One more node."""
        options = [f"--address={self.address}", "--num-cpus=2", '--resources={"proctor_db": 2}']
        self._start(address, *options)

    def kill(self) -> None:
        """All of it."""
        for node in self.nodes.values():
            if node.process.poll() is None:
                node.kill()

    def logs(self) -> Iterator[str]:
        """All that Ray and our servers on its nodes have written."""
        for file in (self.folder / "ray").rglob("*"):
            if file.is_file() and not file.is_symlink():
                yield file.read_text(errors="replace")

    def _start(self, address: str, *options: str) -> Node:
        self.nodes[address] = node = Node(address, self.folder, *options)
        try:
            node.await_ready()
        except BaseException:
            self.kill()
            raise
        return node


@contextlib.contextmanager
def ray_cluster() -> Iterator[RayCluster]:
    """Three nodes that ask for a token, known to what is started meanwhile; killed, their files removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="proctor-ray-", dir="/tmp"))  # sockets lie there: the path must be short
    cluster = None
    with pytest.MonkeyPatch.context() as variables:
        variables.setenv("RAY_AUTH_MODE", "token")
        variables.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        try:
            cluster = RayCluster(folder)
            cluster.add("127.0.0.3")
            cluster.add("127.0.0.4")
            yield cluster
        finally:
            if cluster is not None:
                cluster.kill()
            shutil.rmtree(folder)
