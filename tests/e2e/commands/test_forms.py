"""The papers' tables and files of simulbench and stss: forms of `proctor report` and `proctor export`."""

import json
from pathlib import Path

import pytest

from tests.e2e.proctor import proctor

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
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("forms")
    (made / "plan.yaml").write_text(PLAN)
    assert proctor("run", "plan.yaml", "--name", "r", "--limit", "2", "-q", cwd=made).returncode == 0
    return made


def test_tables_of_the_papers(folder: Path) -> None:
    (ratings,) = json.loads(proctor("report", "r", "--form", "simulbench", "--format", "json", cwd=folder).stdout)[
        "tables"
    ]
    assert ratings["title"] == "SimulBench: ratings (table 4)"
    assert [row["Model"] for row in ratings["rows"]] == ["reference", "naive"]
    shown = proctor("report", "r", "--form", "stss", cwd=folder).stdout
    assert "STSS: action level (table 4)" in shown
    assert "language level" not in shown, "no trial is of that level"


@pytest.mark.parametrize("form", FORMS)
def test_files_of_the_papers(folder: Path, form: str) -> None:
    told, place = FORMS[form]
    done = proctor("export", "r", "--as", *form.split(), cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert told in done.stdout
    assert (folder / "runs" / "r" / place).exists()


@pytest.mark.parametrize("command", REFUSED)
def test_what_cant_be_made_is_one_error(folder: Path, command: str) -> None:
    done = proctor(*command.split(), cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert REFUSED[command] in done.stderr
    assert done.stderr.count("Error: ") == 1
