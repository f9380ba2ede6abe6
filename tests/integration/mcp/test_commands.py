"""Runs whose agents are commands: played to the end, broken in every way, resumed; no process is left."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.proctor import begin, completed, proctor
from tests.pace import slowly, until
from tests.support import ROOT
from tests.tools_environment import NAME, write_distribution

WALK = ROOT / "tests" / "integration" / "mcp" / "clients.py"
PLAN = """\
controller: local
tasks:
  - {{name: {task}, environment: {task}, parameters: {{count: 2}}}}
limits: {{attempts: {attempts}, trial: {{{limits}}}}}
agents: {agents}
"""
ONE_CALL = """\
import json, os, pathlib, signal, sys, time, urllib.request
url = json.load(open(sys.argv[1]))["mcpServers"]["proctor"]["url"]
params = {"name": "open_door", "arguments": {"door": "7"}}
call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
urllib.request.urlopen(url, json.dumps(call).encode()).read()
"""
"""The call alone: to import the official client takes ten times as long."""
CHILD = """\
import subprocess
subprocess.Popen(['sleep', '98765'], cwd='.')
subprocess.Popen(['sleep', '98765'], cwd='.', start_new_session=True)
"""
"""Leaves two processes behind, which know of no end; one has a session of its own."""


class Folder:
    """A folder with plans, in which `doors` is installed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        write_distribution(path)
        self.working = path / "working"
        """Where the commands get their folders."""
        self.working.mkdir()
        python = f"{path}:{os.environ.get('PYTHONPATH', '')}"
        self.variables = {"PYTHONPATH": python, "TMPDIR": str(self.working)}

    def agent(self, name: str, script: str, **fields: object) -> dict[str, object]:
        """An agent that is a Python script."""
        (self.path / f"{name}.py").write_text(script)
        return self.command(name, str(self.path / f"{name}.py"), **fields)

    def command(self, name: str, script: str, **fields: object) -> dict[str, object]:
        """The same, of a script that there is."""
        return {"name": name, "kind": "command", "command": [sys.executable, script, "{mcp_config}"], **fields}

    def plan(self, *agents: dict[str, object], limits: str = "", attempts: int = 2) -> None:
        text = PLAN.format(task=NAME, agents=json.dumps(agents), limits=limits, attempts=attempts)
        (self.path / "plan.yaml").write_text(text)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return proctor(*arguments, cwd=self.path, **self.variables)

    def rows(self, statement: str) -> list[Any]:
        """What the store answers."""
        (store,) = self.path.glob("runs/*/run.sqlite")
        with sqlite3.connect(store) as connection:
            return connection.execute(statement).fetchall()


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def left(folder: Folder) -> list[str]:
    """The processes that work in a folder of a command, by number."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(folder.working) in os.readlink(process / "cwd"):
                found.append(process.name)
    return found


def test_a_run_of_a_command_has_scores_turns_and_the_name_of_the_harness(folder: Folder) -> None:
    folder.plan(folder.command("walker", str(WALK), concurrency=2))
    ended = folder.run("run", "plan.yaml", "-q")
    assert ended.returncode == 0, ended.stderr
    finishes = [json.loads(text) for (text,) in folder.rows("select finish from proctor_trial")]
    assert [finish["score"] for finish in finishes] == [1.0, 1.0]
    assert [finish["detail"]["agent_exit"] for finish in finishes] == [0, 0]
    turns = folder.rows("select reply, metered from proctor_turn")
    assert len(turns) == 8
    assert all(json.loads(reply)["action"]["tool_calls"][0]["name"] == "open_door" for reply, _ in turns)
    assert {metered for _, metered in turns} == {0}
    report = folder.run("report", "latest").stdout
    assert "the loop is not the published one: walker (python" in " ".join(report.split())


@pytest.mark.parametrize(
    ("script", "reason", "score", "detail"),
    [
        ("", "agent_error", None, {"agent_exit": 0}),
        (ONE_CALL, "turn_limit", 0.0, {"agent_exit": 0}),
        ("import sys; sys.exit('no key')", "agent_error", None, {"agent_exit": 1}),
        (ONE_CALL + "os.kill(os.getpid(), signal.SIGKILL)", "agent_error", None, {"agent_exit": -9}),
        ("import time; time.sleep(987)", "agent_error", None, {}),
        (ONE_CALL + "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(987)", "agent_error", None, {}),
    ],
    ids=["never connects", "gives up", "fails", "is killed", "hangs", "hangs and can't be told to end"],
)
def test_a_command_that_does_not_reach_the_end(
    folder: Folder, script: str, reason: str, score: float | None, detail: dict[str, object]
) -> None:
    hangs = "sleep(" in script
    if hangs:
        folder.plan(folder.agent("broken", CHILD + script), limits=f"seconds: {slowly(6)}", attempts=1)
    else:
        folder.plan(folder.agent("broken", CHILD + script))
    ended = folder.run("run", "plan.yaml", "-q", "--limit", "1")
    (trial,) = folder.rows("select reason, score, cause, finish from proctor_trial")
    assert trial[:2] == (reason, score), ended.stderr
    assert json.loads(trial[3])["detail"].items() >= detail.items()
    assert ("agent_exit" in json.loads(trial[3])["detail"]) == bool(detail)
    if not script:
        assert "without having connected to the episode" in trial[2]
    if "no key" in script:
        assert "exit code 1: no key" in trial[2]
    if hangs:
        assert "limits.trial.seconds" in trial[2]
    assert left(folder) == []
    assert list(folder.working.iterdir()) == []


def test_a_start_that_fails_for_now_is_a_fault_of_its_trial_alone(folder: Folder) -> None:
    words = [sys.executable, str(WALK), "{mcp_config}", "x" * 200_000]
    folder.plan({"name": "walker", "kind": "command", "command": words})
    ended = folder.run("run", "plan.yaml", "-q")
    trials = folder.rows("select reason, cause from proctor_trial")
    assert [reason for reason, _ in trials] == ["agent_error"] * 2, ended.stderr
    assert all("Argument list too long" in cause for _, cause in trials)


def test_no_folder_for_a_command_is_a_fault_of_its_trial_alone(folder: Folder) -> None:
    folder.plan(folder.agent("tidy", "import pathlib, shutil; shutil.rmtree(pathlib.Path.cwd().parent)", concurrency=1))
    ended = folder.run("run", "plan.yaml", "-q")
    trials = folder.rows("select reason, cause from proctor_trial")
    assert [reason for reason, _ in trials] == ["agent_error"] * 2, ended.stderr
    assert any("No such file or directory" in cause for _, cause in trials)


def test_a_command_that_is_not_there_is_said_before_the_run(folder: Folder) -> None:
    folder.plan({"name": "claude", "kind": "command", "command": ["no-such-program", "{url}"]})
    ended = folder.run("run", "plan.yaml", "-q")
    assert ended.returncode == 2
    assert "agents.claude.command: there is no program 'no-such-program'" in " ".join(ended.stderr.split())


def under_way(folder: Folder) -> "subprocess.Popen[str]":
    """A run whose command has made a call and now waits for ever."""
    folder.plan(folder.agent("slow", CHILD + ONE_CALL + "pathlib.Path('called').touch(); time.sleep(987)"))
    process = begin("run", "plan.yaml", "-q", "--limit", "1", "--name", "r", cwd=folder.path, **folder.variables)
    until(lambda: process.poll() is not None or bool(list(folder.working.glob("*/called"))))
    assert process.poll() is None
    return process


def test_the_client_killed_leaves_no_process_and_the_trial_is_played_from_its_start(folder: Folder) -> None:
    process = under_way(folder)
    assert len(left(folder)) == 3
    process.send_signal(signal.SIGKILL)
    process.communicate()
    until(lambda: not left(folder))
    (folder.path / "slow.py").write_text(WALK.read_text())
    resumed = folder.run("resume", "r", "-q")
    assert resumed.returncode == 0, resumed.stderr
    assert folder.rows("select score, attempts, turns from proctor_trial") == [(1.0, 2, 4)]
    assert folder.rows("select journal, count(*) from proctor_turn group by journal") == [(0, 1), (1, 4)]


def test_a_run_that_is_abandoned_after_the_score_keeps_it(folder: Folder) -> None:
    script = WALK.read_text() + "    import pathlib, time\n    pathlib.Path('walked').touch()\n    time.sleep(987)\n"
    folder.plan(folder.agent("lingers", script))
    process = begin("run", "plan.yaml", "-q", "--limit", "1", cwd=folder.path, **folder.variables)
    until(lambda: process.poll() is not None or bool(list(folder.working.glob("*/walked"))))
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=slowly(60))
    assert folder.rows("select score, attempts from proctor_trial") == [(1.0, 1)]
    assert left(folder) == []


def test_a_run_that_is_abandoned_ends_its_commands(folder: Folder) -> None:
    process = under_way(folder)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    completed(process, 130, within_s=60)
    assert left(folder) == []
