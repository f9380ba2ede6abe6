"""Agents that attack the worker they play on, beside ones that just play: the others never notice."""

import asyncio
import contextlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import docker
import pytest

from eval_client.store.connection import sqlite_url
from eval_client.store.tables import attempt_table
from tests.e2e.proctor import Server, begin, completed, exits, proctor, rows, server
from tests.e2e.run.test_parts_gone import mariadbds_of
from tests.e2e.scripted import ScriptedEndpoint, reply
from tests.faults.parts.farm import KEY, LEASE_S, Farm, marked, put_away
from tests.faults.parts.invariants import rows_of
from tests.faults.parts.proxy import Fault
from tests.pace import slowly, until
from tests.support import ROOT

OWNER_LABEL = "proctor.sandbox.owner"
OS = f"{{name: hostile, environment: os, capacity: 8, parameters: {{pool: 2, command_limit_s: {slowly(4)}}}}}"
DB = "{{name: hostile, environment: db, capacity: 8, parameters: {{engine: {engine}, statement_limit_s: {limit_s}}}}}"
ATTACKS = {
    "memory": "tail /dev/zero",
    "forks": ":(){ :|:& };: ; sleep 100",
    "disk": "cat /dev/zero >/filler; for n in $(seq 100); do cp /filler /filler-$n; done",
    "endless": "yes endless",
    "kills": "kill -9 -1",
}
ENDLESS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n",
    "mariadb": "SELECT BENCHMARK(1000000000000, SHA2('x', 512))",
}
PLAN = """\
name: hostile
controller: {worker}
endpoints: [{{name: hostile, base_url: "{hostile}", concurrency: 8}}]
agents:
  - {{name: reference, builtin: reference, endpoint: "{agents}", concurrency: 3}}
{attackers}
tasks: [{task}]
limits: {{attempts: {attempts}, patience_s: {patience_s}}}
"""


class Attacker(ScriptedEndpoint):
    """Each model sends its own first answer, and gives up in its second turn."""

    def __init__(self, first: Mapping[str, str], second: str) -> None:
        super().__init__()
        self.first, self._second = first, second

    def _answer(self) -> bytes:
        request = self.requests[-1]
        turn = request["metadata"]["turn"]
        content = self.first[str(request["model"])] if turn == "1" else self._second
        message = {"role": "assistant", "content": content}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        completion = {"id": "1", "object": "chat.completion", "model": "x", "choices": [choice], "usage": usage}
        return reply(200, json.dumps(completion).encode())


@contextlib.contextmanager
def attacker(first: Mapping[str, str], second: str) -> Iterator[Attacker]:
    """An attacker in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    endpoint = Attacker(first, second)
    asyncio.run_coroutine_threadsafe(endpoint.open(), loop).result(slowly(10))
    try:
        yield endpoint
    finally:
        asyncio.run_coroutine_threadsafe(endpoint.close(), loop).result(slowly(10))
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextlib.contextmanager
def field(
    folder: Path, task: str, endpoint: Attacker | None, *, attempts: int = 1, latency_s: float = 0.2
) -> Iterator[tuple[Server, Server]]:
    """A lone worker and an agent server with the task, and the plan in which the attackers meet the reference."""
    (folder / "tasks.yaml").write_text(f"tasks: [{task}]\n")
    agent = f"{{name: reference, kind: reference, latency_s: {latency_s}}}"
    (folder / "agents.yaml").write_text(f"token_env: PROCTOR_TOKEN\ntasks: [{task}]\nagents: [{agent}]\n")
    with (
        marked(),
        server("agents", "--config", "agents.yaml", cwd=folder) as agents,
        server("worker", "--tasks", "tasks.yaml", cwd=folder) as worker,
    ):
        names = endpoint.first if endpoint is not None else ()
        attackers = "".join(
            f"  - {{name: {name}, endpoint: hostile, metadata: true, concurrency: 2}}\n" for name in names
        )
        urls = {"worker": worker.url, "agents": agents.url, "hostile": endpoint.url if endpoint else agents.url}
        plan = PLAN.format(**urls, attackers=attackers, task=task, attempts=attempts, patience_s=slowly(20))
        (folder / "plan.yaml").write_text(plan)
        until(lambda: worker.metric("proctor_task_up") == 1)
        yield worker, agents
        until(lambda: worker.metric("proctor_sessions_live") == 0, LEASE_S)
        assert worker.metric("proctor_slots_free") == 8


def containers(worker: Server) -> list[str]:
    """The ids of the containers that a worker owns."""
    with contextlib.closing(docker.from_env()) as client:
        listed = client.api.containers(all=True, filters={"label": OWNER_LABEL})
    return [str(found["Id"]) for found in listed if found["Labels"][OWNER_LABEL].split()[1] == str(worker.process.pid)]


@pytest.mark.docker
def test_memory_forks_disk_and_output_without_end_harm_only_their_own_session(tmp_path: Path) -> None:
    first = {name: f"Think: ha.\n\nAct: bash\n\n```bash\n{code}\n```" for name, code in ATTACKS.items()}
    with attacker(first, "Think: enough.\n\nAct: finish") as endpoint, field(tmp_path, OS, endpoint) as (worker, _):
        exits(0, "run", "plan.yaml", "--name", "r", "-q", "--limit", "2", cwd=tmp_path, **KEY)
        played = rows("r", tmp_path)
        assert {row["score"] for row in played if row["agent"] == "reference"} == {1.0}
        assert {row["reason"] for row in played} == {"completed"}
        assert all(row["turns"] == 2 for row in played if row["agent"] in ATTACKS)
        until(lambda: len(containers(worker)) == 2)  # the pool
    assert containers(worker) == []


@pytest.mark.docker
def test_killed_containers_cost_an_attempt_and_no_score(tmp_path: Path) -> None:
    with (
        contextlib.ExitStack() as stack,
        field(tmp_path, OS, None, attempts=3, latency_s=slowly(0.2)) as (worker, agents),
    ):
        client = begin("run", "plan.yaml", "--name", "r", "-q", cwd=tmp_path, **KEY)
        stack.callback(put_away, client)
        until(lambda: agents.metric("proctor_agent_requests_total") >= 4)
        with contextlib.closing(docker.from_env()) as engine:
            for container in containers(worker):
                with contextlib.suppress(docker.errors.APIError):
                    engine.api.kill(container)
        completed(client, within_s=120)
        assert {row["score"] for row in rows("r", tmp_path)} == {1.0}
        attempts = rows_of(sqlite_url(tmp_path / "runs" / "r"), "r", attempt_table)
        assert any(attempt["cause"] for attempt in attempts), [attempt["outcome"] for attempt in attempts]
    assert containers(worker) == []


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("mariadb", marks=pytest.mark.mariadb)])
def test_a_query_that_never_ends_is_ended_and_delays_nobody(tmp_path: Path, engine: str) -> None:
    first = {"endless": f"Action: Operation\n```sql\n{ENDLESS[engine]}\n```\n"}
    task = DB.format(engine=engine, limit_s=slowly(1))
    with (
        attacker(first, "Action: Answer\nFinal Answer: []\n") as endpoint,
        field(tmp_path, task, endpoint) as (worker, _),
    ):
        databases = mariadbds_of(worker.process.pid) if engine == "mariadb" else []
        exits(0, "run", "plan.yaml", "--name", "r", "-q", "--limit", "3", cwd=tmp_path, **KEY)
        played = rows("r", tmp_path)
        assert {row["score"] for row in played if row["agent"] == "reference"} == {1.0}
        assert {(row["reason"], row["turns"]) for row in played if row["agent"] == "endless"} == {("completed", 2)}
    assert not any(Path(f"/proc/{pid}").exists() for pid in databases)


SLOW_DOWN = reply(429, b'{"error": {"message": "slow down"}}', "Retry-After: 0")
BROKEN = reply(500, b'{"error": {"message": "oops"}}')
AWAY = reply(503, b"<html>no JSON at all</html>")
GARBAGE = reply(200, b"{{{{ not json")
NO_CHOICE = reply(200, b'{"choices": []}')
WRONG_TYPES = reply(200, b'{"choices": [{"message": "hello"}], "usage": "much"}')
OVERSIZED = reply(200, b'{"choices": "' + b"x" * 20_000_000 + b'"}')
NOT_HTTP = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
ANSWERS = (SLOW_DOWN, BROKEN, AWAY, GARBAGE, NO_CHOICE, WRONG_TYPES, OVERSIZED)


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_an_endpoint_does_costs_retries_and_never_a_score(parts: Farm, seed: int) -> None:
    parts.start(deadline_s=slowly(2))
    link = parts.link("agents")
    link.chance.seed(seed)
    link.faults += [Fault("answer", "POST", chance=0.03, body=body) for body in ANSWERS]
    link.faults += [
        Fault("answer", "POST", chance=0.02, body=NOT_HTTP),
        Fault("silence", "POST", chance=0.02),
        Fault("endless", "POST", chance=0.02),
        Fault("truncate", "POST", chance=0.02),
        Fault("drop", "POST", chance=0.02),
        Fault("drop_reply", "POST", chance=0.02),
        Fault("half_close", "POST", chance=0.02),
        Fault("throttle", "POST", chance=0.02, seconds=0.5),
    ]
    parts.completed(parts.begin())
    parts.verify()
    assert set(parts.attempts()) == {1}


WORLD = """\
from proctor import Action, Environment, Finish, FinishReason, Message, Observation

class Odd(Environment):
    def samples(self):
        return ["a", "b", "c"]

    async def play(self, sample, agent, seed=0):
        await agent.act(Observation(messages=(Message(role="user", content="say 1"),)))
        value = {value} if sample == "b" else 0.5
        return Finish(reason=FinishReason.COMPLETED, score=1.0, metrics={{"mean_error": value}})

    def naive(self, sample, seed=0):
        return lambda conversation, messages: Action(content="1")
"""


@pytest.mark.parametrize("value", ['float("nan")', 'float("inf")', '-float("inf")', '"high"', "None"])
def test_a_metric_that_is_no_number_is_a_fault_of_its_trial_alone(value: str, tmp_path: Path) -> None:
    info = tmp_path / "odd_world-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-world\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[proctor.environments]\nodd = odd_world:Odd\n")
    (tmp_path / "odd_world.py").write_text(WORLD.format(value=value))
    there = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}

    checked = exits(1, "check", "odd", cwd=tmp_path, **there)
    assert "mean_error" in checked.stdout
    assert "b" in checked.stdout

    (tmp_path / "plan.yaml").write_text(
        "agents: [{name: naive, builtin: naive}]\ntasks: [{name: odd, environment: odd}]\n"
    )
    for command in (("run", "plan.yaml", "--name", "r"), ("resume", "r")):
        exits(1, *command, cwd=tmp_path, **there)
        found = {str(row["sample"]): (row["score"], str(row["cause"])) for row in rows("r", tmp_path)}
        assert (found["a"][0], found["c"][0], found["b"][0]) == (1.0, 1.0, None)
        assert "mean_error" in found["b"][1]
    assert proctor("report", "r", cwd=tmp_path, **there).returncode == 0
