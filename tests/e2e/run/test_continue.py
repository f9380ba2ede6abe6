"""`proctor run --continue`: what an orchestrator starts, and starts again, begins the run or goes on with it."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.database_servers import DatabaseServer, postgresql
from tests.e2e.proctor import Server, begin, proctor, server, told_scored
from tests.faults.parts.farm import put_away
from tests.pace import slowly, until

PLAN = """\
name: continued
controller: {worker}
agents:
  - {{name: reference, builtin: reference, endpoint: "{agents}", concurrency: 4}}
tasks: [{{name: db-own}}]
epochs: 2
"""
AGENTS = """\
token_env: PROCTOR_TOKEN
tasks: [{name: db-own, environment: db, parameters: {engine: sqlite}}]
agents: [{name: reference, kind: reference, latency_s: 0.2}]
"""
COMMAND = ("run", "plan.yaml", "--name", "r", "--continue", "--quiet")


@pytest.fixture(scope="module")
def store() -> Iterator[DatabaseServer]:
    with postgresql() as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, worker: Server) -> Iterator[Path]:
    """With a plan, for which the servers run."""
    (tmp_path / "agents.yaml").write_text(AGENTS)
    with server("agents", "--config", "agents.yaml", cwd=tmp_path) as agents:
        (tmp_path / "plan.yaml").write_text(PLAN.format(worker=worker.url, agents=agents.url))
        yield tmp_path


def clients(folder: Path, url: str) -> "list[subprocess.Popen[str]]":
    variables = {"OPENAI_API_KEY": "token-of-the-tests", "PROCTOR_STORE": url}
    return [begin(*COMMAND, cwd=folder, **variables) for _ in range(2)]


@pytest.mark.postgresql
def test_clients_started_at_once_again_and_too_late_play_one_run(folder: Path, store: DatabaseServer) -> None:
    killed = clients(folder, store.url)
    try:
        until(
            lambda: told_scored(folder, PROCTOR_STORE=store.url) > 0,
            120,
            lambda: [client.communicate() for client in killed if client.poll() is not None],
        )
    finally:
        for client in killed:
            put_away(client)
    again = clients(folder, store.url)
    ended = [(client.communicate(timeout=slowly(120)), client.returncode) for client in again]
    assert [code for _, code in ended] == [0, 0], ended
    late = proctor(*COMMAND, cwd=folder, PROCTOR_STORE=store.url, OPENAI_API_KEY="token-of-the-tests")
    assert (late.returncode, late.stdout) == (0, ended[0][0][0])
    assert len(proctor("ls", cwd=folder, PROCTOR_STORE=store.url).stdout.strip().splitlines()) <= 4


def test_it_needs_a_name_and_the_same_plan(folder: Path) -> None:
    nameless = proctor("run", "plan.yaml", "--continue", cwd=folder)
    assert (nameless.returncode, "--name" in nameless.stderr) == (2, True)
    assert proctor(*COMMAND, "--limit", "1", cwd=folder, OPENAI_API_KEY="token-of-the-tests").returncode == 0
    (folder / "plan.yaml").write_text((folder / "plan.yaml").read_text().replace("epochs: 2", "epochs: 1"))
    changed = proctor(*COMMAND, "--limit", "1", cwd=folder, OPENAI_API_KEY="token-of-the-tests")
    assert (changed.returncode, "the plan changed" in changed.stderr) == (2, True)
