"""What a user of the first hour meets, through the installed command; a test for each item of it."""

import json
import os
import pty
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.commands.terminal import Terminal
from tests.e2e.installed.conftest import Installed, User
from tests.e2e.scripted import ScriptedEndpoint, reply

CARDS = "agents: [{name: naive, builtin: naive}]\ntasks: [{name: cards, environment: card_game}]\n"
DB = "tasks: [{name: db, environment: db, parameters: {engine: sqlite}}]\n"
WRONG_MODEL = "/chat/completions: Invalid model name passed in model=modle."


@pytest.fixture(scope="module")
def played_once(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the run `r`: three samples of `db` by the naive agent."""
    folder = tmp_path_factory.mktemp("played")
    (folder / "plan.yaml").write_text("agents: [{name: naive, builtin: naive}]\n" + DB)
    User(installed, folder).types("proctor run plan.yaml --limit 3 --name r --tag first")
    return folder


@pytest.fixture
def played(user: User, played_once: Path) -> User:
    """A user who has played the run `r`."""
    shutil.copytree(played_once, user.folder, dirs_exist_ok=True)
    return user


def test_1_a_run_needs_no_plan_and_keeps_the_one_it_made(user: User) -> None:
    compat = "--set tasks.card_game.parameters.profile=compat"
    command = f"proctor run -m naive -e card_game --limit 1 --epochs 2 {compat} --name r"
    told = user.types(command, started=True)
    assert "proctor resume runs/r" in told
    assert "# Made by" in (user.folder / "runs" / "r" / "plan.yaml").read_text()
    assert "2/2" in user.types("proctor status r")


def test_2_samples_are_chosen_and_played_again(played: User) -> None:
    told = played.types("proctor resume r --retry 'sample=select-*'")
    assert "1 trials are played again; 1 of them have a score" in told
    assert "1 trials of naive had a score and were played again" in told
    told = played.types("proctor run plan.yaml --sample 'db/select-*' --exclude '*-00001' --dry-run")
    assert "chosen by --sample and --exclude" in told


def test_3_a_dry_run_estimates_calls_tokens_and_money(user: User) -> None:
    (user.folder / "plan.yaml").write_text(f"agents: [{{name: gpt-4.1-mini}}]\n{DB}price_list: shipped\n")
    told = user.types("proctor run plan.yaml --dry-run")
    assert "total: 20 calls, 5,920 tokens in, 300 out, money 0.00" in told
    assert "Proctor's list of " in told


def test_4_what_is_missing_is_said_before_the_start_with_its_fix(user: User) -> None:
    (user.folder / "plan.yaml").write_text(CARDS.replace("cards, environment: card_game", "os, environment: os"))
    (line,) = [line for line in user.types("proctor run plan.yaml --dry-run").splitlines() if "problem:" in line]
    assert "task os" in line
    assert "; fix: " in line


def test_5_the_start_is_said_on_a_terminal(user: User) -> None:
    (user.folder / "plan.yaml").write_text(CARDS)
    ours, theirs = pty.openpty()
    command = [str(user.installed.venv / "bin" / "proctor"), "run", "plan.yaml", "--limit", "1"]
    with subprocess.Popen(
        command, cwd=user.folder, env=user.installed.environment(), stdin=theirs, stdout=theirs, stderr=theirs
    ):
        os.close(theirs)
        terminal = Terminal(ours)
        assert terminal.until("starting ...").startswith("proctor run: starting ...")
        terminal.until("starting 1 worker, an agent server ...")
        terminal.until("run: runs/")
    os.close(ours)


def test_6_an_endpoint_that_refuses_in_a_proxys_words_stops_its_agent(user: User, endpoint: ScriptedEndpoint) -> None:
    refusal = {"error": {"message": WRONG_MODEL, "type": None, "param": None, "code": "400"}}
    endpoint.always = reply(400, json.dumps(refusal).encode())
    (user.folder / "plan.yaml").write_text(f"agents: [{{name: modle, endpoint: '{endpoint.url}'}}]\n{DB}")
    assert WRONG_MODEL.rstrip(".") in user.types("proctor run plan.yaml", code=2)


@pytest.mark.parametrize(
    ("wrong", "line", "text"),
    [
        (CARDS.replace("builtin", "bultin"), 1, "builtin"),
        (CARDS.replace("card_game", "card_gam"), 2, "did you mean card_game?"),
        (CARDS + "limits: {attempts: yes}\n", 3, "limits.attempts"),
    ],
)
def test_7_a_wrong_plan_gets_one_message_with_its_line(user: User, wrong: str, line: int, text: str) -> None:
    (user.folder / "plan.yaml").write_text(wrong)
    told = user.types("proctor plan check plan.yaml", code=2)
    assert told.count("Error") == 1
    assert f"plan.yaml:{line}: " in told
    assert text in told


def test_8_status_and_report_name_their_numbers(played: User) -> None:
    assert "overall_cat_accuracy" in played.types("proctor report r")
    assert "overall_cat_accuracy" in played.types("proctor status r")


def test_9_folders_of_the_working_directory_are_not_imported(user: User) -> None:
    for name in ("environments", "proctor"):
        (user.folder / name).mkdir()
        (user.folder / name / "__init__.py").write_text("raise SystemExit('imported from the working directory')\n")
    assert "card_game" in user.types("proctor envs", started=True)


def test_10_a_person_plays(user: User) -> None:
    told = user.types("proctor play db insert-00001 -T engine=sqlite", answers='Action: Answer\nFinal Answer: ["x"]\n')
    assert "score 0.000  completed" in told


def test_11_answers_are_scored_again(played: User) -> None:
    told = played.types("proctor rescore r --set tasks.db.parameters.profile=strict --name again")
    assert "naive x db: 0 scores changed" in told
    assert "re-scored from r" in played.types("proctor ls")


def test_12_runs_are_listed_by_tag_stopped_and_removed(played: User) -> None:
    assert "begin with `proctor demo`" in played.types("proctor ls -o empty")
    assert "r: finished" in played.types("proctor ls --tag first")
    assert "r is not being played" in played.types("proctor stop r", code=0)
    assert "complete" in played.types("proctor completion bash")
    assert "no run is that old" in played.types("proctor rm --older-than 30d")
    played.types("proctor rm r --yes")
    assert not Path(played.folder, "runs", "r").exists()


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_13_the_demo_ends_in_a_matrix_that_fits_the_terminal(user: User, columns: int) -> None:
    told = user.types("proctor demo --limit 1 -q", COLUMNS=str(columns)).splitlines()
    head = next(number for number, line in enumerate(told) if line.split()[:2] == ["task", "metric"])
    assert told[head].split()[2:] == ["reference", "naive", "random"]
    rows = told[head + 2 : told.index("", head)]
    for row in rows:
        task, _, *scores = row.split()
        assert [score for score in scores if not score.startswith("±")], f"{task} has no score"
    assert {row.split()[0] for row in rows} >= {"alfworld", "card_game", "kg", "ltp", "mind2web", "stss", "webshop"}
    assert max(len(line) for line in told[head : head + 2 + len(rows)]) <= columns
    assert "trials scored" in told[told.index("", head) + 1]
    for command in ("report", "show", "view"):
        assert any(f"proctor {command} runs/demo-" in line for line in told), command


def trials(user: User, run: str) -> list[dict[str, object]]:
    """The trials of a run, as it exports them."""
    user.types(f"proctor export {run} --to exported.jsonl")
    return [json.loads(line) for line in (user.folder / "exported.jsonl").read_text().splitlines()]
