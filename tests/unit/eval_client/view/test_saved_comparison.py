"""`proctor compare --html`: one file with the comparison's figures, by the rules of the report."""

import json
import re
import shlex
from html import unescape
from pathlib import Path

import pytest
from click.testing import CliRunner

from eval_client.cli.results.compare import compare
from tests.unit.eval_client.report.compare.stored import stored_run
from tests.unit.eval_client.view.test_saved import LOADS
from tests.unit.eval_client.view.told import GRADES, HIDDEN, SAID, Page, told_run

ENVIRONMENTS = {"os": "os", "db": "db"}


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    told_run(tmp_path)
    stored_run(tmp_path, "limited", GRADES, environments=ENVIRONMENTS, plan={"limits": {"trial": {"turns": 3}}})
    stored_run(tmp_path, "plain", GRADES, environments=ENVIRONMENTS)
    return tmp_path


def written(runs: Path, *arguments: str, code: int = 0) -> tuple[str, str]:
    """The file, and what was printed."""
    file = runs / "c.html"
    told = CliRunner().invoke(compare, [*arguments, "--output", str(runs), "--html", str(file)], catch_exceptions=False)
    assert told.exit_code == code, told.output
    return file.read_text(encoding="utf-8"), told.output


@pytest.mark.parametrize("arguments", [["told:gpt", "told:naive"], ["told"], ["told", "--against", "gpt"]])
def test_it_has_the_figures_of_the_json_and_nothing_that_must_not_be_published(
    runs: Path, arguments: list[str]
) -> None:
    text, output = written(runs, *arguments, "--json")
    found = json.loads(output)
    page = Page(text)
    assert not {tag for tag, _ in page.elements} & LOADS
    assert set(re.findall(r"\w+://[^\s\"<]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'; style-src 'sha256-" in text
    assert not [hidden for hidden in (*HIDDEN, *SAID, "canary-sample", str(runs)) if hidden in text]
    comparisons = found.get("comparisons", [found])
    rows = [rows[1:] for name, rows in page.tables if " less " in name and rows and rows[0][:2] == ["task", "n"]]
    differences = [[row[4] for row in table] for table in rows]
    assert differences == [[f"{task['difference']:+.3f}" for task in each["tasks"]] for each in comparisons]
    assert ("Which agents differ" in text) == bool(found.get("letters"))


def test_the_same_comparison_gives_the_same_bytes_and_names_the_command_that_makes_it(runs: Path) -> None:
    options = ["--task", "db", "--alpha", "0.1", "--pass-at", "0.5", "--across", "limits"]
    text, output = written(runs, "plain:gpt@db", "limited:naive@db", *options[2:])
    assert "NOT ALIKE" in output
    named = re.search(r"made by <code>(.*?)</code>", text)
    assert named is not None
    program, name, *arguments = shlex.split(unescape(named[1]))
    assert (program, name, arguments[:2]) == ("proctor", "compare", ["plain:gpt@db", "limited:naive@db"])
    assert written(runs, *arguments[: arguments.index("--html")])[0] == text
    assert "NOT ALIKE: limits.trial.turns: None -> 3" in Page(text).text


def test_a_gate_that_fails_is_in_the_file_and_still_decides_the_exit_code(runs: Path) -> None:
    text, output = written(runs, "plain:gpt", "plain:naive", "--fail-unless-as-good", "0.1", code=1)
    assert "FAILED --fail-unless-as-good" in output
    assert "FAILED --fail-unless-as-good 0.1: os" in text


def test_a_file_that_cannot_be_written_is_refused(runs: Path) -> None:
    arguments = ["plain:gpt", "plain:naive", "--output", str(runs), "--html", str(runs / "no" / "c.html")]
    told = CliRunner().invoke(compare, arguments)
    assert told.exit_code == 2
    assert "name a file in a folder that can be written" in told.output
