"""Two clients at the same workers: a run of eight trials is not kept waiting by a flood of them."""

import contextlib
import json
import sqlite3
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.proctor import TOKEN, Server, begin, scored, server
from tests.pace import slowly, until

TASKS = "tasks: [{name: db, environment: db, parameters: {engine: sqlite}, capacity: 2}]\n"
AGENTS = "token_env: PROCTOR_TOKEN\nagents: [{name: naive, kind: naive, latency_s: 0.2}]\n" + TASKS
PLAN = """\
controller: "{url}"
epochs: {epochs}
endpoints: [{{name: slow, base_url: "{agents}", api_key_env: PROCTOR_TOKEN}}]
agents: [{{name: naive, builtin: naive, endpoint: slow, concurrency: 64}}]
tasks: [{{name: db}}]
"""


@contextlib.contextmanager
def workers(kind: str, folder: Path, **variables: str) -> Iterator[Server]:
    """Workers with four slots in all, behind a controller, or one alone."""
    (folder / "tasks.yaml").write_text(TASKS)
    with contextlib.ExitStack() as stack:
        if kind == "alone":
            (folder / "tasks.yaml").write_text(TASKS.replace("capacity: 2", "capacity: 4"))
            yield stack.enter_context(server("worker", "--tasks", "tasks.yaml", cwd=folder, **variables))
            return
        controller = stack.enter_context(server("controller", cwd=folder, **variables))
        for number in range(2):
            options = ("--tasks", "tasks.yaml", "--controller", controller.url, "--name", f"w{number}")
            stack.enter_context(server("worker", *options, cwd=folder, **variables))
        yield controller


def begun(folder: Path, run: str) -> int:
    """How many sessions of a run have begun."""
    with contextlib.suppress(sqlite3.OperationalError):
        uri = f"file:{folder / 'runs' / run / 'run.sqlite'}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as store:
            return int(store.execute("SELECT count(*) FROM proctor_attempt").fetchone()[0])
    return 0


@pytest.mark.parametrize("kind", ["alone", "behind a controller"])
def test_a_newcomer_gets_every_other_slot(kind: str, tmp_path: Path) -> None:
    (tmp_path / "agents.yaml").write_text(AGENTS)
    with workers(kind, tmp_path) as where, server("agents", "--config", "agents.yaml", cwd=tmp_path) as agents:
        for name, epochs in (("flood", 20), ("quick", 1)):
            text = PLAN.format(url=where.url, agents=agents.url, epochs=epochs)
            (tmp_path / f"{name}.yaml").write_text(text)
        flood = begin("run", "flood.yaml", "--name", "flood", cwd=tmp_path)
        until(lambda: scored(tmp_path, "flood") >= 8)
        quick = begin("run", "quick.yaml", "--name", "quick", "--limit", "8", cwd=tmp_path)
        until(lambda: begun(tmp_path, "quick") >= 1)
        before = begun(tmp_path, "flood")
        until(lambda: begun(tmp_path, "quick") >= 8)
        meanwhile = begun(tmp_path, "flood") - before
        assert quick.wait() == 0
        flood.kill()
        flood.communicate()
        quick.communicate()
    assert meanwhile <= 16, "else the flood takes nearly every slot that comes free"


def held(url: str) -> dict[str, int]:
    """user -> sessions, by the server's own account"""
    request = urllib.request.Request(f"{url}/runs", headers={"Authorization": "Bearer token-of-ann"})
    with urllib.request.urlopen(request, timeout=slowly(10)) as reply:
        return {run["user"]: run["held"] for run in json.load(reply)["runs"]}


@pytest.mark.parametrize("kind", ["alone", "behind a controller"])
def test_weights_and_caps_are_those_of_the_tokens_whatever_a_client_says(kind: str, tmp_path: Path) -> None:
    (tmp_path / "agents.yaml").write_text(AGENTS)
    lines = ["ann weight=3 token-of-ann", "bob token-of-bob", "cy cap=1 token-of-cy"]
    (tmp_path / "tokens").write_text("\n".join(lines))
    of_servers = {"PROCTOR_TOKEN": "", "PROCTOR_TOKEN_FILE": str(tmp_path / "tokens")}
    with (
        workers(kind, tmp_path, **of_servers) as where,
        server("agents", "--config=agents.yaml", cwd=tmp_path) as agents,
    ):
        text = PLAN.format(url=where.url, agents=agents.url, epochs=20).replace("PROCTOR_TOKEN", "AGENTS_KEY")
        (tmp_path / "plan.yaml").write_text(text)

        def play(user: str, *options: str) -> "subprocess.Popen[str]":
            variables = {"PROCTOR_TOKEN": f"token-of-{user}", "PROCTOR_USER": "ann", "AGENTS_KEY": TOKEN}
            return begin("run", "plan.yaml", "--name", user, *options, cwd=tmp_path, **variables)

        def counted(*users: str) -> list[int]:
            """How many sessions of each user were seen at a hundred looks."""
            seen = list[dict[str, int]]()
            while len(seen) < 100:
                time.sleep(0.05)
                seen.append(held(where.url))
            return [sum(each.get(user, 0) for each in seen) for user in users]

        cy = play("cy", "--limit", "1")
        seen = []
        while cy.poll() is None:
            seen.append(held(where.url).get("cy", 0))
            time.sleep(0.02)
        cy.communicate()
        assert set(seen) == {0, 1}
        ann, bob = play("ann"), play("bob")
        until(lambda: begun(tmp_path, "ann") >= 8 and begun(tmp_path, "bob") >= 3)
        of_ann, of_bob = counted("ann", "bob")
        assert 2.0 <= of_ann / of_bob <= 4.5, (of_ann, of_bob)
        (tmp_path / "tokens").write_text("ann token-of-ann\nbob weight=3 token-of-bob\n")
        until(lambda: held(where.url).get("bob") == 3)
        of_ann, of_bob = counted("ann", "bob")
        assert 2.0 <= of_bob / of_ann <= 4.5, (of_ann, of_bob)
        for run in (ann, bob):
            run.kill()
            run.communicate()
