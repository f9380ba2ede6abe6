"""A number has one meaning: where two commands show different ones, both say which they are."""

import json
from pathlib import Path

from tests.e2e.proctor import exits, proctor

PLAN = """\
agents: [{name: reference, builtin: reference}, {name: naive, builtin: naive}]
tasks:
  - {name: rated, environment: simulbench}
  - {name: puzzles, environment: ltp}
limits: {trial: {turns: 6}}
"""


def test_status_and_report_name_their_numbers_and_show_both_where_they_differ(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    exits(0, "run", "plan.yaml", "--name", "r", "--limit", "4", cwd=tmp_path)
    told = json.loads(proctor("report", "r", "--json", cwd=tmp_path).stdout)
    (reference,) = (pair for pair in told["pairs"] if (pair["agent"], pair["task"]) == ("reference", "rated"))
    assert reference["value"] != reference["mean_score"]
    status = proctor("status", "r", cwd=tmp_path).stdout
    line = (
        f"reference x rated: 4/4 scored, mean score {reference['mean_score']:.3f}; rules_mean {reference['value']:.3f}"
    )
    assert line in status
    report = proctor("report", "r", cwd=tmp_path).stdout
    assert f"Mean scores, which are not rules_mean: reference {reference['mean_score']:.3f}" in report
    assert "which are not game_progress" not in report
    rows = json.loads(proctor("status", "r", "--json", cwd=tmp_path).stdout)["pairs"]
    assert [
        (row["primary"], row["value"]) for row in rows if row["task"] == "rated" and row["agent"] == "reference"
    ] == [("rules_mean", reference["value"])]
