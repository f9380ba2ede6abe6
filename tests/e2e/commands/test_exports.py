"""What `proctor export` and the papers' forms write and refuse."""

import json
from pathlib import Path

import pytest

from tests.e2e.proctor import proctor
from tests.exported_run import RUN, write_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("export")
    write_run(made / "runs").engine.dispose()
    (made / "file").write_text("")
    return made


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--as inspect --what turns", "--what is for jsonl, csv, parquet; inspect holds whole trials"),
        ("--as jsonl --min-score 0.5", "--min-score is for --as sft, not for jsonl"),
        ("--as atif --scores-only", "--scores-only is for --as every-eval-ever, not for atif"),
        ("--as every-eval-ever --developer eve Eve", "--developer eve: no such model has a score; there are: bob"),
        ("--as atif --reason completed", "--reason is for --as sft, not for atif"),
        ("--as inspect --arguments object", "--arguments is for --as sft, not for inspect"),
        ("--as atif --to file", "--to file: a file; atif writes several, name a folder"),
        ("--as sft --to runs", "--to runs: a folder; sft is one file, name that"),
        ("--as jsonl --to runs", "--to runs: a folder; jsonl is one file, name that"),
        ("--as sft --arguments object --to x.parquet", "--arguments object: a column of Parquet has one type"),
        ("--as sft --min-score 2", "2.0 is not in the range 0<=x<=1"),
        ("--as sft --reason won", "'won' is not one of 'completed'"),
        ("--as eval", "'eval' is not one of 'jsonl'"),
        ("--as sft --to no/where.jsonl", "no/where.jsonl: can't be written: No such file or directory; choose"),
        ("--as atif --to file/in", "file/in: can't be made: Not a directory; choose another place with --to"),
    ],
)
def test_an_option_that_does_not_fit_is_one_error(folder: Path, options: str, words: str) -> None:
    done = proctor("export", *options.split(), cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = [line for line in done.stderr.splitlines() if words in line]
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["file", "runs"], line


def test_each_format_says_what_it_wrote_into_the_runs_folder(folder: Path) -> None:
    for form, words in (
        ("inspect", "48 trials in 4 files: runs/made/inspect"),
        ("atif", "48 trials in 88 files: runs/made/atif"),
        ("sft", "64 conversations: runs/made/sft.jsonl"),
        ("every-eval-ever", "4 records: runs/made/every-eval-ever"),
        ("jsonl", "56 trials: runs/made/trials.jsonl"),
    ):
        done = proctor("export", RUN, "--as", form, cwd=folder)
        assert (done.returncode, done.stdout.strip(), done.stderr) == (0, words, "")
    assert {path.name for path in (folder / "runs" / RUN).iterdir()} >= {"inspect", "atif", "sft.jsonl"}
    assert json.loads((folder / "runs" / RUN / "atif" / "0" / "main" / "trajectory.json").read_text())["steps"]


PLAN = """\
agents: [{name: reference, builtin: reference}, {name: naive, builtin: naive}]
tasks:
  - {name: script, environment: simulbench, parameters: {mode: script}}
  - {name: live, environment: simulbench, parameters: {mode: live}}
  - {name: days, environment: stss}
"""
FORMS = {
    "simulbench-dialogues": ("4 dialogues", "dialogues.jsonl"),
    "simulbench-pairs --agent reference --candidate-agent naive": ("2 pairs", "pairs.jsonl"),
    "stss-files": ("4 trials", "stss-days"),
    "stss-scenarios": ("scenarios of 2 tasks", "scenarios.json"),
}
REFUSED = {
    "report r --form simulbench --task days": "r: no finished trial that --form simulbench takes",
    "report r --form stss --task town": "--task town: no such task; the runs have: script, live, days",
    "export r --as stss-files --agent naive": "--agent is for --as simulbench-dialogues, not for stss-files",
    "export r --as simulbench-pairs --agent naive --candidate none": "no run 'none'",
    "simulbench table r": "`proctor report --form simulbench`",
    "stss files r": "`proctor export RUN --as stss-files`",
}


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("forms")
    (made / "plan.yaml").write_text(PLAN)
    assert proctor("run", "plan.yaml", "--name", "r", "--limit", "2", "-q", cwd=made).returncode == 0
    return made


def test_tables_of_the_papers(forms: Path) -> None:
    (ratings,) = json.loads(proctor("report", "r", "--form", "simulbench", "--format", "json", cwd=forms).stdout)[
        "tables"
    ]
    assert ratings["title"] == "SimulBench: ratings (table 4)"
    assert [row["Model"] for row in ratings["rows"]] == ["reference", "naive"]
    shown = proctor("report", "r", "--form", "stss", cwd=forms).stdout
    assert "STSS: action level (table 4)" in shown
    assert "language level" not in shown, "no trial is of that level"


@pytest.mark.parametrize("form", FORMS)
def test_files_of_the_papers(forms: Path, form: str) -> None:
    told, place = FORMS[form]
    done = proctor("export", "r", "--as", *form.split(), cwd=forms)
    assert (done.returncode, done.stderr) == (0, "")
    assert told in done.stdout
    assert (forms / "runs" / "r" / place).exists()


@pytest.mark.parametrize("command", REFUSED)
def test_what_cant_be_made_is_one_error(forms: Path, command: str) -> None:
    done = proctor(*command.split(), cwd=forms)
    assert (done.returncode, done.stdout) == (2, "")
    assert REFUSED[command] in done.stderr
    assert done.stderr.count("Error: ") == 1
