"""What a run leaves out is said, and never counts as missing."""

import json
from pathlib import Path

import pytest

from tests.e2e.proctor import exits, proctor, rows

PLAN = """\
name: filtered
agents: [{name: naive, builtin: naive}, {name: random, builtin: random}, {name: gpt, model: gpt-4.1-mini}]
tasks:
  - {name: tables, environment: db, parameters: {engine: sqlite}}
  - {name: shell, environment: os, data: nowhere.json}
  - {name: puzzles, environment: ltp}
limits: {trial: {turns: 2}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plan.yaml").write_text(PLAN)
    return tmp_path


def samples(run: str, folder: Path) -> dict[str, set[str]]:
    """task -> the samples of its trials"""
    assert proctor("export", run, "--to", f"{run}.jsonl", cwd=folder).returncode == 0
    found: dict[str, set[str]] = {}
    for row in map(json.loads, (folder / f"{run}.jsonl").read_text().splitlines()):
        found.setdefault(row["task"], set()).add(row["sample"])
    return found


def test_agents_tasks_and_samples_are_chosen_and_a_resume_keeps_the_choice(folder: Path) -> None:
    chosen = ("--agent", "nai*", "--agent", "random", "--task", "tables", "--task", "puzzles")
    which = ("--sample", "tables/*", "--sample", "puzzles/english-*", "--exclude", "puzzles/*1", "--limit", "3")
    exits(0, "run", "plan.yaml", *chosen, *which, "--name", "r", cwd=folder)
    found = samples("r", folder)
    assert {task: len(ids) for task, ids in found.items()} == {"tables": 3, "puzzles": 3}
    assert all(sample.startswith("english-") and not sample.endswith("1") for sample in found["puzzles"])
    report = proctor("report", "r", cwd=folder).stdout
    assert "r: agents of the plan left out by --agent or --task: gpt" in report
    assert "r: tasks of the plan left out by --agent or --task: shell" in report
    assert "Samples: 3 of 20 samples are played, chosen by --limit: 1 x INSERT, 1 x SELECT, 1 x UPDATE." in report
    assert "3 of 12 samples are played, chosen by --sample and --exclude and --limit: 3 x en." in report
    told = json.loads(proctor("report", "r", "--json", cwd=folder).stdout)
    assert [(pair["scored"], pair["planned"]) for pair in told["pairs"]] == [(3, 3)] * 4
    before = rows("r", folder)
    exits(0, "resume", "r", cwd=folder)
    assert rows("r", folder) == before
    assert proctor("report", "r", "--html", "r.html", cwd=folder).returncode == 0
    page = (folder / "r.html").read_text()
    assert "tasks of the plan left out by --agent or --task: shell" in page
    assert "3 of 20 samples are played" in page


def test_a_plan_chooses_samples_and_a_resume_refuses_another_choice(folder: Path) -> None:
    plan = PLAN.replace("tasks:", "assignments: [{agents: [naive], tasks: [tables]}]\ntasks:").replace(
        "data: nowhere.json", ""
    )
    text = plan.replace(
        "{engine: sqlite}}", "{engine: sqlite}, samples: {exclude: ['*-00000'], limit: 4, shuffle_seed: 7}}"
    )
    (folder / "plan.yaml").write_text(text)
    played = ("run", "plan.yaml", "--task", "tables", "--agent", "naive")
    for name in ("one", "two"):
        exits(0, *played, "--name", name, cwd=folder)
    assert samples("one", folder) == samples("two", folder)
    assert len(samples("one", folder)["tables"]) == 4
    (folder / "plan.yaml").write_text(text.replace("limit: 4", "limit: 5"))
    refused = exits(2, "resume", "one", cwd=folder)
    assert "samples.tables.limit: 4 -> 5" in refused.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--task", "tabels"), "--task tabels: matches nothing; there are tables"),
        (("--task", "tables", "--agent", "gpt-*"), "--agent gpt-*: matches nothing"),
        (("--task", "puzzles", "--agent", "naive", "--sample", "fr-*"), "--sample fr-*: matches nothing; there are"),
        (("--task", "puzzles", "--agent", "naive", "--exclude", "*"), "no sample is left to play"),
        (
            ("--task", "puzzles", "--agent", "naive", "--set", "tasks.puzzles.samples.include=[nothing]"),
            "tasks.puzzles.samples.include.0: 'nothing' matches nothing; there are",
        ),
    ],
)
def test_a_pattern_that_chooses_nothing_is_refused_with_what_there_is(
    folder: Path, options: tuple[str, ...], says: str
) -> None:
    for more in ((), ("--dry-run",)):
        ended = exits(2, "run", "plan.yaml", *options, "--name", "r", *more, cwd=folder)
        assert says in ended.stderr
        assert ended.stderr.count("Error:") == 1
        assert not (folder / "runs").exists()


def test_a_dry_run_counts_what_was_chosen(folder: Path) -> None:
    run = exits(0, "run", "plan.yaml", "--task", "tables", "--agent", "naive", "--limit", "6", "--dry-run", cwd=folder)
    assert "tasks of the plan left out by --agent or --task: shell, puzzles" in run.stdout
    assert "naive x tables: 6 samples x 1 epoch, at most 2 turns each" in run.stdout
    assert "tables: 6 of 20 samples are played, chosen by --limit: 2 x INSERT, 3 x SELECT, 1 x UPDATE" in run.stdout
