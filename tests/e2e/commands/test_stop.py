"""`proctor stop` reaches the clients of a run through its store."""

import contextlib
import json
import subprocess
from pathlib import Path

import pytest

from tests.database_servers import mariadb, postgresql
from tests.e2e.gates import gate
from tests.e2e.proctor import Server, begin, exits, proctor, rows, server
from tests.pace import slowly, until

TASK = "{name: db-own, environment: db, parameters: {engine: sqlite}}"
AGENTS = f"tasks: [{TASK}]\nagents: [{{name: reference, kind: reference, latency_s: 0.8}}]\n"
CALLS = "proctor_agent_requests_total"
KEY = {"OPENAI_API_KEY": "token-of-the-tests"}


def write_plan(folder: Path, agents: Server) -> None:
    agent = f'{{name: reference, builtin: reference, endpoint: "{agents.url}", concurrency: 2}}'
    (folder / "plan.yaml").write_text(f"name: stop\nagents: [{agent}]\ntasks: [{TASK}]\n")


def said_until_told(client: "subprocess.Popen[str]") -> str:
    """What a client says up to the line that tells that it was stopped."""
    assert client.stderr is not None
    said = ""
    while "`proctor stop`" not in said and (line := client.stderr.readline()):
        said += line
    return said


def stop_and_resume(tmp_path: Path, *options: str, **extra: str) -> str:
    """Stop a run that is under way, and resume it; what its client said."""
    (tmp_path / "agents.yaml").write_text(AGENTS)
    with server("agents", "--config", "agents.yaml", cwd=tmp_path) as agents, contextlib.ExitStack() as stack:
        write_plan(tmp_path, agents)
        way = stack.enter_context(gate(tmp_path / "plan.yaml", agents.url))
        way.shut(spared=3)
        client = begin("run", "plan.yaml", "--name", "r", cwd=tmp_path, **KEY, **extra)
        until(lambda: way.calls > 3)
        stopping = begin("stop", "r", *options, cwd=tmp_path, **extra)
        errors = said_until_told(client)
        way.open()
        output, said = stopping.communicate(timeout=slowly(60))
        assert (stopping.returncode, output) == (0, ""), said
        assert "resume with: proctor resume runs/r" in said
        errors += client.communicate(timeout=slowly(60))[1]
        assert client.returncode == 130, errors
        status = json.loads(proctor("status", "r", "--json", cwd=tmp_path, **extra).stdout)
        assert status["state"] == "interrupted"
        assert status["pairs"][0]["scored"] < status["pairs"][0]["planned"]
        exits(0, "resume", "r", "-q", cwd=tmp_path, **KEY, **extra)
        paid = agents.metric(CALLS)
        turns = sum(int(str(row["turns"])) for row in rows("r", tmp_path, **extra))
        assert turns <= paid <= turns + 2
    return errors


def test_a_run_is_drained_from_another_terminal_and_resumes(tmp_path: Path) -> None:
    errors = stop_and_resume(tmp_path)
    assert "`proctor stop` was called for this run" in errors
    assert "draining" in errors


def test_a_run_is_stopped_at_once(tmp_path: Path) -> None:
    stop_and_resume(tmp_path, "--now")


@pytest.mark.postgresql
def test_a_run_in_postgresql_stops(tmp_path: Path) -> None:
    with postgresql() as database:
        stop_and_resume(tmp_path, PROCTOR_STORE=database.url)


@pytest.mark.mariadb
def test_a_run_in_mariadb_stops(tmp_path: Path) -> None:
    with mariadb() as database:
        stop_and_resume(tmp_path, PROCTOR_STORE=database.url)


def test_a_run_that_nobody_plays_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(f"agents: [{{name: reference, builtin: reference}}]\ntasks: [{TASK}]\n")
    assert proctor("run", "plan.yaml", "--name", "r", "--limit", "1", "-q", cwd=tmp_path).returncode == 0
    stopped = proctor("stop", cwd=tmp_path)
    assert (stopped.returncode, stopped.stderr) == (0, "r is not being played\n")
    assert proctor("resume", "r", "-q", cwd=tmp_path).returncode == 0
    missing = exits(2, "stop", "other", cwd=tmp_path)
    assert "no run 'other'" in missing.stderr
