"""Parts that go away in mid-run: no score changes, the cause is recorded, and resume completes the run."""

import contextlib
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.docker_engine import own_engine
from tests.e2e.gates import Gate, gate
from tests.e2e.proctor import Server, begin, proctor, rows, server
from tests.pace import slowly, until

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
KEY = {"OPENAI_API_KEY": "token-of-the-tests"}


def run_through(folder: Path, task: str, break_it: Callable[[Server, Gate], None], mend_it: Callable[[], None]) -> None:
    """A whole run; then one in which a part goes away after the first turns and comes back before the resume.

    The run waits at a gate until `break_it` opens it.
    """
    (folder / "tasks.yaml").write_text(f"tasks: [{task}]\n")
    (folder / "agents.yaml").write_text(AGENTS.format(task=task))
    with (
        server("agents", "--config", "agents.yaml", cwd=folder) as agents,
        server("worker", "--tasks", "tasks.yaml", cwd=folder) as worker,
        contextlib.ExitStack() as stack,
    ):
        (folder / "plan.yaml").write_text(
            PLAN.format(worker=worker.url, agents=agents.url, task=task, patience_s=slowly(20))
        )
        whole = proctor("run", "plan.yaml", "--name", "whole", cwd=folder, **KEY)
        assert whole.returncode == 0, whole.stdout + whole.stderr

        way = stack.enter_context(gate(folder / "plan.yaml", agents.url))
        way.shut(spared=12)
        client = begin("run", "plan.yaml", "--name", "broken", cwd=folder, **KEY)
        until(lambda: client.poll() is not None or way.calls > 12)
        assert client.poll() is None, client.communicate()
        break_it(worker, way)
        output, errors = client.communicate(timeout=slowly(200))
        assert client.returncode == 1, output + errors
        assert "resume with" in errors
        before = {row["id"]: row for row in rows("broken", folder)}
        unscored = [row for row in before.values() if row["score"] is None]
        assert unscored
        assert {row["reason"] for row in unscored} == {"task_error"}
        assert all(row["cause"] for row in unscored)
        expected = {row["id"]: row for row in rows("whole", folder)}
        assert all(
            row["score"] == expected[number]["score"] for number, row in before.items() if row["score"] is not None
        )

        mend_it()
        resumed = proctor("resume", "broken", cwd=folder, **KEY)
        assert resumed.returncode == 0, resumed.stdout + resumed.stderr
        assert scores(rows("broken", folder)) == scores(list(expected.values()))
        assert json.loads(proctor("status", "broken", "--json", cwd=folder).stdout)["state"] == "finished"


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
def test_a_killed_database_server_costs_no_score_and_the_run_is_completed(tmp_path: Path) -> None:
    def kill(worker: Server, way: Gate) -> None:
        """Again and again, as the worker starts another, until a session has met the loss: some need no server."""

        def lost() -> bool:
            for pid in mariadbds_of(worker.process.pid):
                with contextlib.suppress(ProcessLookupError):  # it has ended since it was listed
                    os.kill(pid, signal.SIGKILL)
            return worker.metric('proctor_finishes_total{.*reason="task_error"') > 0

        lost()  # those of the sessions that wait at the gate
        way.open()
        until(lost, seen=lambda: "no session needed the server")

    run_through(tmp_path, "{name: db-own, environment: db, capacity: 6}", kill, lambda: None)


@pytest.mark.docker
def test_a_stopped_docker_daemon_costs_no_score_and_the_run_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with own_engine() as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.host)
        task = "{name: os-own, environment: os, capacity: 6, samples: {limit: 10}, parameters: {pool: 2}}"

        def stop(_: Server, way: Gate) -> None:
            engine.stop()
            way.open()

        run_through(tmp_path, task, stop, engine.start)
        assert engine.containers() == 0
