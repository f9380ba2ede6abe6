"""A run on a real Ray cluster of three nodes, while parts of it die."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from task_server.http.access import token_for
from task_server.wire.messages import StartSession, TaskList
from task_server.wire.worker_messages import Heartbeat
from tests.database_servers import postgresql
from tests.deployments.ray_cluster import RayCluster, held_open, processes, ray_cluster, read_of
from tests.deployments.ray_runs import (
    KEY,
    RUN_TOKEN,
    TASK,
    Up,
    ask,
    controllers,
    moved_off_the_head,
    of_ours,
    removed_by_down,
    standing_still,
    url_of,
    write_plan,
)
from tests.e2e.proctor import Server, environment, exits, rows, server
from tests.pace import slowly, until

pytestmark = pytest.mark.ray

CALLS = "proctor_agent_requests_total"
TURNS = 68


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
    exits(0, "run", "plan.yaml", "--name", "local", "-q", cwd=folder, **KEY)
    return rows("local", folder)


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
        until(lambda: not of_ours(cluster), 20, lambda: "our servers outlive the run")
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

    until(lambda: calls() >= 4, 90)
    with standing_still(cluster.head.process_of("gcs_server")):
        seen = calls()
        until(lambda: calls() >= seen + 8, 30)

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
    until(lambda: agents.metric(CALLS) >= before + 12, 90)
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
    until(lambda: agents.metric(CALLS) >= before + 6, 90)

    name = next(name for name, (_, node) in places.items() if name != "controller" and node != controller[1])
    url, node = places[name]
    zombie = cluster.nodes[node].process_of("eval_client.cli.main", f"--name={name}")
    with held_open(processes()[zombie]):  # so that it does not notice that its host is gone
        cluster.nodes[node].kill(spare=[zombie])
        tasks = ask("GET", f"{url}/tasks", token=token_for(RUN_TOKEN, url)).raise_for_status()
        boot = TaskList.model_validate_json(tasks.content).version.partition("-")[0]

        until(lambda: url_of(controller[0], name) not in (None, url), 90)
        start = StartSession(session="0" * 32, task="db-own", sample="x").model_dump_json()

        def refusal() -> object:
            return ask("POST", f"{url}/sessions", start, token_for(RUN_TOKEN, url)).json()["type"]

        until(lambda: refusal() == "not_ready", 90)
        (token,) = re.findall(r"PROCTOR_WORKER_TOKEN=(\w+)", read_of(zombie, "environ"))
        late = Heartbeat(worker=name, boot=boot, url=url, sequence=10_000, tasks=(), sessions=())
        assert ask("POST", f"{controller[0]}/workers", late.model_dump_json(), token).json()["type"] == "turn_conflict"
    up.ended()
    assert rows("on-ray", tmp_path) == expected
    assert agents.metric(CALLS) - before == TURNS
    assert removed_by_down(cluster, tmp_path) == 3


def test_the_death_of_the_controllers_node_costs_time_only(
    cluster: RayCluster, begin: Begin, agents: Server, expected: list[dict[str, object]], tmp_path: Path
) -> None:
    cluster.add("127.0.0.5")  # in place of the one that died before
    write_plan(tmp_path, agents, concurrency=1)
    before = agents.metric(CALLS)

    def calls() -> float:
        return agents.metric(CALLS) - before

    up = begin("--keep", "--workers", "2")
    up.places()
    with standing_still(agents.process.pid):
        node = moved_off_the_head(cluster)
    seen = calls()
    until(lambda: calls() >= seen + 4, 90)
    cluster.nodes[node].kill()
    assert calls() < TURNS / 2
    up.ended()
    assert rows("on-ray", tmp_path) == expected
    assert calls() == TURNS
    assert list(controllers(cluster)) not in ([], [node])
    assert removed_by_down(cluster, tmp_path) == 3


def test_a_node_wrongly_taken_for_dead_has_a_second_controller_begin_beside_its_own(
    cluster: RayCluster, begin: Begin, agents: Server, expected: list[dict[str, object]], tmp_path: Path
) -> None:
    cluster.add("127.0.0.6")
    write_plan(tmp_path, agents, concurrency=1)
    before = agents.metric(CALLS)
    up = begin("--keep", "--workers", "2")
    up.places()
    with contextlib.ExitStack() as raylet:
        with standing_still(agents.process.pid):
            node = moved_off_the_head(cluster)
            raylet.enter_context(standing_still(cluster.nodes[node].process_of("raylet/raylet")))
            until(lambda: len(controllers(cluster)) == 2, 120)
        seen = agents.metric(CALLS)
        until(lambda: agents.metric(CALLS) >= seen + 4, 90)
    cluster.nodes[node].process.wait(timeout=slowly(60))  # the raylet learns that it is dead
    assert agents.metric(CALLS) - before < TURNS
    up.ended()
    assert rows("on-ray", tmp_path) == expected
    assert agents.metric(CALLS) - before == TURNS
    assert node not in controllers(cluster)
    assert removed_by_down(cluster, tmp_path) == 3


def test_a_world_from_a_file_goes_along_to_the_nodes_and_a_function_is_called_here(
    cluster: RayCluster, begin: Begin, tmp_path: Path
) -> None:
    exits(0, "init", "--world", "trivia", cwd=tmp_path)
    (tmp_path / "agent.py").write_text("def answer(messages, tools):\n    return 'gold'\n")
    agents = "[{name: mine, function: ./agent.py:answer}, {name: reference, builtin: reference}]"
    (tmp_path / "plan.yaml").write_text(f"agents: {agents}\ntasks: [{{environment: ./trivia.py}}]\n")
    begin().ended()
    assert [row["score"] for row in rows("on-ray", tmp_path)].count(1.0) == 1 + 5
    there = {file.name for file in (cluster.folder / "ray").rglob("worker-*-files/trivia/*")}
    assert there == {"trivia.py", "trivia.jsonl"}


@pytest.mark.postgresql
def test_parts_on_the_nodes_come_to_the_same_table(
    cluster: RayCluster, begin: Begin, agents: Server, expected: list[dict[str, object]], tmp_path: Path
) -> None:
    write_plan(tmp_path, agents, concurrency=1)
    before = agents.metric(CALLS)
    with postgresql() as database:
        store = {"PROCTOR_STORE": database.url}
        begin("--parts", "2", **store).ended()
        exits(0, "export", "on-ray", "--to", "rows.jsonl", cwd=tmp_path, **store)
    found = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    played = ("agent", "task", "sample", "epoch", "reason", "score", "turns")
    assert [[row[name] for name in played] for row in found] == [[row[name] for name in played] for row in expected]
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


@pytest.mark.parametrize(
    "here", [{"RAY_AUTH_MODE": "disabled"}, {"RAY_AUTH_TOKEN": "", "HOME": "/nowhere"}], ids=["disabled", "none"]
)
def test_who_does_not_know_the_clusters_token_is_told_so(
    cluster: RayCluster, here: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "plan.yaml").write_text(f"agents: [{{name: naive, builtin: naive}}]\ntasks: [{TASK}]\n")
    refused = exits(2, "up", "--ray", cluster.address, "plan.yaml", cwd=tmp_path, **here)
    assert "the cluster's token is not known here: set RAY_AUTH_MODE=token" in refused.stderr.splitlines()[-1]


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
    refused = exits(2, "up", "--ray", cluster.address, "plan.yaml", cwd=tmp_path)
    assert "3.99.1" in refused.stderr
    assert "need the same Ray and the same minor version of Python" in refused.stderr
