"""A run on a real Ray cluster of three nodes, while parts of it die."""

import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from eval_client.store.tables import FREE, trial_table
from task_server.access import token_for
from task_server.protocol import Heartbeat, StartSession, TaskList
from tests.database_servers import postgresql
from tests.deployments.ray_cluster import RayCluster, held_open, processes, ray_cluster, read_of
from tests.e2e.proctor import COMMAND, TOKEN, Server, environment, proctor, rows, server

pytestmark = pytest.mark.ray

KEY = {"OPENAI_API_KEY": TOKEN}
RUN_TOKEN = secrets.token_hex(16)
"""Of the servers that `proctor up` starts; nothing else on this machine knows it."""
CALLS = "proctor_agent_requests_total"
TURNS = 68
TASK = "{name: db-own, environment: db, parameters: {engine: sqlite}}"
PLAN = """\
name: on-ray
agents:
  - {{name: reference, builtin: reference, endpoint: "{agents}", concurrency: {concurrency}}}
  - {{name: naive, builtin: naive, endpoint: "{agents}", concurrency: {concurrency}}}
tasks: [{task}]
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with ray_cluster() as started:
        yield started


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Built-in agents that take half a second to answer."""
    folder = tmp_path_factory.mktemp("agents")
    kinds = [f"{{name: {kind}, kind: {kind}, latency_s: 0.5}}" for kind in ("reference", "naive")]
    config = f"token_env: PROCTOR_TOKEN\ntasks: [{TASK}]\nagents: [{', '.join(kinds)}]\n"
    (folder / "agents.yaml").write_text(config)
    with server("agents", "--config", "agents.yaml", cwd=folder) as running:
        yield running


@pytest.fixture(scope="module")
def expected(agents: Server, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    """The table of the same run on one machine."""
    folder = tmp_path_factory.mktemp("local")
    write_plan(folder, agents, concurrency=16)
    local = proctor("run", "plan.yaml", "--name", "local", "-q", cwd=folder, **KEY)
    assert local.returncode == 0, local.stderr
    return rows("local", folder)


def write_plan(folder: Path, agents: Server, concurrency: int) -> None:
    (folder / "plan.yaml").write_text(PLAN.format(agents=agents.url, concurrency=concurrency, task=TASK))


def until(condition: Callable[[], object], what: str, within_s: float = 90.0) -> None:
    ends = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < ends, what
        time.sleep(0.05)


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

        until(lambda: len(found()) >= 3 or self.process.poll() is not None, "hosts")
        assert len(found()) == 3, self.said()
        return {name: (url, node) for name, url, node in found()}

    def ended(self) -> None:
        assert self.process.wait(timeout=120) == 0, self.said()


def of_ours(cluster: RayCluster) -> set[int]:
    """The driver's and the nodes' processes of ours: they know the token, or hold tasks."""
    files = str(cluster.folder)
    return {
        pid
        for pid in processes()
        if RUN_TOKEN in read_of(pid, "environ") or f"--tasks={files}" in read_of(pid, "cmdline")
    }


def removed_by_down(cluster: RayCluster, cwd: Path) -> int:
    down = proctor("down", "--ray", cluster.address, "on-ray", cwd=cwd)
    assert down.returncode == 0, down.stderr
    return int(down.stdout.split()[0])


Begin = Callable[..., Up]


@pytest.fixture
def begin(cluster: RayCluster, tmp_path: Path) -> Iterator[Begin]:
    """Begins a `proctor up`; nothing of any of them may be left in the end."""
    begun: list[Up] = []

    def up(*options: str, **variables: str) -> Up:
        begun.append(Up(cluster, tmp_path, *options, **variables))
        return begun[-1]

    yield up
    for each in begun:
        each.process.kill()
        each.process.wait()
    try:
        until(lambda: not of_ours(cluster), "our servers outlive the run", within_s=20)
    except AssertionError:
        removed_by_down(cluster, tmp_path)
        raise


def test_turns_need_no_ray_and_killed_servers_come_back(
    cluster: RayCluster, begin: Begin, agents: Server, expected: list[dict[str, object]], tmp_path: Path
) -> None:
    write_plan(tmp_path, agents, concurrency=2)
    before = agents.metric(CALLS)
    up = begin()
    places = up.places()
    assert {node for name, (_, node) in places.items() if name != "controller"} == {"127.0.0.3", "127.0.0.4"}

    def calls() -> float:
        return agents.metric(CALLS) - before

    until(lambda: calls() >= 4, "the first turns")
    gcs = cluster.head.process_of("gcs_server")
    os.kill(gcs, signal.SIGSTOP)
    seen = calls()
    try:
        until(lambda: calls() >= seen + 8, "turns while Ray's control store stands still", within_s=30)
    finally:
        os.kill(gcs, signal.SIGCONT)

    _, node = places["worker-1"]
    os.kill(cluster.nodes[node].process_of("eval_client.cli.main", "--name=worker-1"), signal.SIGKILL)
    _, node = places["controller"]
    controller = cluster.nodes[node].process_of("eval_client.cli.main", " controller ")
    os.kill(processes()[controller], signal.SIGKILL)  # its host: another one takes another address
    assert not any(RUN_TOKEN in read_of(pid, "cmdline") for pid in processes())
    up.ended()
    assert rows("on-ray", tmp_path) == expected
    assert calls() == TURNS
    assert re.search(r"attempts lost [1-9]", up.said())
    assert not any(RUN_TOKEN in text for text in cluster.logs())
    assert removed_by_down(cluster, tmp_path) == 0


def test_a_driver_killed_leaves_its_hosts_which_the_next_one_replaces(
    cluster: RayCluster, begin: Begin, agents: Server, expected: list[dict[str, object]], tmp_path: Path
) -> None:
    write_plan(tmp_path, agents, concurrency=4)
    before = agents.metric(CALLS)
    first = begin()
    old = first.places()
    until(lambda: agents.metric(CALLS) >= before + 12, "the first turns")
    first.process.kill()
    first.process.wait()
    again = begin("--keep")
    assert not {url for url, _ in again.places().values()} & {url for url, _ in old.values()}
    again.ended()
    assert "3 hosts of an earlier `proctor up` removed" in again.said()
    assert rows("on-ray", tmp_path) == expected
    assert agents.metric(CALLS) - before <= TURNS + 8
    assert httpx.get(again.places()["controller"][0] + "/healthz").status_code == 200
    assert removed_by_down(cluster, tmp_path) == 3
    assert removed_by_down(cluster, tmp_path) == 0


def test_a_node_that_dies_in_mid_run_costs_time_only_and_its_zombie_is_refused(
    cluster: RayCluster, begin: Begin, agents: Server, expected: list[dict[str, object]], tmp_path: Path
) -> None:
    write_plan(tmp_path, agents, concurrency=1)
    before = agents.metric(CALLS)
    up = begin("--keep")
    places = up.places()
    controller = places["controller"]
    until(lambda: agents.metric(CALLS) >= before + 6, "the first turns")

    name = next(name for name, (_, node) in places.items() if name != "controller" and node != controller[1])
    url, node = places[name]
    zombie = cluster.nodes[node].process_of("eval_client.cli.main", f"--name={name}")
    with held_open(processes()[zombie]):  # so that it does not notice that its host is gone
        cluster.nodes[node].kill(spare=[zombie])
        tasks = ask("GET", f"{url}/tasks", token=token_for(RUN_TOKEN, url)).raise_for_status()
        boot = TaskList.model_validate_json(tasks.content).version.partition("-")[0]

        until(lambda: url_of(controller[0], name) not in (None, url), f"{name} on another node")
        start = StartSession(session="0" * 32, task="db-own", sample="x")
        assert (
            ask("POST", f"{url}/sessions", start.model_dump_json(), token_for(RUN_TOKEN, url)).json()["type"]
            == "not_ready"
        )
        (token,) = re.findall(r"PROCTOR_WORKER_TOKEN=(\w+)", read_of(zombie, "environ"))
        late = Heartbeat(worker=name, boot=boot, url=url, sequence=10_000, tasks=(), sessions=())
        assert ask("POST", f"{controller[0]}/workers", late.model_dump_json(), token).json()["type"] == "turn_conflict"
    up.ended()
    assert rows("on-ray", tmp_path) == expected
    assert agents.metric(CALLS) - before == TURNS
    assert removed_by_down(cluster, tmp_path) == 3


def players(url: str) -> set[int]:
    """The clients that hold trials now."""
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        held = sa.select(trial_table.c.holder).where(trial_table.c.holder != FREE)
        found = set(connection.execute(held).scalars())
    engine.dispose()
    return found


@pytest.mark.postgresql
def test_client_shards_on_the_nodes_come_to_the_same_table(
    cluster: RayCluster, begin: Begin, agents: Server, expected: list[dict[str, object]], tmp_path: Path
) -> None:
    write_plan(tmp_path, agents, concurrency=1)
    before = agents.metric(CALLS)
    with postgresql() as database:
        store = {"PROCTOR_STORE": database.url}
        up = begin("--shards", "2", **store)
        until(lambda: agents.metric(CALLS) >= before + 1, "the first turn")
        until(lambda: len(players(database.url)) == 2, "two clients with trials of their own")
        up.ended()
        assert rows("on-ray", tmp_path, **store) == expected
    assert agents.metric(CALLS) - before == TURNS


ALONE = "from eval_client.cli.main import main; main()"
WITHOUT_RAY = f"import sys; sys.modules['ray'] = None; {ALONE}"


@pytest.mark.parametrize(
    ("program", "address", "said"),
    [
        (ALONE, "ray://127.0.0.1:10001", "give HOST:PORT of the head node"),
        (ALONE, "127.0.0.1:1", "nothing answers there: [Errno 111] Connection refused; start it: ray start --head"),
        (WITHOUT_RAY, "auto", "--ray: Ray is not installed here; pip install 'proctor[ray]'"),
    ],
)
def test_a_mistake_ends_in_one_line_and_exit_code_2(program: str, address: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(f"agents: [{{name: naive, builtin: naive}}]\ntasks: [{TASK}]\n")
    command = [sys.executable, "-c", program, "up", "--ray", address, "plan.yaml"]
    ended = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


SET_VERSION = """
import json, sys, ray
from ray.experimental.internal_kv import _internal_kv_get, _internal_kv_put
ray.init(sys.argv[1], logging_level="ERROR")
key, where = b"CLUSTER_METADATA", b"cluster"
known = json.loads(_internal_kv_get(key, namespace=where))
_internal_kv_put(key, json.dumps({**known, "python_version": "3.99.1"}).encode(), namespace=where)
"""


def test_another_minor_version_of_python_is_refused(cluster: RayCluster, tmp_path: Path) -> None:
    """The last test: Ray keeps what the head node says of itself."""
    (tmp_path / "plan.yaml").write_text(f"agents: [{{name: naive, builtin: naive}}]\ntasks: [{TASK}]\n")
    subprocess.run([sys.executable, "-c", SET_VERSION, cluster.address], env=environment(), check=True)
    refused = proctor("up", "--ray", cluster.address, "plan.yaml", cwd=tmp_path)
    assert refused.returncode == 2
    assert "3.99.1" in refused.stderr
    assert "need the same Ray and the same minor version of Python" in refused.stderr


def ask(method: str, url: str, body: str | None = None, token: str = RUN_TOKEN) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    return httpx.request(method, url, content=body, headers=headers, timeout=30)


def url_of(controller: str, worker: str) -> str | None:
    """Where the controller thinks a worker is."""
    listed = ask("GET", f"{controller}/workers").raise_for_status().json()["workers"]
    return next((each["url"] for each in listed if each["worker"] == worker), None)
