"""Several clients on one run, as users start them: the same table as one client's, no trial run twice."""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.database_servers import postgresql
from tests.e2e.gates import gate
from tests.e2e.proctor import Server, begin, proctor, server
from tests.faults.parts.farm import put_away
from tests.pace import slowly, until
from tests.support import ROOT

pytestmark = pytest.mark.postgresql
TASK = "{name: db-own, environment: db, parameters: {engine: sqlite}}"
KEY = {"OPENAI_API_KEY": "token-of-the-tests"}
PLAN = """\
name: team
controller: {controller}
endpoints: [{{name: e, base_url: "{agents}", concurrency: 6}}]
agents:
  - {{name: reference, builtin: reference, endpoint: e, concurrency: 4}}
  - {{name: naive, builtin: naive, endpoint: e, concurrency: 4}}
tasks: [{task}]
"""
IN_FLIGHT = 6
CALLS = "proctor_agent_requests_total"


@pytest.fixture(scope="module")
def store() -> Iterator[dict[str, str]]:
    """What names the store: the variables of a process."""
    with postgresql() as database:
        yield {**KEY, "PROCTOR_STORE": database.url}


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("agents")
    (folder / "agents.yaml").write_text(
        f"tasks: [{TASK}]\nagents:\n"
        "  - {name: reference, kind: reference, latency_s: 0.2}\n"
        "  - {name: naive, kind: naive, latency_s: 0.2}\n"
    )
    with server("agents", "--config", "agents.yaml", cwd=folder) as running:
        yield running


@pytest.fixture
def plan(tmp_path: Path, agents: Server) -> Path:
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN.format(controller="local", agents=agents.url, task=TASK))
    return path


def exported(run: str, what: str, folder: Path, store: dict[str, str]) -> list[dict[str, object]]:
    """A run's trials or turns, without what differs between equal runs."""
    done = proctor("export", run, "--what", what, "--to", f"{run}-{what}.jsonl", cwd=folder, **store)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (folder / f"{run}-{what}.jsonl").read_text().splitlines()]
    varying = {"run", "seconds", "model_seconds", "world_seconds", "tries", "ended_at"}
    return [{key: value for key, value in line.items() if key not in varying} for line in lines]


def test_four_clients_come_to_the_same_rows_and_transcripts_as_one(
    tmp_path: Path, plan: Path, agents: Server, store: dict[str, str]
) -> None:
    calls = []
    for shards in ("1", "4"):
        before = agents.metric(CALLS)
        done = proctor("run", "plan.yaml", "--name", f"by-{shards}", "-q", "--shards", shards, cwd=tmp_path, **store)
        assert done.returncode == 0, done.stderr
        calls.append(agents.metric(CALLS) - before)
    for what in ("trials", "turns"):
        assert exported("by-4", what, tmp_path, store) == exported("by-1", what, tmp_path, store)
    assert calls[0] == calls[1] == len(exported("by-1", "turns", tmp_path, store))
    late = proctor("join", "by-4", cwd=tmp_path, **store)
    assert (late.returncode, late.stdout) == (0, done.stdout), late.stderr
    logs = [(tmp_path / "runs" / "by-4" / "logs" / f"shard-{number}.log").read_text() for number in (2, 3, 4)]
    assert all(log.startswith(done.stdout) for log in logs), logs


CRASH = """\
import sys

if "join" in sys.argv:
    from eval_client.store.journal import Journal

    write = Journal.turn

    async def turn(self, trial, journal, turn):
        await write(self, trial, journal, turn)
        raise RuntimeError("a bug of ours")

    Journal.turn = turn
"""


def test_a_client_of_shards_that_crashes_is_named_and_the_others_play_its_trials(
    tmp_path: Path, plan: Path, agents: Server, store: dict[str, str]
) -> None:
    (tmp_path / "sitecustomize.py").write_text(CRASH)
    command = ("run", "plan.yaml", "--name", "crashed", "-q", "--set", "epochs=3", "--shards", "2")
    with gate(plan, agents.url) as way:
        way.shut(spared=IN_FLIGHT)  # however slowly the second client joins, the run is not over before
        first = begin(*command, cwd=tmp_path, **store, PYTHONPATH=f"{tmp_path}:{ROOT}")
        until_two_clients(first, "crashed", tmp_path, store)
        way.open()
        _, errors = first.communicate(timeout=slowly(100))
    assert first.returncode == 0, errors
    assert "a client of --shards ended with exit code 70; the others played on without it" in errors
    assert "a bug of ours" in (tmp_path / "runs" / "crashed" / "logs" / "shard-2.log").read_text()
    trials = exported("crashed", "trials", tmp_path, store)
    assert max(int(str(row["attempts"])) for row in trials) == 2


def test_a_client_of_shards_that_stands_still_is_not_waited_for_for_ever(
    tmp_path: Path, plan: Path, agents: Server, store: dict[str, str]
) -> None:
    command = ("run", "plan.yaml", "--name", "still", "-q", "--shards=2")
    with gate(plan, agents.url) as way:
        way.shut(spared=IN_FLIGHT)  # however slowly the second client joins, the run is not over before
        first = begin(*command, cwd=tmp_path, **store)
        until_two_clients(first, "still", tmp_path, store)
        other = child(first.pid, "join")
        os.kill(other, signal.SIGSTOP)
        way.open()
        try:
            _, errors = first.communicate(timeout=slowly(100))
        finally:
            put_away(first)
            with contextlib.suppress(ProcessLookupError):
                os.kill(other, signal.SIGKILL)
    assert first.returncode == 0, errors
    assert "a client of --shards hung and was killed" in errors


def until_two_clients(first: "subprocess.Popen[str]", run: str, folder: Path, store: dict[str, str]) -> None:
    """Until a second client has joined the run of the first, which is not over."""

    def joined() -> bool:
        return "running (2 clients)," in proctor("status", run, cwd=folder, **store).stdout

    until(lambda: first.poll() is not None or joined())
    assert first.poll() is None, first.communicate()


def child(pid: int, word: str) -> int:
    """The one child of a process that was started with such a word."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    (found,) = [int(pid) for pid in children if word in Path(f"/proc/{pid}/cmdline").read_text().split("\0")]
    return found


def test_clients_that_join_are_counted_and_each_may_leave(
    tmp_path: Path, plan: Path, agents: Server, store: dict[str, str]
) -> None:
    (tmp_path / "tasks.yaml").write_text(f"tasks: [{TASK}]\n")

    def status() -> str:
        return proctor("status", "r", cwd=tmp_path, **store).stdout

    with server("worker", "--tasks=tasks.yaml", cwd=tmp_path) as worker:
        plan.write_text(PLAN.format(controller=worker.url, agents=agents.url, task=TASK))
        alone = proctor("join", "r", cwd=tmp_path, **store)
        assert (alone.returncode, "no run 'r'" in alone.stderr) == (2, True), alone.stderr
        first = begin("run", "plan.yaml", "--name", "r", "--set", "epochs=200", cwd=tmp_path, **store)
        until(lambda: "running," in status())
        second = begin("join", "r", cwd=tmp_path, **store)
        until(lambda: "running (2 clients)," in status())
        refused = proctor("resume", "r", cwd=tmp_path, **store)
        assert (refused.returncode, "proctor join r" in refused.stderr) == (2, True), refused.stderr
        first.send_signal(2)
        _, errors = first.communicate(timeout=slowly(60))
        assert first.returncode == 130, errors
        assert "running," in status()
        second.send_signal(2)
        _, errors = second.communicate(timeout=slowly(60))
        assert second.returncode == 130, errors
        assert "interrupted," in status()
        late = proctor("join", "r", cwd=tmp_path, **store)
        assert (late.returncode, "proctor resume" in late.stderr) == (2, True), late.stderr
    played = [row for row in exported("r", "trials", tmp_path, store) if row["attempts"]]
    assert {row["attempts"] for row in played} == {1}
    assert {row["reason"] for row in played} <= {"completed", "invalid_format", "invalid_action", "turn_limit"}


def test_several_clients_are_refused_where_they_can_not_be(tmp_path: Path, plan: Path, store: dict[str, str]) -> None:
    lone = proctor("run", "plan.yaml", "--shards", "2", cwd=tmp_path, **KEY)
    assert (lone.returncode, "--shards 2: only PostgreSQL supports several clients" in lone.stderr) == (2, True)
    first = begin("run", "plan.yaml", "--name", "own", "--set", "epochs=200", cwd=tmp_path, **KEY)
    until(lambda: "running," in proctor("status", "own", cwd=tmp_path, **KEY).stdout)
    joined = proctor("join", "own", cwd=tmp_path, **KEY)
    assert (joined.returncode, "only PostgreSQL" in joined.stderr) == (2, True), joined.stderr
    first.kill()
    first.communicate()


def test_a_run_with_servers_of_its_own_is_not_joined_from_elsewhere(
    tmp_path: Path, plan: Path, agents: Server, store: dict[str, str]
) -> None:
    first = begin("run", "plan.yaml", "--name", "own", "--set", "epochs=30", cwd=tmp_path, **store)
    until(lambda: "running," in proctor("status", "own", cwd=tmp_path, **store).stdout)
    joined = proctor("join", "own", cwd=tmp_path, **store)
    assert (joined.returncode, "controller: URL" in joined.stderr) == (2, True), joined.stderr
    first.kill()
    first.communicate()
    until(lambda: "stopped," in proctor("status", "own", cwd=tmp_path, **store).stdout)
