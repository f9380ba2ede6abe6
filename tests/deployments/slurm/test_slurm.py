"""Runs as jobs of a real SLURM cluster of two nodes, while parts of it die and the wall time ends them."""

import contextlib
import json
import math
import os
import re
import socket
import stat
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from proctor.sandbox.docker_containers import OWNER_LABEL
from tests.deployments.slurm.cluster import Cluster, logs, slurm_cluster
from tests.e2e.gates import Gate, gate
from tests.e2e.proctor import Server, begin, ended, exits, rows, scored, server
from tests.e2e.replicas.replica_server import TURNS
from tests.e2e.shared_folder import shared_folder
from tests.pace import slowly, until
from tests.support import ROOT

pytestmark = pytest.mark.slurm
KEY = {"OPENAI_API_KEY": "token-of-the-tests"}
TASKS = "tasks: [{name: db-own, environment: db, parameters: {engine: sqlite}}]\n"
PLAN = """\
name: on-slurm
endpoints: [{{name: e, base_url: "{agents}", concurrency: 4}}]
agents:
  - {{name: reference, builtin: reference, endpoint: e}}
  - {{name: naive, builtin: naive, endpoint: e}}
"""
WALL = str(math.ceil(slowly(0.4)))
"""The shortest wall time, in minutes, in which a job's servers start; SLURM gives notice up to 30 s early."""
CALLS = "proctor_agent_requests_total"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with slurm_cluster() as running:
        yield running


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("agents")
    (folder / "tasks.yaml").write_text(TASKS)
    with server("agents", "--tasks", "tasks.yaml", cwd=folder) as running:
        yield running


@pytest.fixture(scope="module")
def expected(agents: Server, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    """The trials of the run in one piece, without SLURM."""
    folder: Path = tmp_path_factory.mktemp("alone")
    write_plan(folder, agents)
    exits(0, "run", "plan.yaml", "--name", "r", "-q", cwd=folder, **KEY)
    return rows("r", folder)


def write_plan(folder: Path, agents: Server) -> Path:
    (folder / "plan.yaml").write_text(PLAN.format(agents=agents.url) + TASKS)
    return folder / "plan.yaml"


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder whose name neither bash nor SLURM may read as more than a name."""
    odd = tmp_path / "$'5 %j"
    odd.mkdir()
    return odd


@pytest.fixture
def way(tmp_path: Path, agents: Server) -> Iterator[Gate]:
    """The gate that the model calls of the plan in the test's folder pass."""
    with gate(write_plan(tmp_path, agents), agents.url) as found:
        yield found


def test_a_job_on_two_nodes_is_the_run_in_one_piece_and_leaves_nothing(
    cluster: Cluster, tmp_path: Path, way: Gate, expected: list[dict[str, object]]
) -> None:
    way.shut(spared=20)
    job = cluster.submit(tmp_path, "--time", "10", **KEY)
    until(lambda: scored(tmp_path, "r") > 0, 120, lambda: logs(tmp_path))
    folder = tmp_path / "runs" / "r" / "slurm"
    token = (folder / "token").read_text().strip()
    assert stat.S_IMODE((folder / "token").stat().st_mode) == 0o600
    running = cluster.processes()
    seen = [(*each.cmdline(), *each.environ().values()) for each in running]
    assert not any(token in word for words in seen for word in words)
    workers = {each.environ()["SLURMD_NODENAME"] for each in running if "worker" in each.cmdline()}
    assert workers == {"n1", "n2"}
    assert "/40 trials" in exits(0, "status", "runs/r", cwd=tmp_path).stdout
    with ended():
        viewer = begin("view", "runs/r", "--port", "0", cwd=tmp_path)
        assert viewer.stdout is not None
        with urllib.request.urlopen(f"{viewer.stdout.readline().strip()}/api/v1/runs/r", timeout=slowly(30)) as told:
            seen = json.load(told)
    assert seen["state"] == "running"
    assert 0 < sum(pair["scored"] for pair in seen["pairs"]) < 40
    way.open()
    cluster.ended(job, tmp_path)
    assert rows("r", tmp_path) == expected
    until(lambda: not cluster.processes(), 60)


def test_a_node_and_a_worker_that_die_change_the_capacity_and_nothing_else(
    cluster: Cluster, tmp_path: Path, way: Gate, expected: list[dict[str, object]]
) -> None:
    way.shut(spared=20)
    job = cluster.submit(tmp_path, "--time", "10", **KEY)
    until(lambda: scored(tmp_path, "r") > 0, 120, lambda: logs(tmp_path))
    cluster.lose("n2")
    (worker,) = [each for each in cluster.processes("n1") if "worker" in each.cmdline()]
    worker.kill()
    way.open()
    try:
        cluster.ended(job, tmp_path)
    finally:
        cluster.start_node("n2")
    assert rows("r", tmp_path) == expected


def test_a_run_that_outlasts_its_wall_time_goes_on_until_it_is_whole(
    cluster: Cluster, tmp_path: Path, way: Gate, agents: Server, expected: list[dict[str, object]]
) -> None:
    before = agents.metric(CALLS)
    way.shut(spared=20)
    job = cluster.submit(tmp_path, "--time", WALL, "--notice", "10", **KEY)
    until(lambda: requeued(cluster, job) == 1, 400, lambda: logs(tmp_path))
    way.shut(spared=10)
    until(lambda: requeued(cluster, job) == 2, 400, lambda: logs(tmp_path))
    way.open()
    cluster.ended(job, tmp_path)
    assert rows("r", tmp_path) == expected
    exits(0, "export", "r", "--what", "turns", "--to", "turns.jsonl", cwd=tmp_path)
    answered = sum(bool(json.loads(line)["action"]) for line in (tmp_path / "turns.jsonl").read_text().splitlines())
    paid = agents.metric(CALLS) - before
    pairs = json.loads(exits(0, "report", "r", "--json", cwd=tmp_path).stdout)["pairs"]
    again = sum(pair.get("interrupted", 0) for pair in pairs)
    assert answered <= paid <= answered + again <= answered + 3 * 4, "what a job's end cut off is asked for again"
    assert again > 0


def requeued(cluster: Cluster, job: str) -> int:
    """How often; a job that is to wait does not."""
    if cluster.fact(job, "Reason") == "BeginTime":
        cluster.does("scontrol", "update", f"JobId={job}", "StartTime=now")
    return int(cluster.fact(job, "Restarts"))


def test_an_array_of_parts_is_the_run_in_one_piece(
    cluster: Cluster, tmp_path: Path, way: Gate, expected: list[dict[str, object]]
) -> None:
    exits(0, "run", "plan.yaml", "--name", "r", "--part", "4/4", "-q", cwd=tmp_path, **KEY)
    way.shut(spared=10)
    job = cluster.submit(tmp_path, "--time", "10", "--array", "1-4", "--nodes", "1", **KEY)
    until(lambda: not cluster.does("squeue", "-h", "-j", f"{job}_4"), 240, lambda: logs(tmp_path))
    way.open()  # the last part, whose job has the whole array's id, has ended beside the others
    until(lambda: not cluster.does("squeue", "-h", "-j", job), 240, lambda: logs(tmp_path))
    together = rows("r", tmp_path)
    assert sorted(together, key=str) == sorted(expected, key=str), logs(tmp_path)
    assert exits(0, "report", "r", cwd=tmp_path).stdout.count(" 20/20 ") == 2


@pytest.mark.parametrize(("stopped_by", "state"), [("scancel", "CANCELLED"), ("proctor stop", "FAILED")])
def test_a_stopped_job_leaves_no_process_and_its_run_can_be_resumed(
    cluster: Cluster, tmp_path: Path, way: Gate, expected: list[dict[str, object]], *, stopped_by: str, state: str
) -> None:
    way.shut(spared=20)
    job = cluster.submit(tmp_path, "--time", "10", **KEY)
    until(lambda: scored(tmp_path, "r") > 0, 120, lambda: logs(tmp_path))
    if stopped_by == "scancel":
        cluster.does("scancel", job)
    else:
        exits(0, "stop", "runs/r", "--now", cwd=tmp_path)
    cluster.ended(job, tmp_path, state)
    until(lambda: not cluster.processes(), 60, cluster.processes)
    way.open()
    cluster.ended(cluster.submit(tmp_path, "--time", "10", **KEY), tmp_path)
    assert rows("r", tmp_path) == expected


def test_a_run_that_is_stopped_when_the_notice_comes_is_not_requeued(
    cluster: Cluster, tmp_path: Path, way: Gate
) -> None:
    way.shut(spared=20)
    job = cluster.submit(tmp_path, "--time", "10", **KEY)
    until(lambda: scored(tmp_path, "r") > 0, 120, lambda: logs(tmp_path))
    with ended():
        begin("stop", "runs/r", cwd=tmp_path)
        until(lambda: "`proctor stop` was called" in logs(tmp_path), 60)
        cluster.does("scancel", "--signal=USR1", "--batch", job)
        cluster.ended(job, tmp_path, state="FAILED")
    assert cluster.fact(job, "Restarts") == "0"


def test_where_requeueing_is_forbidden_a_job_that_follows_goes_on(
    cluster: Cluster, tmp_path: Path, way: Gate, expected: list[dict[str, object]]
) -> None:
    way.shut(spared=20)
    job = cluster.submit(tmp_path, "--time", WALL, "--notice", "10", "--", "--no-requeue", "--comment=a job", **KEY)
    assert (cluster.fact(job, "Requeue"), cluster.fact(job, "Comment")) == ("0", "a")
    cluster.ended(job, tmp_path, state="FAILED", within_s=400)
    way.open()
    cluster.ended(str(int(job) + 1), tmp_path)
    assert rows("r", tmp_path) == expected


@pytest.mark.bindfs
def test_a_shared_disk_is_trusted_whose_locks_hold_between_two_nodes(
    cluster: Cluster, tmp_path: Path, agents: Server, expected: list[dict[str, object]]
) -> None:
    with shared_folder(tmp_path) as folder:
        write_plan(folder, agents)
        with cluster.own_mount("n2", tmp_path / "server", folder):
            cluster.ended(cluster.submit(folder, "--time", "10", **KEY), folder, state="FAILED")
            assert "share (fuse.sshfs), and two machines were given the same lock (lockf); choose" in logs(folder)
            assert not (folder / "runs" / "r" / "run.sqlite").exists()
        cluster.ended(cluster.submit(folder, "--time", "10", **KEY), folder)
        assert rows("r", folder) == expected


SERVED = """\
name: on-slurm
epochs: 10
endpoints: [{name: e, replicas_file: servers, concurrency: 4}]
agents: [{name: model, endpoint: e, model: m}]
"""
OWN = f"{sys.executable} -m tests.e2e.replicas.replica_server {{port}} 0.05"


def replicas(folder: Path) -> list[str]:
    """The URLs that the job lists now."""
    file = folder / "runs" / "r" / "slurm" / "replicas"
    return re.findall(r"^http://\S+/v1(?=  # n)", file.read_text() if file.exists() else "", re.MULTILINE)


def test_one_agent_is_served_by_a_model_server_on_each_node_of_which_one_is_killed(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "plan.yaml").write_text(SERVED + TASKS)
    job = cluster.submit(tmp_path, "--time", "10", "--model-command", OWN, PYTHONPATH=str(ROOT))
    until(lambda: scored(tmp_path, "r") > 20, 120, lambda: logs(tmp_path))
    until(lambda: len(replicas(tmp_path)) == 2, 60, lambda: logs(tmp_path))
    before = replicas(tmp_path)
    (killed,) = [each for each in cluster.processes("n2") if "tests.e2e.replicas.replica_server" in each.cmdline()]
    assert (tmp_path / "runs" / "r" / "slurm" / "key").read_text().strip() not in killed.cmdline()
    killed.kill()
    until(lambda: len(set(before) | set(replicas(tmp_path))) == 3, 60, lambda: logs(tmp_path))
    cluster.ended(job, tmp_path)
    found = rows("r", tmp_path)
    assert (len(found), {row["reason"] for row in found}) == (200, {"completed"})
    exits(0, "export", "r", "--what", "turns", "--to", "turns.jsonl", cwd=tmp_path)
    turns = [json.loads(line) for line in (tmp_path / "turns.jsonl").read_text().splitlines()]
    assert len(turns) == 200 * TURNS, "no turn is paid for twice"
    assert set(before) <= {turn["replica"] for turn in turns}


REAL = """\
name: on-slurm
epochs: 2
endpoints: [{name: e, replicas_file: servers, concurrency: 4, deadline_s: 600}]
agents: [{name: smollm2, endpoint: e, model: smollm2, sampling: {temperature: 0, max_tokens: 40}}]
limits: {trial: {turns: 2}}
tasks: [{name: db-own, environment: db, parameters: {engine: sqlite}, samples: {limit: 6}}]
"""


@pytest.mark.skipif(
    "PROCTOR_REAL_MODEL" not in os.environ, reason="PROCTOR_REAL_MODEL is not set; run: make real-model"
)
def test_a_real_model_on_both_nodes_of_which_one_server_is_killed(cluster: Cluster, tmp_path: Path) -> None:
    program = f"{os.environ['PROCTOR_REAL_MODEL']} {ROOT}/tests/real_model/server.py {{port}} 2 4096 0.0.0.0"
    (tmp_path / "plan.yaml").write_text(REAL)
    job = cluster.submit(tmp_path, "--time", "20", "--model-command", program)
    until(lambda: scored(tmp_path, "r") > 1, 300, lambda: logs(tmp_path))
    until(lambda: len(replicas(tmp_path)) == 2, 120, lambda: logs(tmp_path))
    before = replicas(tmp_path)
    (killed,) = [each for each in cluster.processes("n2") if f"{ROOT}/tests/real_model/server.py" in each.cmdline()]
    killed.kill()
    cluster.ended(job, tmp_path)
    found = rows("r", tmp_path)
    assert len(found) == 12
    assert {row["reason"] for row in found} <= {"completed", "invalid_format", "turn_limit"}
    exits(0, "export", "r", "--what", "turns", "--to", "turns.jsonl", cwd=tmp_path)
    turns = [json.loads(line) for line in (tmp_path / "turns.jsonl").read_text().splitlines()]
    assert set(before) <= {turn["replica"] for turn in turns}


@pytest.mark.parametrize("fails", [False, True])
def test_one_model_over_both_nodes_has_one_url_and_one_that_never_loads_ends_the_job(
    cluster: Cluster, tmp_path: Path, fails: bool
) -> None:
    (tmp_path / "plan.yaml").write_text(SERVED.replace("epochs: 10", "epochs: 1") + TASKS)
    first = "exit 3; {port}" if fails else f"exec {OWN}"
    command = f"bash -c '[ {{rank}} = 0 ] || exec sleep 1000; echo {{nodes}} {{head}} {{gpu}} $SITE; {first}'"
    site = f"export SITE=lab PYTHONPATH={ROOT} SLURM_CONF={cluster.variables['SLURM_CONF']}\n"
    (tmp_path / "site.sh").write_text(site)
    options = ("--model-command", command, "--setup", "site.sh", "--", "--export=NONE")
    job = cluster.submit(tmp_path, "--time", "10", *options)
    cluster.ended(job, tmp_path, state="FAILED" if fails else "COMPLETED")
    said = logs(tmp_path)
    assert f"2 {socket.gethostname()} 0 lab" in said
    assert ("proctor slurm: no model server has loaded" in said) == fails
    assert len(replicas(tmp_path)) == (0 if fails else 1)


@pytest.mark.docker
def test_a_cancelled_job_leaves_no_container(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(SERVED + "tasks: [{name: os, environment: os}]\n")
    hangs = OWN.replace("0.05", "hangs")
    job = cluster.submit(tmp_path, "--time", "10", "--model-command", hangs, "--limit", "2", PYTHONPATH=str(ROOT))
    with contextlib.closing(docker.from_env()) as engine:

        def owned() -> int:
            """The containers of what runs in the job, or ran there."""
            pids.update(each.pid for each in cluster.processes())
            labels = [each.labels.get(OWNER_LABEL, "") for each in engine.containers.list(all=True)]
            return sum(int(label.split()[1]) in pids for label in labels if label)

        pids = set[int]()
        until(lambda: owned() > 0, 240, lambda: logs(tmp_path))
        cluster.does("scancel", job)
        cluster.ended(job, tmp_path, state="CANCELLED")
        until(lambda: owned() == 0, 60, lambda: logs(tmp_path))
        assert not cluster.processes()
