"""One model behind several servers, in processes of their own, one of which is killed, hangs, fails or joins."""

import json
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.proctor import Server, begin, completed, ended, exits, proctor, rows, scored, server
from tests.e2e.replicas.replica_server import TURNS, Process, processes
from tests.pace import slowly, until

TASKS = "tasks: [{name: db-own, environment: db, capacity: 160, parameters: {engine: sqlite}}]\n"
PLAN = """\
name: several
controller: {worker}
epochs: {epochs}
endpoints: [{{name: e, {where}, api_key_env: REPLICA_KEY, concurrency: {concurrency}}}]
agents: [{{name: model, endpoint: e, model: m}}]
tasks: [{{name: db-own}}]
"""
SAMPLES = 20
QUICK = 0.05


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("worker")
    (folder / "tasks.yaml").write_text(TASKS)
    with server("worker", "--tasks", "tasks.yaml", cwd=folder) as running:
        yield running


def write_plan(folder: Path, worker: Server, where: str | list[Process], epochs: int = 4, concurrency: int = 4) -> None:
    if not isinstance(where, str):
        where = "base_url: " + json.dumps([one.url for one in where])
    (folder / "plan.yaml").write_text(
        PLAN.format(worker=worker.url, where=where, epochs=epochs, concurrency=concurrency)
    )


def played(folder: Path) -> dict[object, list[tuple[str | None, int]]]:
    """trial -> for each turn the replica that answered, and its cached tokens"""
    exits(0, "export", "r", "--what", "turns", "--to", "turns.jsonl", cwd=folder)
    trials: dict[object, list[tuple[str | None, int]]] = {}
    for line in (folder / "turns.jsonl").read_text().splitlines():
        turn = json.loads(line)
        trials.setdefault((turn["sample"], turn["epoch"]), []).append((turn["replica"], turn["cached_tokens"]))
    return trials


def run(folder: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    return exits(0, "run", "plan.yaml", "--name", "r", cwd=folder, **extra)


def test_trials_stay_at_their_replica_so_its_cache_serves_them(tmp_path: Path, worker: Server) -> None:
    with processes(QUICK) as one:
        (tmp_path / "one").mkdir()
        write_plan(tmp_path / "one", worker, f'base_url: "{one[0].url}"')
        run(tmp_path / "one")
        alone = sum(cached for turns in played(tmp_path / "one").values() for _, cached in turns)
    with processes(*[QUICK] * 4) as several:
        write_plan(tmp_path, worker, several)
        run(tmp_path)
        seen = [each.seen() for each in several]
    report = proctor("report", "r", cwd=tmp_path).stdout
    assert all(re.search(rf"{re.escape(each.url)} .* 80 .*%", report) for each in several), report
    trials = played(tmp_path)
    assert len(trials) == 4 * SAMPLES
    assert all(len({replica for replica, _ in turns}) == 1 for turns in trials.values())
    assert all(each["most"] == 4 and each["answered"] >= SAMPLES * TURNS / 2 for each in seen)
    assert sum(cached for turns in trials.values() for _, cached in turns) >= 0.9 * alone


def test_eight_servers_have_128_trials_in_flight(tmp_path: Path, worker: Server) -> None:
    with processes(*[1.0] * 8) as several:
        write_plan(tmp_path, worker, several, epochs=10, concurrency=16)
        run(tmp_path)
        seen = [each.seen() for each in several]
    assert [each["most"] for each in seen] == [16] * 8
    assert sum(each["answered"] for each in seen) == 10 * SAMPLES * TURNS


@pytest.mark.parametrize("how", ["killed", "broken"])
def test_trials_of_a_server_that_is_down_go_on_at_others_with_what_they_have(
    tmp_path: Path, worker: Server, how: str
) -> None:
    with processes(QUICK, QUICK, QUICK, "broken" if how == "broken" else QUICK) as several, ended():
        write_plan(tmp_path, worker, several, epochs=20)
        client = begin("run", "plan.yaml", "--name", "r", cwd=tmp_path)
        until(lambda: scored(tmp_path, "r") > 20, 90)
        if how == "killed":
            several[3].kill()
        said = completed(client, within_s=120)
        assert f"replica {several[3].url} of endpoint e is down" in said
        answered = sum(each.seen()["answered"] for each in several[:3])
    trials = played(tmp_path)
    assert len(trials) == 20 * SAMPLES
    assert all(len(turns) == TURNS for turns in trials.values())  # none was paid for twice
    moved = [turns for turns in trials.values() if len({replica for replica, _ in turns}) > 1]
    assert len(moved) <= 4
    assert answered <= 20 * SAMPLES * TURNS
    assert all(row["score"] is not None for row in rows("r", tmp_path))


def test_servers_come_and_go_by_the_file(tmp_path: Path, worker: Server) -> None:
    listed = tmp_path / "servers"
    with processes(QUICK, QUICK) as several, ended():
        write_plan(tmp_path, worker, "replicas_file: servers, patience_s: 600", epochs=20)
        client = begin("run", "plan.yaml", "--name", "r", cwd=tmp_path)
        time.sleep(1)
        listed.write_text(f"# of the job\n{several[0].url}\nnonsense\n{several[1].url}\n")
        until(lambda: scored(tmp_path, "r") > 20, 90)
        several += [Process(), Process(model="other")]
        listed.write_text("".join(f"{each.url}\n" for each in several[1:]))
        said = completed(client, within_s=120)
        assert "line 3" in said
        assert f"replica {several[0].url} of endpoint e was removed" in said
        assert f"replica {several[3].url} is left out: it serves other, not m" in said
        seen = [each.seen() for each in several]
    trials = played(tmp_path)
    last = Counter(turns[-1][0] for turns in trials.values())
    assert set(last) == {each.url for each in several[:3]}
    assert all(len(turns) == TURNS for turns in trials.values())
    assert "requests" not in seen[3]


@pytest.mark.parametrize("fault", ["writable", "missing"])
def test_a_file_that_is_not_ours_alone_gets_no_key(tmp_path: Path, worker: Server, fault: str) -> None:
    with processes(QUICK) as several:
        write_plan(tmp_path, worker, f"replicas_file: servers, patience_s: {slowly(2)}")
        if fault == "writable":
            (tmp_path / "servers").write_text(several[0].url)
            (tmp_path / "servers").chmod(0o666)
        done = exits(2, "run", "plan.yaml", "--name", "r", cwd=tmp_path, REPLICA_KEY="k")
        assert ("others can write" if fault == "writable" else "No such file") in done.stderr
        assert several[0].seen() == {"most": 0}


def test_servers_of_other_models_are_refused_and_a_resume_takes_other_servers_of_the_same_one(
    tmp_path: Path, worker: Server
) -> None:
    with processes(QUICK, QUICK) as several, ended():
        several.append(Process(model="other"))
        write_plan(tmp_path, worker, several)
        done = exits(2, "run", "plan.yaml", "--name", "r", cwd=tmp_path)
        assert f"{several[2].url} serves other, not m" in done.stderr
        write_plan(tmp_path, worker, several[:2])
        assert proctor("run", "plan.yaml", "--name", "r", cwd=tmp_path).returncode == 0
        several += [Process(model="m:8192"), Process()]
        write_plan(tmp_path, worker, several[1:2] + several[4:])
        exits(0, "resume", "r", cwd=tmp_path)
        (tmp_path / "other").mkdir()
        write_plan(tmp_path / "other", worker, [several[0], several[3]], epochs=1)
        done = exits(0, "run", "plan.yaml", "--name", "r", cwd=tmp_path / "other")
        assert f"{several[3].url} and {several[0].url} differ: max_model_len: 4096, 8192" in done.stderr
        write_plan(tmp_path / "other", worker, [several[3]], epochs=1)
        done = proctor("resume", "r", cwd=tmp_path / "other")
        assert (done.returncode, "max_model_len: 4096, 8192" in done.stderr) == (2, True)
        report = proctor("report", "r", cwd=tmp_path / "other").stdout
        assert "differ: max_model_len: 4096, 8192" in " ".join(report.split())


def test_servers_of_a_host_are_compared_as_those_of_an_agent_are(tmp_path: Path) -> None:
    with processes(QUICK, QUICK) as several, ended():
        several += [Process(model="m:8192"), Process(model="other")]

        def started(*servers: Process) -> str:
            host = f"{{base_url: {json.dumps([each.url for each in servers])}, model: m}}"
            (tmp_path / "plan.yaml").write_text(
                "agents: [{name: naive, builtin: naive}]\n"
                f"tasks: [{{name: riddles, environment: ltp, parameters: {{host: {host}}}, samples: {{limit: 1}}}}]\n"
            )
            return proctor("run", "plan.yaml", "--name", "r", cwd=tmp_path).stderr

        assert f"task riddles: host m: {several[3].url} serves other, not m" in started(several[0], several[3])
        differ = f"{several[2].url} and {several[0].url} differ: max_model_len: 4096, 8192"
        assert differ in started(several[0], several[2])
