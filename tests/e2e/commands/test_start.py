"""A first run: what it says, how soon, and what it says before it starts anything."""

import json
import re
import shlex
import signal
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.e2e.commands.terminal import on_a_terminal
from tests.e2e.proctor import begin, completed, exits, proctor, scored
from tests.e2e.scripted import ScriptedEndpoint
from tests.pace import until
from tests.support import ROOT

PAGE = (ROOT / "docs" / "tutorial" / "first-run.md").read_text(encoding="utf-8")
PLAN = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0]
SHOWN = [
    (command, [line for line in output.splitlines() if line])
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for command, output in re.findall(r"^\$ proctor (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]


def interrupted(command: str, folder: Path) -> None:
    """Start a run, and press Ctrl-C once while it plays."""
    process = begin(*shlex.split(command), cwd=folder)
    until(lambda: scored(folder, "whole") > 0)
    process.send_signal(signal.SIGINT)
    completed(process, 130, within_s=120)


def test_the_tutorial_word_by_word(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    assert len(SHOWN) == 9
    for command, output in SHOWN:
        if output == ["^C"]:
            interrupted(command, tmp_path)
            continue
        done = exits(0, *shlex.split(command), cwd=tmp_path)
        missing = [part for line in output for part in line.split("...") if part not in done.stdout]
        assert missing == [], f"{command}\n{done.stdout}"
    assert (tmp_path / "results.html").stat().st_size > 10_000


SITE = '''
import io, json, pathlib, sys

before = set(sys.modules)
noted = pathlib.Path(__file__).with_name("modules.json")

class FirstWrite(io.TextIOWrapper):
    """Standard error, which notes what was imported when the first text is written."""

    def write(self, text):
        if not noted.exists():
            noted.write_text(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
        return super().write(text)

sys.stderr = FirstWrite(open(2, "wb", closefd=False, buffering=0), line_buffering=True, write_through=True)
'''
ONE_TASK = "agents: [{name: naive, builtin: naive}]\ntasks: [{name: cards, environment: card_game}]\n"


def imported_at_the_first_text(folder: Path) -> set[str]:
    """The installed packages that were imported, by the names of their distributions."""
    of_module = packages_distributions()
    modules = json.loads((folder / "modules.json").read_text())
    return {distribution for module in modules for distribution in of_module.get(module, ())}


@pytest.mark.parametrize(
    "command", [("run", "plan.yaml", "--limit", "1"), ("demo", "--limit", "1"), ("doctor",), ("resume", "nothing")]
)
def test_the_start_is_said_before_anything_slow_is_imported(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "sitecustomize.py").write_text(SITE)
    (tmp_path / "plan.yaml").write_text(ONE_TASK)
    where = ":".join([str(tmp_path), *filter(None, sys.path)])
    with on_a_terminal(*command, cwd=tmp_path, PYTHONPATH=where) as (_, terminal):
        terminal.until(f"proctor {command[0]}: starting ...")
        assert imported_at_the_first_text(tmp_path) <= {"click", "proctor"}


def test_each_slow_step_of_a_run_names_itself(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(ONE_TASK)
    with on_a_terminal("run", "plan.yaml", "--limit", "1", cwd=tmp_path) as (_, terminal):
        terminal.until("reading plan.yaml, checking this machine ...")
        terminal.until("starting 1 worker, an agent server ...")
        terminal.until("asking its workers for the samples ...")


def test_a_quiet_command_says_nothing_of_its_start(tmp_path: Path) -> None:
    with on_a_terminal("resume", "nothing", "-q", cwd=tmp_path) as (_, terminal):
        assert terminal.until("Error: ").lstrip().startswith("Error: ")


NO_DOCKER = {"DOCKER_HOST": "unix:///nowhere/docker.sock"}
MODEL = "{name: model, endpoint: mine}"
NAIVE = "{name: naive, builtin: naive}"


def written(folder: Path, *agents: str, url: str = "http://127.0.0.1:9/v1", tasks: str) -> Path:
    """A plan with these agents and tasks, and the endpoint `mine`."""
    plan = folder / "plan.yaml"
    plan.write_text(
        f"endpoints: [{{name: mine, base_url: '{url}'}}]\nagents: [{', '.join(agents)}]\ntasks: [{tasks}]\n"
        "limits: {trial: {turns: 2}}\n"
    )
    return plan


OS = "{name: os, environment: os, fallback: true}"
DB = "{name: db, environment: db, parameters: {engine: sqlite}}"


def test_each_problem_is_one_line_with_its_fix_before_anything_else(tmp_path: Path) -> None:
    written(tmp_path, MODEL, tasks="{name: os, environment: os}")
    told = exits(0, "run", "plan.yaml", "--dry-run", cwd=tmp_path, **NO_DOCKER)
    lines = [line for line in told.stderr.splitlines() if line.startswith("problem: ")]
    assert len(lines) == 2
    assert all("; fix: " in line for line in lines)
    assert "task os" in lines[0]
    assert "unix:///nowhere/docker.sock" in lines[0]
    assert "nothing listens at http://127.0.0.1:9 yet" in lines[1]
    assert "Docker" not in told.stdout


def test_a_plan_without_problems_is_silent(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    written(tmp_path, MODEL, url=endpoint.url, tasks=DB)
    told = proctor("run", "plan.yaml", "--dry-run", cwd=tmp_path)
    assert "problem:" not in told.stderr, told.stderr
    assert endpoint.requests == []


def test_a_task_with_fallback_is_played_by_another_engine(tmp_path: Path) -> None:
    written(tmp_path, NAIVE, tasks=OS)
    ended = exits(0, "run", "plan.yaml", "--limit", "1", "--name", "r", cwd=tmp_path, **NO_DOCKER)
    assert "fallback: task os: " in ended.stderr
    assert "engine namespace is used" in ended.stderr
    assert "; fix: " in ended.stderr
    assert "problem:" not in ended.stderr
    exits(0, "resume", "r", cwd=tmp_path, **NO_DOCKER)


def test_a_task_that_models_must_not_play_by_another_engine_is_left_out(
    tmp_path: Path, endpoint: ScriptedEndpoint
) -> None:
    written(tmp_path, MODEL, NAIVE, url=endpoint.url, tasks=f"{DB}, {OS}")
    ended = exits(0, "run", "plan.yaml", "--limit", "1", "--name", "r", cwd=tmp_path, **NO_DOCKER)
    assert "left out: task os: " in ended.stderr
    assert "too thin an isolation for model" in ended.stderr
    assert "task os is left out: Docker: no engine answers" in ended.stdout
    exits(0, "resume", "r", cwd=tmp_path)


def test_a_plan_of_which_nothing_is_left_is_refused_with_the_fix(tmp_path: Path) -> None:
    written(tmp_path, MODEL, tasks=OS)
    refused = exits(2, "run", "plan.yaml", cwd=tmp_path, **NO_DOCKER)
    assert "this machine can play no task of the plan" in refused.stderr
    assert "; fix: " in refused.stderr
    assert not (tmp_path / "runs").exists()
