"""A task server that answers nobody is waited for without an attempt, longer than `patience_s` once it has answered."""

import contextlib
import json
import re
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.e2e.gates import Gate, gate
from tests.e2e.proctor import Server, begin, completed, exits, proctor, server
from tests.pace import slowly, until
from tests.support import FAKETIME, free_port

TASK = "{name: db-own, environment: db, capacity: 8, parameters: {engine: sqlite}}"
PLAN = """\
name: away
controller: {controller}
route: {route}
epochs: 4
agents: [{{name: reference, builtin: reference, endpoint: "{agents}", concurrency: 8}}]
tasks: [{{name: db-own}}]
limits: {{attempts: 2, patience_s: {patience_s}}}
"""
AGENTS = """\
token_env: PROCTOR_TOKEN
tasks: [{task}]
agents: [{{name: reference, kind: reference, latency_s: 0.2}}]
"""
PATIENCE_S = 2.5 + slowly(2)
"""Longer than a controller that was just started settles."""
KEY = {"OPENAI_API_KEY": "token-of-the-tests"}


@dataclass
class Parts:
    """A task server at a port it keeps, and agents behind a gate."""

    folder: Path
    agents: Server
    lone: bool
    stack: contextlib.ExitStack
    port: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Server:
        """The task server: a lone worker, or a controller, for which a worker waits."""
        tasks = ("--tasks=tasks.yaml",) if self.lone else ("--settle=2.5",)
        kind = "worker" if self.lone else "controller"
        return self.stack.enter_context(server(kind, f"--port={self.port}", *tasks, cwd=self.folder))

    def plan(self, route: str = "auto", patience_s: float = PATIENCE_S) -> None:
        fields = {"controller": self.url, "route": route, "agents": self.agents.url, "patience_s": patience_s}
        (self.folder / "plan.yaml").write_text(PLAN.format(**fields))

    def attempts(self) -> Counter[int]:
        """How many trials of the run took how many; each has a score."""
        exits(0, "export", "r", "--to", "rows.jsonl", cwd=self.folder)
        rows = [json.loads(line) for line in (self.folder / "rows.jsonl").read_text().splitlines()]
        assert all(row["score"] is not None for row in rows)
        return Counter(row["attempts"] for row in rows)

    @contextlib.contextmanager
    def under_way(self, **extra: str) -> "Iterator[tuple[Gate, subprocess.Popen[str]]]":
        """A run whose eight trials at once have begun and wait at the gate: no start of a session is under way."""
        way = self.stack.enter_context(gate(self.folder / "plan.yaml", self.agents.url))
        way.shut(spared=10)
        client = begin("run", "plan.yaml", "--name", "r", cwd=self.folder, **KEY, **extra)
        until(lambda: client.poll() is not None or way.calls >= 10 + 8)
        assert client.poll() is None, client.communicate()
        yield way, client


@contextlib.contextmanager
def parts(folder: Path, *, lone: bool = False) -> Iterator[Parts]:
    (folder / "tasks.yaml").write_text(f"tasks: [{TASK}]\n")
    (folder / "agents.yaml").write_text(AGENTS.format(task=TASK))
    with server("agents", "--config", "agents.yaml", cwd=folder) as agents, contextlib.ExitStack() as stack:
        yield Parts(folder, agents, lone, stack)


def worker_of(parts: Parts) -> Server:
    options = ("--tasks=tasks.yaml", f"--controller={parts.url}")
    return parts.stack.enter_context(server("worker", *options, cwd=parts.folder))


def ended(client: "subprocess.Popen[str]", code: int) -> str:
    """What a client that ends with this code has told."""
    return completed(client, code, within_s=200)


def running_while_away(errors: str, url: str) -> list[int]:
    """How many trials ran by each line from the one that says that the server is away until trials end again."""
    lines = [line for line in errors.splitlines() if " trials | " in line]
    first = next(n for n, line in enumerate(lines) if f"the task server {url} can't be reached since " in line)
    done = [line.split(" trials")[0] for line in lines]
    return [int(re.findall(r"running (\d+)", line)[0]) for line in lines[first:] if line.startswith(done[first])]


@pytest.mark.parametrize("route", ["auto", "relayed"])
def test_a_controller_that_is_away_for_longer_than_the_patience_costs_no_attempt(tmp_path: Path, route: str) -> None:
    with parts(tmp_path) as these:
        controller = these.start()
        worker_of(these)
        these.plan(route)
        with these.under_way() as (way, client):
            controller.kill()
            way.open()
            time.sleep(PATIENCE_S + slowly(3))
            these.start()
            errors = ended(client, 0)
        assert re.search(r"the task server \S+ can't be reached since \d\d:\d\d:\d\d UTC: ", errors)
        assert "attempts lost 0" in errors
        assert these.attempts().keys() == {1}


def test_no_trial_is_said_to_run_whose_turns_wait_for_the_controller(tmp_path: Path) -> None:
    with parts(tmp_path) as these:
        controller = these.start()
        worker_of(these)
        these.plan("relayed")
        with these.under_way() as (way, client):
            controller.kill()
            way.open()
            time.sleep(slowly(4) + 6)
            told = json.loads(proctor("status", "r", "--json", cwd=tmp_path).stdout)
            assert any(f"the task server {these.url} can't be reached since" in line for line in told["troubles"])
            client.send_signal(signal.SIGTERM)
            errors = ended(client, 130)
        assert running_while_away(errors, these.url)[-1] == 0
        these.start()
        exits(0, "resume", "r", cwd=tmp_path, **KEY)
        assert sum(these.attempts().values()) > 10


def test_a_lone_worker_that_is_away_for_longer_than_the_patience_loses_its_sessions_alone(tmp_path: Path) -> None:
    with parts(tmp_path, lone=True) as these:
        worker = these.start()
        these.plan()
        with these.under_way() as (way, client):
            worker.kill()
            way.open()
            time.sleep(PATIENCE_S + slowly(3))
            these.start()
            errors = ended(client, 0)
        assert f"the task server {these.url} can't be reached since " in errors
        attempts = these.attempts()
        assert attempts.keys() <= {1, 2}
        assert attempts[2] <= 8


@pytest.mark.parametrize("lone", [False, True])
def test_a_task_server_that_is_not_there_yet_is_waited_for(tmp_path: Path, *, lone: bool) -> None:
    with parts(tmp_path, lone=lone) as these:
        these.plan(patience_s=slowly(60))
        client = begin("run", "plan.yaml", "--name", "r", cwd=tmp_path, **KEY)
        time.sleep(slowly(2))
        these.start()
        if not lone:
            worker_of(these)
        ended(client, 0)
        assert these.attempts().keys() == {1}


def test_a_task_server_that_never_answers_ends_the_start_after_the_patience(tmp_path: Path) -> None:
    with parts(tmp_path) as these:
        these.plan(patience_s=2)
        failed = exits(2, "run", "plan.yaml", "--name", "r", cwd=tmp_path, **KEY)
        assert f"the task server {these.url} can't be reached since " in failed.stderr.splitlines()[-1]
        assert "it was waited for 2 s: start it" in failed.stderr.splitlines()[-1]


@pytest.mark.faketime
def test_after_an_hour_the_run_ends_with_code_2_and_its_trials_pending(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    clock.write_text("+0\n")
    own = {"LD_PRELOAD": str(FAKETIME[0]), "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1"}
    with parts(tmp_path) as these:
        controller = these.start()
        worker_of(these)
        these.plan("relayed")
        with these.under_way(**own) as (way, client):
            controller.kill()
            way.open()
            time.sleep(slowly(3))
            assert client.poll() is None
            clock.write_text("+3700\n")
            errors = ended(client, 2)
        assert re.search(r"can't be reached since .*; it was waited for 3600 s: start it again, then", errors)
        told = json.loads(proctor("status", "r", "--json", cwd=tmp_path).stdout)
        assert all(pair["unscored"] == 0 for pair in told["pairs"]), told
        these.start()
        exits(0, "resume", "r", cwd=tmp_path, **KEY)
        assert sum(these.attempts().values()) > 10


def test_a_lost_worker_and_its_return_are_named_everywhere(tmp_path: Path) -> None:
    with parts(tmp_path) as these:
        these.start()
        port = free_port()

        def start(name: str, port: int) -> Server:
            options = ("--tasks=tasks.yaml", f"--controller={these.url}", f"--name={name}", f"--port={port}")
            return these.stack.enter_context(server("worker", *options, cwd=tmp_path))

        lost = start("w1", port)
        these.plan()
        with these.under_way() as (way, client):
            start("w2", 0)
            lost.kill()
            way.shut(spared=10)  # those that were held meet the loss, and further ones wait until it is told
            cause = f"worker w1 is lost: {lost.url} refuses connections"
            until(lambda: cause in exits(0, "status", "r", cwd=tmp_path).stdout)
            start("w1", port)
            way.open()
            errors = ended(client, 0)
        logged = (tmp_path / "controller.log").read_text()
        assert logged.count(cause) == 1
        assert f"worker w1 is back at {lost.url}; it was lost: {lost.url} refuses connections" in logged
        assert cause in errors
        assert f"worker w1 is back at {lost.url}" in errors
        with contextlib.closing(sqlite3.connect(tmp_path / "runs" / "r" / "run.sqlite")) as store:
            assert store.execute("SELECT count(*) FROM proctor_attempt WHERE cause = ?", (cause,)).fetchone()[0] > 0
