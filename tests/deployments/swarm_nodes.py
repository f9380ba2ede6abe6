"""Docker Swarm nodes of a test's own on one machine: each with its own Docker engine, network, process tree and mounts.

A node is a process tree in namespaces of its own: when its first process ends, so does all of it, containers too, and
its mounts and interfaces go with it. Its engine alone can be killed, or its cable pulled: then the containers run on,
as they do on a machine that the others have lost.
"""

import contextlib
import functools
import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import rmtree
from types import MappingProxyType

from tests.pace import slowly, until
from tests.support import finished

WAIT_S = slowly(60.0)
CLI = "/usr/bin/docker"
"""Debian's own; another in the path may be of another age than the engine."""
CGROUPS = Path("/sys/fs/cgroup")
SWITCH = "ip link set lo up && ip link add lan type bridge && ip link set lan up && exec sleep infinity"
# The engine's data lie in memory, as unpacking images takes long on a disk, and removing them longer.
# The name server refuses at once: an engine that looks for an image's digest would else wait for an answer.
NODE = """
mount -t tmpfs tmpfs /run && mkdir /run/lock && hostname {name} && ip link set lo up
mkdir {folder}/data && mount -t tmpfs tmpfs {folder}/data
echo nameserver 127.0.0.1 > {folder}/resolv.conf && mount --bind {folder}/resolv.conf /etc/resolv.conf
dockerd --data-root {folder}/data --exec-root {folder}/exec --pidfile {folder}/pid --host {host} \
    --cgroup-parent /{cgroup} --shutdown-timeout 1 > {folder}/log 2>&1 &
while :; do wait; sleep 0.1; done
"""


class Tree:
    """A shell script in namespaces of its own; it and all that it began end with `end`, or with this process."""

    def __init__(self, script: str, *namespaces: str) -> None:
        unshare = ["setpriv", "--pdeathsig", "KILL", "unshare", *namespaces, "--fork", "--kill-child"]
        self._unshare = subprocess.Popen([*unshare, "sh", "-c", script], stdin=subprocess.DEVNULL)
        children = Path(f"/proc/{self._unshare.pid}/task/{self._unshare.pid}/children")
        until(lambda: bool(children.read_text()))
        self.first = int(children.read_text())

    def run(self, *command: str) -> str:
        """What a command prints within the namespaces."""
        inside = ["nsenter", "--target", str(self.first), "--net", "--mount", "--uts", "--pid", *command]
        return subprocess.run(inside, check=True, capture_output=True, text=True, timeout=WAIT_S).stdout

    def end(self) -> None:
        """kill -9"""
        self._unshare.kill()
        self._unshare.wait()
        until(lambda: not Path(f"/proc/{self.first}").exists())


class Node:
    """One machine of the swarm."""

    def __init__(self, folder: Path, number: int, switch: Tree) -> None:
        self.name, self.address = f"node{number}", f"10.213.0.{number}"
        self._cable, self._switch = f"cable{number}", switch
        self._folder = folder / self.name
        self._folder.mkdir()
        self._host = f"unix://{self._folder}/docker.sock"
        self._cgroup = f"{folder.name}-{number}"
        place = {"folder": shlex.quote(str(self._folder)), "host": self._host, "cgroup": self._cgroup}
        self._tree = Tree(NODE.format(name=self.name, **place), "--net", "--mount", "--uts", "--pid", "--mount-proc")
        ours, theirs = ("name", self._cable), ("peer", "name", "eth0", "netns", str(self._tree.first))
        switch.run("ip", "link", "add", *ours, "type", "veth", *theirs)
        switch.run("ip", "link", "set", self._cable, "master", "lan", "up")
        self._tree.run("ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        self._tree.run("ip", "link", "set", "eth0", "up")

    def docker(
        self,
        *arguments: str,
        check: bool = True,
        stdin: str = "",
        within_s: float = WAIT_S,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        """What `docker ...` prints at this node; nothing where it fails and need not succeed."""
        done = finished(
            [CLI, *arguments],
            env={"PATH": os.environ["PATH"], "HOME": str(self._folder), "DOCKER_HOST": self._host, **variables},
            input=stdin,
            timeout=within_s,
        )
        assert done.returncode == 0 or not check, f"docker {shlex.join(arguments)}: {done.stderr}"
        return done.stdout.strip() if done.returncode == 0 else ""

    def ready(self) -> bool:
        """Whether its engine answers."""
        return bool(self.docker("version", "--format", "{{.Server.Version}}", check=False))

    def kill_engine(self) -> None:
        """kill -9 of the engine; its containers stay."""
        self._tree.run("sh", "-c", f"kill -KILL $(cat {shlex.quote(str(self._folder))}/pid)")

    def pull_cable(self) -> None:
        """Nothing reaches it any more, and it reaches nothing."""
        self._switch.run("ip", "link", "set", self._cable, "down")

    def plug_in(self) -> None:
        """The cable is back."""
        self._switch.run("ip", "link", "set", self._cable, "up")

    def alive(self, word: str) -> int:
        """How many processes have a word in their command line, in the node's containers."""
        return sum(
            word.encode() in _read(entry / "cmdline").split(b"\0") and self._cgroup.encode() in _read(entry / "cgroup")
            for entry in Path("/proc").glob("[0-9]*")
        )

    def log(self) -> str:
        """The end of what its engine said."""
        return (self._folder / "log").read_text()[-2000:]

    def end(self) -> None:
        """Nothing of it stays but its folder."""
        self._tree.end()
        for group in [*CGROUPS.glob(self._cgroup), *CGROUPS.glob(f"*/{self._cgroup}")]:
            for inner in sorted(group.glob("**/"), reverse=True):  # the kernel needs a moment to empty them
                until(functools.partial(_removed, inner))


def _read(file: Path) -> bytes:
    with contextlib.suppress(OSError):  # it has ended
        return file.read_bytes()
    return b""


def _removed(group: Path) -> bool:
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()


def _filled(node: Node, images: Sequence[Path]) -> None:
    until(node.ready, seen=node.log)
    for image in images:
        node.docker("load", "--quiet", "--input", str(image), within_s=slowly(300))


@contextlib.contextmanager
def swarm(images: Sequence[Sequence[Path]]) -> Iterator[list[Node]]:
    """A swarm of managers, a node for each list of files with images, as `docker save` writes them."""
    folder = Path(tempfile.mkdtemp(prefix="proctor-swarm-", dir="/tmp"))
    with contextlib.ExitStack() as stack:
        stack.callback(rmtree, folder, ignore_errors=True)
        switch = Tree(SWITCH, "--net")
        stack.callback(switch.end)
        until(lambda: "lan" in switch.run("ip", "link"))
        made = []
        for number in range(1, len(images) + 1):
            made.append(Node(folder, number, switch))
            stack.callback(made[-1].end)
        with ThreadPoolExecutor() as threads:
            list(threads.map(_filled, made, images))
        made[0].docker("swarm", "init", "--advertise-addr", made[0].address, "--default-addr-pool", "10.214.0.0/16")
        token = made[0].docker("swarm", "join-token", "--quiet", "manager")
        for node in made[1:]:
            node.docker("swarm", "join", "--token", token, "--advertise-addr", node.address, made[0].address)
        yield made
