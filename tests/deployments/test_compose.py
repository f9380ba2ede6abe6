"""The stack of docker/compose.yaml: all ten environments from another machine, with kills in mid-run.

One of them is played by an agent from a mounted file too.
"""

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import docker
import pytest
import sqlalchemy as sa
import yaml

from eval_client.store.tables import trial_table
from proctor.sandbox.docker_containers import HOME_LABEL
from tests.deployments.docker_compose import Stack, stack
from tests.e2e.proctor import COMMAND, begin, environment, exits, proctor
from tests.pace import slowly
from tests.support import ROOT

pytestmark = [
    *(pytest.mark.compose, pytest.mark.images, pytest.mark.docker, pytest.mark.mariadb),
    pytest.mark.usefixtures("no_leftovers"),
]

PORTS = {"CONTROLLER_PORT": 28000, "AGENTS_PORT": 28001, "OWN_AGENT_PORT": 28002, "STORE_PORT": 25432}
VARYING = {"run", "seconds", "attempts", "ended_at"}
PATIENCE_S = slowly(240.0)


def test_ten_environments_from_another_machine_with_a_worker_and_the_controller_killed_equal_the_local_run(
    tmp_path: Path,
) -> None:
    outside = yaml.safe_load((ROOT / "docker" / "outside.yaml").read_text())
    tasks = yaml.safe_load((ROOT / "docker" / "tasks-agents.yaml").read_text())["tasks"]
    assert len(tasks) == 10
    own = {"name": "own", "function": f"{ROOT / 'docker' / 'agent' / 'agent.py'}:answer"}
    plan = {"name": "local", "seed": outside["seed"], "agents": [{"name": "reference", "builtin": "reference"}, own]}
    who_plays_what = [
        {"agents": ["reference"], "tasks": [task["name"] for task in tasks]},
        {"agents": ["own"], "tasks": ["mind2web"]},
    ]
    (tmp_path / "local.yaml").write_text(yaml.safe_dump({**plan, "tasks": tasks, "assignments": who_plays_what}))
    with (
        begin("run", "local.yaml", "--name", "local", "--quiet", cwd=tmp_path) as local,
        elsewhere() as there,
        stack(tmp_path, there.address, PORTS) as running,
    ):
        outside["controller"] = f"http://{there.address}:{PORTS['CONTROLLER_PORT']}"
        outside["endpoints"][0]["base_url"] = f"http://{there.address}:{PORTS['AGENTS_PORT']}/v1"
        at_own = {"name": "own", "base_url": f"http://{there.address}:{PORTS['OWN_AGENT_PORT']}/v1"}
        outside["endpoints"].append({**outside["endpoints"][0], **at_own})
        outside["agents"].append({"name": "own", "endpoint": "own", "model": "own", "metadata": True})
        outside["assignments"] = who_plays_what
        outside.setdefault("limits", {})["patience_s"] = slowly(60.0)
        (tmp_path / "outside.yaml").write_text(yaml.safe_dump(outside))
        password = (tmp_path / "secrets" / "store-password").read_text()
        store = f"postgresql+psycopg://proctor:{password}@{there.address}:{PORTS['STORE_PORT']}/proctor"
        (tmp_path / "store-url").write_text(store)
        running.compose("--profile", "os", "--profile", "agent", "up", "--detach", "--no-build", "--scale", "worker=3")
        running.compose("run", "--rm", "client", "--version")  # returns once all are healthy
        assert len(running.containers("worker")) == 3

        settings = {"PROCTOR_TOKEN_FILE": str(tmp_path / "secrets" / "token"), "PROCTOR_STORE_FILE": "store-url"}
        run = _from_there(there.prefix, tmp_path, settings)
        _kill_in_mid_run(running, run, sa.create_engine(store))
        said, wrong = run.communicate(timeout=PATIENCE_S)
        assert run.returncode == 0, said + wrong

        exits(0, "export", "outside", "--to", "outside.jsonl", cwd=tmp_path, PROCTOR_STORE=store)
        within = running.compose("run", "--rm", "client", "report", "outside", "--json")
        assert len(json.loads(within)["pairs"]) == 11
        assert _orphans(running.containers("worker-os")[0]) == []
        relayed = running.compose("exec", "-T", "controller", "python", "-c", RELAYED)
        assert float(relayed) > 100

        said, wrong = local.communicate(timeout=PATIENCE_S)
        assert local.returncode == 0, said + wrong
    assert proctor("export", "local", "--to", "local.jsonl", cwd=tmp_path).returncode == 0
    assert _table(tmp_path / "outside.jsonl") == _table(tmp_path / "local.jsonl")


RELAYED = """
import urllib.request
token = open("/run/secrets/token").read().strip()
asked = urllib.request.Request("http://127.0.0.1:8000/metrics", headers={"Authorization": f"Bearer {token}"})
lines = urllib.request.urlopen(asked).read().decode().splitlines()
print(sum(float(line.split()[-1]) for line in lines if line.startswith("proctor_relayed_total")))
"""


def _orphans(worker: str) -> list[str]:
    """Sandboxes that an earlier life of a worker's container left behind."""
    with contextlib.closing(docker.from_env(timeout=int(slowly(60)))) as engine:
        start = engine.containers.get(worker).attrs["State"]["StartedAt"]
        homes = [each.labels[HOME_LABEL] for each in engine.containers.list(filters={"label": HOME_LABEL})]
    return [home for home in homes if home.startswith(worker) and home != f"{worker} {start}"]


def _from_there(prefix: tuple[str, ...], cwd: Path, settings: dict[str, str]) -> subprocess.Popen[str]:
    """`proctor run outside.yaml` on the other machine."""
    variables = {key: value for key, value in environment(**settings).items() if key != "PROCTOR_TOKEN"}
    command = [*prefix, *COMMAND, "run", "outside.yaml", "--name", "outside", "--quiet"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=cwd, env=variables, stdout=pipe, stderr=pipe, text=True)


def _kill_in_mid_run(running: Stack, run: subprocess.Popen[str], store: sa.Engine) -> None:
    """SIGKILL to the worker for os, to one of three others, and to the controller, all while the run is under way."""
    for settled, service in ((10, "worker-os"), (30, "worker"), (60, "controller")):
        _until_settled(settled, store, run)
        running.kill(running.containers(service)[0])
        assert run.poll() is None
    store.dispose()


def _until_settled(least: int, store: sa.Engine, run: subprocess.Popen[str]) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while _settled(store) < least:
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < give_up
        time.sleep(0.05)


def _settled(store: sa.Engine) -> int:
    """How many trials have their final row."""
    if not sa.inspect(store).has_table(trial_table.name):
        return 0
    with store.connect() as connection:
        count = sa.select(sa.func.count()).where(trial_table.c.reason.is_not(None))
        return connection.execute(count).scalar_one()


def _table(path: Path) -> list[dict[str, object]]:
    """The exported trials without what differs between equal runs."""
    rows = map(json.loads, path.read_text().splitlines())
    kept = [{key: value for key, value in row.items() if key not in VARYING | {"id"}} for row in rows]
    return sorted(kept, key=lambda row: (row["agent"], row["task"], row["sample"]))


@dataclass(frozen=True)
class Elsewhere:
    """A place from which only one address of this machine is reached, and none of its containers."""

    address: str
    """This machine's, as seen from there."""
    prefix: tuple[str, ...]
    """Begins a command that is to run there."""


@contextlib.contextmanager
def network_namespace() -> Iterator[int]:
    """A network namespace without any interface that is up: the id of a process in it; needs root."""
    with subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdin.write(b"\n")
        holder.stdin.flush()
        holder.stdout.read(1)  # it has entered its namespace once it answers
        try:
            yield holder.pid
        finally:
            holder.stdin.close()


@contextlib.contextmanager
def elsewhere() -> Iterator[Elsewhere]:
    """A network namespace at the end of a cable of its own, without further routes; needs root."""
    cable, subnet = f"pe{os.getpid()}", f"10.{200 + os.getpid() % 50}.{os.getpid() // 50 % 250}"
    with network_namespace() as pid:
        there = ("nsenter", f"--net=/proc/{pid}/ns/net")
        _run("ip", "link", "add", f"{cable}a", "type", "veth", "peer", "name", f"{cable}b", "netns", str(pid))
        _run("ip", "address", "add", f"{subnet}.1/24", "dev", f"{cable}a")
        _run("ip", "link", "set", f"{cable}a", "up")
        _run(*there, "ip", "link", "set", "lo", "up")
        _run(*there, "ip", "address", "add", f"{subnet}.2/24", "dev", f"{cable}b")
        _run(*there, "ip", "link", "set", f"{cable}b", "up")
        yield Elsewhere(f"{subnet}.1", there)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (command, done.stderr)
