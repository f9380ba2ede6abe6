"""A worker on another machine, whose address changes: in a network namespace, at the other end of a cable."""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.gates import gate
from tests.e2e.proctor import begin, completed, rows, server
from tests.pace import slowly, until

pytestmark = pytest.mark.lan
TASK = "{name: db-own, environment: db, capacity: 4, parameters: {engine: sqlite}}"
AGENTS = """\
token_env: PROCTOR_TOKEN
tasks: [{task}]
agents: [{{name: reference, kind: reference, latency_s: 0.2}}]
"""
PLAN = """\
name: moved
controller: {controller}
agents: [{{name: reference, builtin: reference, endpoint: "{agents}", concurrency: 4}}]
tasks: [{{name: db-own}}]
limits: {{attempts: 1, patience_s: {patience_s}}}
"""
KEY = {"OPENAI_API_KEY": "token-of-the-tests"}


@dataclass
class Cable:
    """A machine of its own behind a cable: ours is `net.1` at the near end."""

    net: str
    near: str
    pid: int

    @property
    def within(self) -> list[str]:
        """What starts a command there."""
        return ["nsenter", "--net", f"--target={self.pid}"]

    def there(self, *command: str) -> None:
        subprocess.run([*self.within, "ip", *command], check=True)

    def address(self, old: int, new: int) -> None:
        """The machine there has this address from now on, as a DHCP server gives another."""
        self.there("addr", "del", f"{self.net}.{old}/24", "dev", "far0")
        self.there("addr", "add", f"{self.net}.{new}/24", "dev", "far0")


@contextlib.contextmanager
def cable() -> Iterator[Cable]:
    near, net = f"pn{os.getpid()}", f"10.213.{os.getpid() % 250}"
    with subprocess.Popen(["unshare", "--net", "sleep", "infinity"]) as machine:
        try:
            until(lambda: Path(f"/proc/{machine.pid}/ns/net").stat().st_ino != Path("/proc/self/ns/net").stat().st_ino)
            ip = ["ip", "link", "add", near, "type", "veth", "peer", "name", "far0", "netns", str(machine.pid)]
            subprocess.run(ip, check=True)
            subprocess.run(["ip", "addr", "add", f"{net}.1/24", "dev", near], check=True)
            subprocess.run(["ip", "link", "set", near, "up"], check=True)
            made = Cable(net, near, machine.pid)
            made.there("link", "set", "lo", "up")
            made.there("addr", "add", f"{net}.2/24", "dev", "far0")
            made.there("link", "set", "far0", "up")
            yield made
        finally:
            subprocess.run(["ip", "link", "del", near], check=False)
            machine.kill()


@pytest.mark.parametrize("cut_s", [0, 4])
def test_a_worker_whose_address_changes_is_known_by_the_new_one_and_its_sessions_go_on(
    tmp_path: Path, cut_s: int
) -> None:
    (tmp_path / "tasks.yaml").write_text(f"tasks: [{TASK}]\n")
    (tmp_path / "agents.yaml").write_text(AGENTS.format(task=TASK))
    with cable() as lan, contextlib.ExitStack() as stack:
        lease = f"--lease={slowly(20) + cut_s}"
        controller = stack.enter_context(server("controller", f"--host={lan.net}.1", lease, cwd=tmp_path))
        options = ("--host=0.0.0.0", "--tasks=tasks.yaml", f"--controller={controller.url}")
        worker = stack.enter_context(server("worker", *options, cwd=tmp_path, within=lan.within))
        assert worker.url.startswith(f"http://{lan.net}.2:")
        agents = stack.enter_context(server("agents", "--config", "agents.yaml", cwd=tmp_path))
        plan = tmp_path / "plan.yaml"
        plan.write_text(PLAN.format(controller=controller.url, agents=agents.url, patience_s=slowly(60)))
        way = stack.enter_context(gate(plan, agents.url))
        way.shut(spared=6)
        client = begin("run", "plan.yaml", "--name", "r", cwd=tmp_path, **KEY)
        until(lambda: client.poll() is not None or way.calls > 8)
        assert client.poll() is None, client.communicate()
        if cut_s:
            lan.there("link", "set", "far0", "down")
            time.sleep(cut_s)
            lan.there("link", "set", "far0", "up")
        lan.address(2, 3)
        moved = worker.url.replace(f"{lan.net}.2", f"{lan.net}.3")
        told = tmp_path / "worker.log"
        until(lambda: f"this worker's address is now {moved}; it was {worker.url}" in told.read_text())
        way.open()
        errors = completed(client)
        assert "attempts lost 0" in errors
        assert all(row["score"] is not None for row in rows("r", tmp_path))
    assert "is lost" not in (tmp_path / "controller.log").read_text()
