"""A Docker Swarm of three real nodes: a run through the stack while a node is lost and the workers are replaced."""

import functools
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.deployments.docker_images import image
from tests.deployments.swarm_nodes import CLI, Node, swarm
from tests.e2e.proctor import begin, completed, rows
from tests.faults.parts.farm import put_away
from tests.pace import slowly, until
from tests.support import ROOT

STACK = ROOT / "docker" / "swarm"
TASKS = yaml.safe_load((STACK / "tasks.yaml").read_text(encoding="utf-8"))["tasks"]
SECRETS = {
    "token": "token-of-the-clients",
    "worker-token": "token-of-the-workers",
    "store-password": "password-of-the-store",
    "store-url": "postgresql+psycopg://proctor:password-of-the-store@store/proctor",
}
SETTINGS = {"STORE_IMAGE": "proctor-store:swarm", "VERSION": "swarm", "RUN": "swarmed", "GRACE": "5"}
PINNED = """\
version: "3.8"
services:
  controller: {deploy: {placement: {constraints: ["node.labels.proctor.store == 1"]}}}
"""
"""So that the node to be lost can be another than the controller's."""
LATENCY_S = 1.2
LOCAL = """\
name: local
agents:
  - {name: reference, builtin: reference}
  - {name: naive, builtin: naive}
tasks:
"""


class Stack:
    """The stack on a swarm, seen from its first node, which has the store."""

    def __init__(self, nodes: list[Node]) -> None:
        self._nodes, self._first = nodes, nodes[0]
        for name, value in SECRETS.items():
            self._first.docker("secret", "create", f"proctor-{name}", "-", stdin=value)
        self._first.docker("node", "update", "--label-add", "proctor.store=1", self._first.name)

    def deploy(self, folder: Path) -> None:
        """`docker stack deploy`, with agents that take their time, so that the run lasts."""
        shutil.copytree(STACK, folder / "swarm")
        agents = yaml.safe_load((STACK / "agents.yaml").read_text(encoding="utf-8"))
        for agent in agents["agents"]:
            agent["latency_s"] = LATENCY_S
        (folder / "swarm" / "agents.yaml").write_text(yaml.safe_dump(agents))
        (folder / "pinned.yaml").write_text(PINNED)
        files = [f"--compose-file={folder / name}" for name in ("swarm/stack.yaml", "pinned.yaml")]
        self._first.docker("stack", "deploy", "--resolve-image=never", *files, "proctor", variables=SETTINGS)

    def scale(self, service: str, tasks: int) -> None:
        self._first.docker("service", "scale", "--detach", f"proctor_{service}={tasks}")

    def settled(self, *, without: str = "") -> bool:
        """Whether as many of each service run, and are healthy, as shall, and none on a node that is gone."""
        counts = self._first.docker("service", "ls", "--format", "{{.Replicas}}").splitlines()
        wanted = ("--filter", "desired-state=running", "--format", "{{.Node}} {{.CurrentState}}")
        tasks = [task.split() for task in self._first.docker("stack", "ps", "proctor", *wanted).splitlines()]
        full = all(running == wanted for running, _, wanted in (count.partition("/") for count in counts))
        return full and all(state == "Running" and node != without for node, state, *_ in tasks)

    def standing(self) -> str:
        """Every task, and what each service said last, for a failure's message."""
        services = self._first.docker("service", "ls", "--format", "{{.Name}}").splitlines()
        said = [self._first.docker("service", "logs", "--raw", "--tail", "5", name, check=False) for name in services]
        columns = "{{.Name}} {{.Node}} {{.CurrentState}} {{.Error}}"
        return "\n".join([self._first.docker("stack", "ps", "proctor", "--no-trunc", "--format", columns), *said])

    def nodes_of(self, service: str) -> list[str]:
        """The names of the nodes that have a service's tasks."""
        tasks = ("service", "ps", f"proctor_{service}", "--filter", "desired-state=running", "--format", "{{.Node}}")
        return self._first.docker(*tasks).splitlines()

    def query(self, statement: str) -> list[list[str]]:
        """What the store answers."""
        container = self._first.docker("ps", "--quiet", "--filter", "name=proctor_store")
        psql = ("psql", "-h", "/tmp", "-U", "proctor", "-At", "-c", statement)
        return [line.split("|") for line in self._first.docker("exec", container, *psql).splitlines()]

    def holds(self, service: str) -> int:
        """How many tasks of a service are done."""
        states = self._first.docker("service", "ps", f"proctor_{service}", "--format", "{{.CurrentState}}").splitlines()
        return sum(state.startswith("Complete") for state in states)

    def replace(self, service: str) -> None:
        """`docker service update --force`, to its end."""
        self._first.docker(
            "service", "update", "--force", "--no-resolve-image", "--quiet", f"proctor_{service}", within_s=slowly(180)
        )


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """The images as files, under the names of the stack. The worker's has all that controller and agents need."""
    folder, archives = tmp_path_factory.mktemp("images"), {}
    for target, roles in {
        "worker": ("worker", "controller", "agents"),
        "client": ("client",),
        "store": ("store",),
    }.items():
        names = [f"proctor-{role}:swarm" for role in roles]
        for name in names:
            subprocess.run([CLI, "tag", image(target), name], check=True)
        archives[target] = folder / target
        subprocess.run([CLI, "save", "--output", str(archives[target]), *names], check=True)
    yield archives
    for archive in archives.values():
        archive.unlink()


@pytest.mark.images
@pytest.mark.swarm
def test_a_run_survives_the_loss_of_a_node_its_zombies_and_a_rolling_restart(
    tmp_path: Path, archives: dict[str, Path], request: pytest.FixtureRequest
) -> None:
    (tmp_path / "plan.yaml").write_text(LOCAL + yaml.safe_dump(TASKS))
    local = begin("run", "plan.yaml", "--name", "local", "--quiet", cwd=tmp_path)
    request.addfinalizer(functools.partial(put_away, local))
    common = [archives["worker"], archives["client"]]
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s {what}")

    with swarm([[archives["store"], *common], common, common]) as nodes:
        say("nodes")
        stack = Stack(nodes)
        stack.deploy(tmp_path)
        until(stack.settled, 120, stack.standing)
        say("stack")
        stack.scale("client", 2)
        until(lambda: turns(stack) > 60, 90, stack.standing)
        say("turns")

        victim = next(node for node in nodes[1:] if node.name in stack.nodes_of("client"))
        zombies = victim.alive("--controller")
        victim.kill_engine()
        victim.pull_cable()
        lost = time.monotonic()
        until(lambda: "Down" in nodes[0].docker("node", "ls"), seen=stack.standing)
        say(f"node seen down after {time.monotonic() - lost:.1f} s")
        until(lambda: stack.settled(without=victim.name), 90, stack.standing)
        say(f"all running elsewhere after {time.monotonic() - lost:.1f} s")
        assert victim.alive("--controller") == zombies >= 1
        assert victim.alive("--continue") >= 1
        victim.plug_in()

        stack.replace("worker")
        say("workers replaced")
        assert stack.query("SELECT state FROM proctor_run") == [["running"]], "the run was over before it was disturbed"
        until(lambda: stack.holds("client") >= 2, 180, stack.standing)
        say("run over")
        until(lambda: not victim.alive("--continue"))
        check(stack, local, tmp_path)


def turns(stack: Stack) -> int:
    """How many stand in the journal."""
    if not stack.query("SELECT 1 FROM pg_tables WHERE tablename = 'proctor_turn'"):
        return 0
    return int(stack.query("SELECT count(*) FROM proctor_turn")[0][0])


def check(stack: Stack, local: "subprocess.Popen[str]", folder: Path) -> None:
    """The table is that of the local run, and every trial was finished once."""
    completed(local, within_s=120)
    columns = ("agent", "task", "sample", "epoch", "reason", "score", "turns")
    expected = [[str(row[name]) for name in columns] for row in rows("local", folder)]
    found = stack.query(f"SELECT {', '.join(columns)} FROM proctor_trial")
    assert [[*row[:5], float(row[5]), row[6]] for row in sorted(found)] == [
        [*row[:5], float(row[5]), row[6]] for row in sorted(expected)
    ]
    finished = "SELECT count(*) FROM proctor_attempt WHERE outcome = 'finished' AND cause IS NULL GROUP BY run, trial"
    assert stack.query(finished) == [["1"]] * len(expected)
