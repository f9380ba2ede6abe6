"""Services that go away in mid-run are waited for, without an attempt; where one stays away, resume goes on."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from environments.knowledge_graph.environment import SAMPLES
from tests.e2e.docker_engine import own_engine
from tests.e2e.gates import Gate, gate
from tests.e2e.proctor import Server, begin, completed, exits, proctor, rows, server
from tests.e2e.scripted import ANSWER, GOOD, ScriptedEndpoint, reply
from tests.pace import slowly, until
from tests.virtuoso_server import virtuoso

PLAN = """\
name: gone
controller: {worker}
agents:
  - {{name: reference, builtin: reference, endpoint: "{agents}", concurrency: 3}}
  - {{name: naive, builtin: naive, endpoint: "{agents}", concurrency: 3}}
tasks:
  - {task}
limits: {{attempts: 1, patience_s: {patience_s}}}
"""
AGENTS = """\
token_env: PROCTOR_TOKEN
tasks: [{task}]
agents:
  - {{name: reference, kind: reference, latency_s: 0.2}}
  - {{name: naive, kind: naive, latency_s: 0.2}}
"""
AWAY_S = 8
KEY = {"OPENAI_API_KEY": "token-of-the-tests"}


@contextlib.contextmanager
def held_up(folder: Path, task: str, patience_s: float) -> Iterator[tuple[Server, Gate, "subprocess.Popen[str]"]]:
    """A whole run; then one that waits at a gate after its first turns, with the worker and the client of it."""
    (folder / "tasks.yaml").write_text(f"tasks: [{task}]\n")
    (folder / "agents.yaml").write_text(AGENTS.format(task=task))
    with (
        server("agents", "--config", "agents.yaml", cwd=folder) as agents,
        server("worker", "--tasks", "tasks.yaml", cwd=folder) as worker,
        contextlib.ExitStack() as stack,
    ):
        (folder / "plan.yaml").write_text(
            PLAN.format(worker=worker.url, agents=agents.url, task=task, patience_s=patience_s)
        )
        exits(0, "run", "plan.yaml", "--name", "whole", cwd=folder, **KEY)

        way = stack.enter_context(gate(folder / "plan.yaml", agents.url))
        way.shut(spared=12)
        client = begin("run", "plan.yaml", "--name", "broken", cwd=folder, **KEY)
        until(lambda: client.poll() is not None or way.calls > 12)
        assert client.poll() is None, client.communicate()
        yield worker, way, client


def goes_on(folder: Path, task: str, disturb: Callable[[Server, Gate], None]) -> None:
    """A run, of one attempt for each trial, in which a service is away for a while scores as one in which it is not."""
    with held_up(folder, task, slowly(120)) as (worker, way, client):
        disturb(worker, way)
        completed(client)
        assert scores(rows("broken", folder)) == scores(rows("whole", folder))


def scores(of: list[dict[str, object]]) -> list[tuple[object, ...]]:
    return [tuple(row[name] for name in ("agent", "sample", "epoch", "reason", "score", "turns")) for row in of]


def mariadbds_of(ancestor: int) -> list[int]:
    """The pids of the database servers that a process has started."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if entry.name.isdigit() and (entry / "comm").read_text() == "mariadbd\n" and ancestor in parents(entry):
                found.append(int(entry.name))
    return found


def parents(entry: Path) -> list[int]:
    found = []
    while (parent := int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])) > 1:
        found.append(parent)
        entry = Path("/proc") / str(parent)
    return found


@pytest.mark.mariadb
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_database_server_costs_no_attempt(tmp_path: Path, how: signal.Signals) -> None:
    def kill(worker: Server, way: Gate) -> None:
        """Those of the sessions that wait at the gate; then those that the worker starts instead."""
        for _ in range(3):
            for pid in mariadbds_of(worker.process.pid):
                with contextlib.suppress(ProcessLookupError):  # it has ended since it was listed
                    os.kill(pid, how)
            way.open()
            time.sleep(1)

    goes_on(tmp_path, "{name: db-own, environment: db, capacity: 6}", kill)


@pytest.mark.mariadb
@pytest.mark.parametrize("for_ever", [False, True])
def test_a_database_server_that_stands_still_costs_no_attempt(tmp_path: Path, *, for_ever: bool) -> None:
    def stop(worker: Server, way: Gate) -> None:
        stopped = mariadbds_of(worker.process.pid)
        assert stopped
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        way.open()
        time.sleep(AWAY_S)
        for pid in stopped if not for_ever else ():
            with contextlib.suppress(ProcessLookupError):  # the worker has given it up
                os.kill(pid, signal.SIGCONT)

    goes_on(tmp_path, "{name: db-own, environment: db, capacity: 6, parameters: {statement_limit_s: 2}}", stop)


@pytest.mark.virtuoso
@pytest.mark.parametrize("way", ["killed", "standing still"])
def test_a_sparql_endpoint_that_is_away_for_a_while_costs_no_attempt(tmp_path: Path, way: str) -> None:
    with virtuoso() as graph:
        graph.load(SAMPLES / "graph.nq")

        def disturb(_: Server, gate: Gate) -> None:
            if way == "killed":
                graph.kill()
            else:
                graph.signal(signal.SIGSTOP)
            gate.open()
            time.sleep(AWAY_S)
            if way == "killed":
                graph.start()
            else:
                graph.signal(signal.SIGCONT)

        where = f'endpoint: "{graph.url}", world: isles, named_graph: "urn:proctor:isles", query_limit_s: 2'
        data = f"parameters: {{data: {SAMPLES / 'questions.json'}, {where}}}"
        goes_on(tmp_path, f"{{name: kg-own, environment: kg, capacity: 6, {data}}}", disturb)


@pytest.mark.parametrize("status", [503, 401])
def test_a_judge_that_is_away_for_a_while_costs_no_attempt(
    tmp_path: Path, endpoint: ScriptedEndpoint, status: int
) -> None:
    said = reply(200, GOOD.replace(json.dumps(f"Thinking.\n{ANSWER}").encode(), b'"No"'))
    endpoint.always = said

    def disturb(_: Server, gate: Gate) -> None:
        endpoint.always = reply(status, b'{"error": {"message": "not now"}}')
        gate.open()
        time.sleep(AWAY_S)
        endpoint.always = said

    host = f'host: {{base_url: "{endpoint.url}", model: judge, max_tries: 2}}'
    goes_on(tmp_path, f"{{name: ltp-own, environment: ltp, samples: {{limit: 8}}, parameters: {{{host}}}}}", disturb)


DOCKER = "{name: os-own, environment: os, capacity: 6, samples: {limit: 10}, parameters: {pool: 2, command_limit_s: 4}}"


@pytest.mark.docker
@pytest.mark.parametrize("way", ["killed", "ended", "standing still"])
def test_a_docker_daemon_that_is_away_for_a_while_costs_no_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    with own_engine() as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.host)

        def disturb(_: Server, gate: Gate) -> None:
            begin, end = {
                "killed": (engine.kill, engine.start),
                "ended": (engine.stop, engine.start),
                "standing still": (lambda: engine.signal(signal.SIGSTOP), lambda: engine.signal(signal.SIGCONT)),
            }[way]
            begin()
            gate.open()
            time.sleep(AWAY_S)
            end()

        goes_on(tmp_path, DOCKER, disturb)


@pytest.mark.docker
def test_a_docker_daemon_that_stays_away_costs_no_score_and_resume_completes_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with own_engine() as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.host)
        with held_up(tmp_path, DOCKER, slowly(4)) as (_, way, client):
            engine.stop()
            way.open()
            errors = completed(client, 1)
            assert "resume with" in errors
            whole = {row["id"]: row for row in rows("whole", tmp_path)}
            unscored = [row for row in rows("broken", tmp_path) if row["score"] is None]
            assert unscored
            assert {row["reason"] for row in unscored} == {"task_error"}
            assert all(row["cause"] for row in unscored)
            assert all(row["score"] in (None, whole[row["id"]]["score"]) for row in rows("broken", tmp_path))
            engine.start()
            exits(0, "resume", "broken", cwd=tmp_path, **KEY)
            assert scores(rows("broken", tmp_path)) == scores(list(whole.values()))
            assert json.loads(proctor("status", "broken", "--json", cwd=tmp_path).stdout)["state"] == "finished"
        assert engine.containers() == 0
