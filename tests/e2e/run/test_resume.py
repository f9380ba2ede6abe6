"""Pull the plug, resume: the same scores, and no answer paid for twice."""

import json
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval_client.store.connection import connect, sqlite_url
from eval_client.store.store import Store
from tests.e2e.gates import Gate, gate
from tests.e2e.proctor import Server, begin, exits, proctor, rows, server
from tests.pace import until

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


def until_called(way: Gate, target: int, client: "subprocess.Popen[str]") -> None:
    """Come back at so many calls, before the client has ended."""
    until(lambda: client.poll() is not None or way.calls >= target)
    assert client.poll() is None, client.communicate()


@pytest.mark.parametrize(
    "where", [pytest.param((), id="worker", marks=pytest.mark.smoke), pytest.param(("--in-process",), id="in process")]
)
def test_a_run_killed_again_and_again_equals_an_uninterrupted_one(
    tmp_path: Path, agents: Server, where: tuple[str, ...]
) -> None:
    key = {"OPENAI_API_KEY": "token-of-the-tests"}
    exits(0, "run", "plan.yaml", "--name", "whole", "-q", cwd=tmp_path, **key)
    uninterrupted = calls(agents)
    assert uninterrupted == 68

    chance, kills = random.Random(1), 6
    with gate(tmp_path / "plan.yaml", agents.url) as way:
        command: tuple[str, ...] = ("run", "plan.yaml", "--name", "killed", *where)
        for _ in range(kills):
            more = chance.randrange(IN_FLIGHT + 1, 11)
            target = way.calls + more
            way.shut(spared=more)  # however late the kill comes, the run is not over before
            client = begin(*command, cwd=tmp_path, **key)
            until_called(way, target, client)
            client.send_signal(signal.SIGKILL)
            client.communicate()
            command = ("resume", "killed", *where)
        way.open()
        ended = proctor(*command, cwd=tmp_path, **key)
    assert ended.returncode == 0, ended.stderr
    assert rows("killed", tmp_path) == rows("whole", tmp_path)
    pairs = json.loads(exits(0, "report", "killed", "--json", cwd=tmp_path).stdout)["pairs"]
    again = sum(pair.get("interrupted", 0) for pair in pairs)
    assert calls(agents) - uninterrupted <= uninterrupted + again <= uninterrupted + kills * IN_FLIGHT
    assert " ended with the client: a call " in ended.stdout
    store = Store(connect(sqlite_url(tmp_path / "runs" / "killed")), "killed")
    assert len(store.manifest().resumed_at) == kills
