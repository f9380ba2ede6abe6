"""A `proctor up` under way on a cluster, and what of it runs where."""

import contextlib
import os
import re
import secrets
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import sqlalchemy as sa

from eval_client.store.tables import FREE, trial_table
from tests.deployments.ray_cluster import RayCluster, processes, read_of
from tests.e2e.proctor import COMMAND, TOKEN, Server, environment, exits
from tests.pace import slowly, until

KEY = {"OPENAI_API_KEY": TOKEN}
RUN_TOKEN = secrets.token_hex(16)
"""Of the servers that `proctor up` starts; nothing else on this machine knows it."""
TASK = "{name: db-own, environment: db, parameters: {engine: sqlite}}"
PLAN = """\
name: on-ray
agents:
  - {{name: reference, builtin: reference, endpoint: "{agents}", concurrency: {concurrency}}}
  - {{name: naive, builtin: naive, endpoint: "{agents}", concurrency: {concurrency}}}
tasks: [{task}]
"""


def write_plan(folder: Path, agents: Server, concurrency: int) -> None:
    (folder / "plan.yaml").write_text(PLAN.format(agents=agents.url, concurrency=concurrency, task=TASK))


@contextlib.contextmanager
def standing_still(pid: int) -> Iterator[None]:
    """While inside, a process does nothing, but keeps what it has."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


class Up:
    """`proctor up` under way."""

    def __init__(self, cluster: RayCluster, cwd: Path, *options: str, **variables: str) -> None:
        self._said = cwd / "up.log"
        command = [*COMMAND, "up", "--ray", cluster.address, "plan.yaml", "--name", "on-ray", *options]
        with self._said.open("w") as log:
            self.process = subprocess.Popen(
                command,
                cwd=cwd,
                env=environment(**KEY, **variables, PROCTOR_TOKEN=RUN_TOKEN),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def said(self) -> str:
        return self._said.read_text()

    def places(self) -> dict[str, tuple[str, str]]:
        """Each host's URL and node, once all three are up."""

        def found() -> list[tuple[str, str, str]]:
            return re.findall(r"^(controller|worker-\d): (\S+) on node (\S+)$", self.said(), re.MULTILINE)

        until(lambda: len(found()) >= 3 or self.process.poll() is not None, 90)
        assert len(found()) == 3, self.said()
        return {name: (url, node) for name, url, node in found()}

    def ended(self) -> None:
        assert self.process.wait(timeout=slowly(120)) == 0, self.said()


def of_ours(cluster: RayCluster) -> set[int]:
    """The driver's and the nodes' processes of ours: they know the token, or hold tasks."""
    files = str(cluster.folder)
    return {
        pid
        for pid in processes()
        if RUN_TOKEN in read_of(pid, "environ") or f"--tasks={files}" in read_of(pid, "cmdline")
    }


def removed_by_down(cluster: RayCluster, cwd: Path) -> int:
    down = exits(0, "down", "--ray", cluster.address, "on-ray", cwd=cwd)
    return int(down.stdout.split()[0])


def controllers(cluster: RayCluster) -> dict[str, int]:
    """Controller processes by node."""
    words = ("eval_client.cli.main", " controller ")
    return {address: pid for address, node in cluster.nodes.items() for pid in node.processes_of(*words)}


def moved_off_the_head(cluster: RayCluster) -> str:
    """The controller's node, once it is not the one that the cluster ends with; Ray may start it on any."""
    head = cluster.head.address
    while old := controllers(cluster).get(head):
        os.kill(processes()[old], signal.SIGKILL)  # its host
        until(lambda: old not in (controllers(cluster) or {head: old}).values(), 90)
    (node,) = controllers(cluster)
    return node


def ask(method: str, url: str, body: str | None = None, token: str = RUN_TOKEN) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    return httpx.request(method, url, content=body, headers=headers, timeout=slowly(30))


def url_of(controller: str, worker: str) -> str | None:
    """Where the controller thinks a worker is."""
    listed = ask("GET", f"{controller}/workers").raise_for_status().json()["workers"]
    return next((each["url"] for each in listed if each["worker"] == worker), None)


def players(url: str) -> set[int]:
    """The clients that hold trials now."""
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        held = sa.select(trial_table.c.holder).where(trial_table.c.holder != FREE)
        found = set(connection.execute(held).scalars())
    engine.dispose()
    return found
