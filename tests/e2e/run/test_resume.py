"""Pull the plug, resume: the same scores, and no answer paid for twice."""

import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval_client.store.connection import connect, sqlite_url
from eval_client.store.store import Store
from tests.e2e.proctor import Server, begin, proctor, rows, server
from tests.pace import slowly, until

PLAN = """\
name: plug
agents:
  - {{name: reference, builtin: reference, endpoint: "{agents}", concurrency: 2}}
  - {{name: naive, builtin: naive, endpoint: "{agents}", concurrency: 2}}
tasks:
  - name: db-own
    environment: db
    parameters: {{engine: sqlite}}
"""
CALLS = "proctor_agent_requests_total"
IN_FLIGHT = 4


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Server]:
    """Built-in agents that take 300 ms to answer, as a process of their own."""
    (tmp_path / "tasks.yaml").write_text(PLAN.format(agents="http://127.0.0.1:9"))
    (tmp_path / "agents.yaml").write_text(
        "token_env: PROCTOR_TOKEN\n"
        "tasks: [{name: db-own, environment: db, parameters: {engine: sqlite}}]\n"
        "agents:\n"
        "  - {name: reference, kind: reference, latency_s: 0.3}\n"
        "  - {name: naive, kind: naive, latency_s: 0.3}\n"
    )
    with server("agents", "--config", "agents.yaml", cwd=tmp_path) as running:
        (tmp_path / "plan.yaml").write_text(PLAN.format(agents=running.url))
        yield running


def calls(agents: Server) -> int:
    return int(agents.metric(CALLS))


def until_called(agents: Server, target: int, client: "subprocess.Popen[str]") -> None:
    """Come back at so many calls, or once the client has ended."""
    until(lambda: client.poll() is not None or calls(agents) >= target)


def test_a_run_killed_again_and_again_equals_an_uninterrupted_one(tmp_path: Path, agents: Server) -> None:
    key = {"OPENAI_API_KEY": "token-of-the-tests"}
    whole = proctor("run", "plan.yaml", "--name", "whole", "-q", cwd=tmp_path, **key)
    assert whole.returncode == 0, whole.stderr
    uninterrupted = calls(agents)
    assert uninterrupted == 68

    chance, kills = random.Random(1), 0
    client = begin("run", "plan.yaml", "--name", "killed", cwd=tmp_path, **key)
    while client.poll() is None and kills < 6:
        target = calls(agents) + chance.randrange(IN_FLIGHT + 1, 11)  # those of the client before may still be counted
        until_called(agents, target, client)
        if client.poll() is None:
            client.send_signal(signal.SIGKILL)
            client.communicate()
            kills += 1
            client = begin("resume", "killed", cwd=tmp_path, **key)
    _, errors = client.communicate(timeout=slowly(120))
    assert client.returncode == 0, errors
    assert kills >= 5
    assert rows("killed", tmp_path) == rows("whole", tmp_path)
    assert calls(agents) - uninterrupted <= uninterrupted + kills * IN_FLIGHT
    store = Store(connect(sqlite_url(tmp_path / "runs" / "killed")), "killed")
    assert len(store.manifest().resumed_at) == kills
    assert proctor("report", "killed", "--html", "killed.html", cwd=tmp_path).returncode == 0
    page = (tmp_path / "killed.html").read_text(encoding="utf-8")
    assert "naive: the run was resumed after" in page
    for pair in store.pair_totals():
        assert f"{pair.agent}: mean score {pair.mean:.3f}" in page
