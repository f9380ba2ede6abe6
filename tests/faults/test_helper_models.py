"""What a model on the environment's side (here a host) has said is paid for once, whichever worker is killed.

No two of this host's answers are alike, and every worker has a cache of its own, as if it were on another machine.
"""

import itertools
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from eval_client.store.connection import sqlite_url
from eval_client.store.records import DIVERGED
from eval_client.store.store import Store
from eval_client.store.tables import attempt_table
from proctor.tables.table import money_text
from tests.e2e.proctor import Server, begin, completed, exits, proctor, rows, server
from tests.faults.parts.invariants import rows_of
from tests.pace import slowly, until
from tests.scripted_model import ScriptedModel
from tests.support import serving

KILLS, SESSIONS = 3, 2
ANSWER_S = 0.3
"""While processes are killed: long beside an answer's way from the worker to the client's journal, so that a killed
session loses no more than the call that is under way."""
TASKS = """\
tasks:
  - name: ltp
    environment: ltp
    capacity: 2
    parameters: {{profile: compat, host: {{model: host, base_url: "{url}"}}}}
"""
PRICES = "prices: {host: {input: 1.0e+6, output: 2.0e+6}}\n"
PLAN = (
    PRICES.replace("{", "{{").replace("}", "}}")
    + """\
name: hosted
controller: {controller}
agents:
  - {{name: naive, builtin: naive, concurrency: 2}}
tasks:
  - {{name: ltp, environment: ltp}}
limits: {{attempts: 10, patience_s: {patience_s}}}
"""
)


class Host(ScriptedModel):
    """A host model, no two of whose answers are alike."""

    def __init__(self) -> None:
        super().__init__(self._answer, prompt=10, completion=3)
        self._numbers = itertools.count(1)
        self.answer_s = slowly(ANSWER_S)

    def _answer(self, body: dict[str, Any]) -> str:
        time.sleep(self.answer_s)
        number, messages = next(self._numbers), body["messages"]
        if len(messages) > 1:
            return f"Yes. This is answer {number}."
        asks_for_text = "statement" in messages[0]["content"] or "sentence only" in messages[0]["content"]
        return f"He did it {number} times." if asks_for_text else "No."


@pytest.fixture
def host() -> Iterator[Host]:
    with Host() as host, serving(host):
        yield host


def until_asked(host: Host, client: "subprocess.Popen[str]", count: int) -> None:
    """Come back once the host has answered so often, or the client has ended."""
    until(lambda: len(host.answered) > count or client.poll() is not None)


@pytest.mark.parametrize("too", ["worker_killed", "client_killed_too"])
def test_what_a_host_has_said_is_paid_for_once_and_the_replay_is_the_same(tmp_path: Path, host: Host, too: str) -> None:
    (tmp_path / "tasks.yaml").write_text(TASKS.format(url=host.url))
    with ExitStack() as stack:
        controller = stack.enter_context(server("controller", "--lease", str(slowly(6.0)), cwd=tmp_path))

        def another_machine(number: int) -> Server:
            options = (f"--controller={controller.url}", f"--name=w{number}", "--tasks=tasks.yaml")
            caches = str(tmp_path / f"caches-{number}")
            worker = stack.enter_context(server("worker", *options, cwd=tmp_path, XDG_CACHE_HOME=caches))
            until(lambda: controller.metric("proctor_worker_slots_free") >= SESSIONS)
            return worker

        worker = another_machine(0)
        plan = PLAN.format(controller=controller.url, patience_s=slowly(40))
        (tmp_path / "plan.yaml").write_text(plan)
        client = begin("run", "plan.yaml", "--name", "r", "--limit", str(SESSIONS), "-q", cwd=tmp_path)
        for kill in range(1, KILLS + 1):
            until_asked(host, client, 12 * kill)
            assert client.poll() is None, (len(host.answered), client.communicate())
            worker.kill()
            if too == "client_killed_too":
                client.kill()
                client.communicate()
                client = begin("resume", "r", "-q", cwd=tmp_path)
            worker = another_machine(kill)
        host.answer_s = 0.0
        completed(client, within_s=200)
    again = {body: count for body, count in Counter(host.answered).items() if count > 1}
    assert sum(again.values()) - len(again) <= KILLS * SESSIONS, f"{len(host.answered)} calls, paid twice: {len(again)}"
    attempts = rows_of(sqlite_url(tmp_path / "runs" / "r"), "r", attempt_table)
    assert DIVERGED not in {row["outcome"] for row in attempts}
    assert all(row["score"] is not None for row in rows("r", tmp_path))
    (cost,) = Store(sa.create_engine(sqlite_url(tmp_path / "runs" / "r")), "r").helper_costs()
    assert 0 <= len(host.answered) - cost.calls <= KILLS * SESSIONS
    assert (cost.model, *cost.tokens[:2]) == ("host", 10 * cost.calls, 3 * cost.calls)
    assert f"in all {money_text(cost.calls * 16)}" in proctor("report", "r", cwd=tmp_path).stdout


def test_what_a_host_costs_counts_towards_the_runs_limits(tmp_path: Path, host: Host) -> None:
    task = TASKS.format(url=host.url)
    (tmp_path / "plan.yaml").write_text(
        f"agents: [{{name: naive, builtin: naive}}]\n{PRICES}limits: {{run: {{money: 30}}}}\n{task}"
    )
    options, caches = ("--name", "r", "--limit", "1", "-q"), str(tmp_path / "caches")
    done = exits(1, "run", "plan.yaml", *options, cwd=tmp_path, XDG_CACHE_HOME=caches)
    assert re.search(r"limits.run.money: \d+.00 of 30.00 spent", done.stdout + done.stderr)
    assert len(host.answered) < 12
