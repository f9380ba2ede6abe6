"""A run with several judges: what report and compare show of their agreement, and what a re-score asks."""

import json
from pathlib import Path
from typing import Any

import pytest

from eval_client.core.statistics.agreement import alpha
from tests.e2e.proctor import exits, proctor, rows
from tests.scripted_model import Reply, ScriptedModel
from tests.support import serving
from tests.unit.eval_client.report.test_exports import rows as lines

JUDGES = {"a": "Rating: [[3]]", "b": "Rating: [[8]]", "c": "Rating: [[8]]"}
PLAN = """\
agents: [{{name: reference, builtin: reference}}, {{name: naive, builtin: naive}}]
tasks:
  - name: sim
    environment: simulbench
    parameters:
      judges: [{{model: a, base_url: "{url}"}}, {{model: b, base_url: "{url}"}}, {{model: c, base_url: "{url}"}}]
limits: {{attempts: 1}}
"""


def answer(request: dict[str, Any]) -> Reply:
    """Judge c changes its mind with the length of what it is asked."""
    text = request["messages"][-1]["content"]
    return "Rating: [[5]]" if request["model"] == "c" and len(text) % 2 else JUDGES[request["model"]]


def test_report_compare_and_rescore_show_how_far_the_judges_agree(tmp_path: Path) -> None:
    key = {"OPENAI_API_KEY": "token-of-the-tests"}
    with ScriptedModel(answer) as server, serving(server):
        (tmp_path / "plan.yaml").write_text(PLAN.format(url=server.url))
        exits(
            0,
            "run",
            "plan.yaml",
            "--name",
            "r",
            "-q",
            "--limit=4",
            cwd=tmp_path,
            XDG_CACHE_HOME=str(tmp_path / "c"),
            **key,
        )
        scored = rows("r", tmp_path)
        bought = len(server.answered)
        elsewhere = {"XDG_CACHE_HOME": str(tmp_path / "d"), **key}
        exits(0, "rescore", "r", "--name", "again", cwd=tmp_path, **elsewhere)
        assert (rows("again", tmp_path), len(server.answered)) == (scored, bought), "all three are known"
    exits(0, "export", "r", "--what", "replies", "--to", "replies.jsonl", cwd=tmp_path)
    said = {(reply["trial"], reply["model"]): reply["text"] for reply in lines(tmp_path / "replies.jsonl")}
    told = {pair["agent"]: pair for pair in json.loads(proctor("report", "r", "--json", cwd=tmp_path).stdout)["pairs"]}
    for agent, pair in told.items():
        mine = [row for row in scored if row["agent"] == agent]
        ratings = [[float(said[row["id"], judge][10]) for judge in JUDGES] for row in mine]
        assert [row["score"] for row in mine] == [pytest.approx((sorted(of)[1] - 1) / 9) for of in ratings]
        (found,) = pair["agreement"]
        assert found["judges"] == ["a", "b", "c"]
        assert (found["judged"], found["exact"]) == (4, 0.0)
        assert found["alpha"] == pytest.approx(alpha(ratings, "interval"))
        assert found["means"] == [pytest.approx(sum(column) / 4) for column in zip(*ratings, strict=True)]
    shown = exits(0, "report", "r", cwd=tmp_path).stdout
    assert "agreement of the tasks' judges" in shown
    assert f"{told['naive']['agreement'][0]['alpha']:.3f}" in shown
    compared = exits(0, "compare", "r:reference", "r:naive", cwd=tmp_path).stdout
    assert "sim: the judges of A: exact match 0 of 4, alpha" in " ".join(compared.split())
    assert "sim: the judges of B: exact match 0 of 4, alpha" in " ".join(compared.split())
