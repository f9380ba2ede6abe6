"""A first run needs no plan; `proctor init` writes one."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from eval_client.plan.load import load_plan
from eval_client.plan.plan import Plan
from eval_client.store.runs import find_run
from tests.e2e.proctor import COMMAND, environment, exits, proctor
from tests.e2e.scripted import ScriptedEndpoint
from tests.pace import slowly
from tests.support import ROOT, finished

SQLITE = ("--set", "tasks.db.parameters.engine=sqlite")


def pairs(run: str, folder: Path) -> dict[str, int]:
    """`agent x task` -> its planned trials, all of which must be scored."""
    told = json.loads(proctor("status", run, "--json", cwd=folder).stdout)
    assert all(pair["scored"] == pair["planned"] for pair in told["pairs"])
    return {f"{pair['agent']} x {pair['task']}": pair["planned"] for pair in told["pairs"]}


@pytest.mark.smoke
def test_models_and_environments_are_enough_and_the_plan_is_kept(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    named = ("-m", "org/tiny-model", "-m", "naive", "-e", "db", "-e", "alfworld")
    cut = ("--limit", "2", "--epochs", "2", "--set", "limits.trial.turns=2")
    ended = exits(0, *("run", *named, *cut, *SQLITE, "--name", "first"), cwd=tmp_path, OPENAI_BASE_URL=endpoint.url)
    assert {request["model"] for request in endpoint.requests} == {"org/tiny-model"}
    wanted = {f"{agent} x {task}": 4 for agent in ("tiny-model", "naive") for task in ("db", "alfworld")}
    assert pairs("first", tmp_path) == wanted
    plan = tmp_path / "runs" / "first" / "plan.yaml"
    options = "--set limits.trial.turns=2 --set tasks.db.parameters.engine=sqlite --limit 2"
    assert f"proctor run runs/first/plan.yaml {options}" in ended.stderr
    assert "proctor resume runs/first" in ended.stderr
    text = plan.read_text()
    assert text.count("#") > 6
    assert endpoint.url in text
    exits(0, "run", str(plan), *cut[:2], *cut[4:], *SQLITE, "--name", "again", cwd=tmp_path)
    assert pairs("again", tmp_path) == wanted
    exits(0, "resume", "first", "-q", cwd=tmp_path)


def test_what_everyone_types_has_options_which_hold_for_every_model_and_in_a_plan_too(
    tmp_path: Path, endpoint: ScriptedEndpoint
) -> None:
    named = ("-m", "one-4.1", "-m", "two", "-m", "naive", "-e", "db", "--base-url", endpoint.url, "--limit", "1")
    options = ("--temperature", "0.5", "--max-tokens", "77", "--seed", "5")
    exits(0, *("run", *named, *options, "--concurrency", "3", *SQLITE, "--name", "r"), cwd=tmp_path)
    sent = {(request["model"], request["temperature"], request["max_tokens"]) for request in endpoint.requests}
    assert sent == {("one-4.1", 0.5, 77), ("two", 0.5, 77)}
    plan = Plan.model_validate(find_run("r", None, tmp_path / "runs")[0].manifest().plan)
    assert (plan.seed, [plan.concurrency_of(agent) for agent in plan.agents]) == (5, [3, 3, 256])
    endpoint.requests.clear()
    added = ("extend", "r", "--agent", "org/three", "-q")
    exits(0, *added, cwd=tmp_path)
    assert {(sent["model"], sent["temperature"], sent["max_tokens"]) for sent in endpoint.requests} == {
        ("org/three", 0.5, 77)
    }
    assert "has all of this already" in exits(0, *added, cwd=tmp_path).stderr
    endpoint.requests.clear()
    exits(0, *("run", "runs/r/plan.yaml", "--limit", "1", *options[:2], *SQLITE, "--name", "again"), cwd=tmp_path)
    assert {request["temperature"] for request in endpoint.requests} == {0.5}


def test_the_endpoint_may_be_named_and_a_run_of_the_same_name_keeps_its_plan(
    tmp_path: Path, endpoint: ScriptedEndpoint
) -> None:
    play = ("run", "-m", "m", "-e", "db", "--limit", "1", *SQLITE, "--name", "r", "--base-url")
    assert proctor(*play, endpoint.url, cwd=tmp_path).returncode == 0
    kept = (tmp_path / "runs" / "r" / "plan.yaml").read_text()
    again = exits(2, *play, "http://127.0.0.1:9/v1", cwd=tmp_path)
    assert "exists already" in again.stderr
    assert (tmp_path / "runs" / "r" / "plan.yaml").read_text() == kept


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "`proctor init` writes one"),
        (("-m", "naive"), "at least one model and one environment"),
        (("-m", "naive", "-e", "bd"), "-e bd: unknown environment 'bd'; installed are: alfworld"),
        (("plan.yaml", "-m", "naive", "-e", "db"), "leave them out, or leave PLAN out"),
        (("plan.yaml", "--concurrency", "9"), "--set endpoints.NAME.concurrency=9"),
        (
            ("-m", "naive", "-e", "alfworld", "--temperature", "0"),
            "--temperature, --max-tokens, --concurrency: are for",
        ),
        (("-m", "m", "-e", "db", "--base-url", "127.0.0.1:8000"), "--base-url: must begin with http"),
        (("-m", "naive", "-e", "alfworld", "--set", "tasks.alfworld.parameters.profil=strict"), "profil"),
        (("-m", "naive", "-e", "db", *SQLITE, "--set", "tasks.db.data=own.jsonl"), "a path must be absolute"),
    ],
)
def test_what_makes_no_plan_is_refused_before_anything_is_written(
    tmp_path: Path, options: tuple[str, ...], says: str
) -> None:
    shutil.copy(ROOT / "environments" / "database" / "samples" / "select.jsonl", tmp_path / "own.jsonl")
    ended = exits(2, "run", *options, cwd=tmp_path)
    assert says in ended.stderr
    assert ended.stderr.count("Error:") == 1
    assert not (tmp_path / "runs").exists()


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    ended = exits(0, "run", "-m", "naive", "-e", "alfworld", "--limit", "3", "--dry-run", cwd=tmp_path)
    assert "naive x alfworld: 3 samples" in ended.stdout
    assert list(tmp_path.iterdir()) == []


def asked(folder: Path, answers: str) -> "subprocess.CompletedProcess[str]":
    return finished([*COMMAND, "init"], cwd=folder, env=environment(), input=answers, timeout=slowly(60))


def test_init_asks_three_questions_and_never_overwrites(tmp_path: Path) -> None:
    told = asked(tmp_path, "gpt-4.1-mini\nhttp://127.0.0.1:8000/v1\nkg, alfworld\n")
    assert told.returncode == 0, told.stderr
    plan = load_plan(tmp_path / "plan.yaml")
    (agent,) = plan.agents
    assert (agent.model, plan.endpoint_of(agent).base_url) == ("gpt-4.1-mini", "http://127.0.0.1:8000/v1")
    assert [task.name for task in plan.tasks] == ["kg", "alfworld"]
    before = (tmp_path / "plan.yaml").read_text()
    assert proctor("plan", "check", "plan.yaml", cwd=tmp_path).returncode == 0
    refused = exits(2, "init", "-m", "other", "-e", "kg", cwd=tmp_path)
    assert "plan.yaml: exists already" in refused.stderr
    assert (tmp_path / "plan.yaml").read_text() == before


def test_init_by_options_asks_nothing_and_without_answers_writes_nothing(tmp_path: Path) -> None:
    exits(0, "init", "mine.yaml", "-m", "naive", "-m", "naive", "-m", "yes", "-e", "db", cwd=tmp_path)
    plan = load_plan(tmp_path / "mine.yaml")
    assert [(agent.name, agent.builtin, agent.model) for agent in plan.agents] == [
        ("naive", "naive", None),
        ("naive-2", "naive", None),
        ("yes", None, "yes"),
    ]
    assert asked(tmp_path, "").returncode == 2
    assert not (tmp_path / "plan.yaml").exists()
