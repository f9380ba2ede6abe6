"""`proctor report --html`, as a user calls it."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from eval_client.cli.results.report import report
from tests.unit.eval_client.report.compare.stored import stored_run


def test_it_writes_one_run_to_a_file(tmp_path: Path) -> None:
    stored_run(tmp_path, "r", {"gpt": {"t": [1.0, 0.0]}})
    file = tmp_path / "report.html"
    given = ["r", "--output", str(tmp_path), "--html", str(file), "--title", "Ours", "--samples", "--trials", "1, 0"]
    told = CliRunner().invoke(report, given, catch_exceptions=False)
    assert (told.exit_code, told.output) == (0, f"report: {file}\n")
    text = file.read_text(encoding="utf-8")
    assert "<title>Ours</title>" in text
    assert text.index('id="trial-1"') < text.index('id="trial-0"')


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["r", "--samples"], "add --html FILE"),
        (["r", "--html", "f.html", "--trials", "1,x"], "'x' is no trial's id"),
        (["r", "--html", "f.html", "--trials", "7"], "has no trial 7; its trials are 0 to 0"),
        (["r", "s", "--html", "f.html"], "a file holds one run, and 2 are named"),
        (["r", "--html", "f.html", "--json"], "--html, --format and --json exclude each other"),
        (["r", "--html", "no/such/f.html"], "no/such/f.html"),
    ],
)
def test_what_it_cannot_do_it_says_with_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str], message: str
) -> None:
    for name in ("r", "s"):
        stored_run(tmp_path, name, {"gpt": {"t": [1.0]}})
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(report, [*given, "--output", str(tmp_path)])
    assert told.exit_code == 2
    assert message in told.output
    assert not (tmp_path / "f.html").exists()
