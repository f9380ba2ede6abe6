"""The public dev data of every task in the AgentBench plan, through processes of their own for every server."""

import json
from pathlib import Path

import pytest

from tests.e2e.proctor import exits, proctor, server
from tests.support import ROOT

pytestmark = [pytest.mark.shared, pytest.mark.docker, pytest.mark.mariadb]
PLAN = str(ROOT / "examples" / "agentbench-dev.yaml")
KEY = {"OPENAI_API_KEY": "token-of-the-tests"}
AGENTS = ("reference", "naive", "random")
TASKS = {
    "os-dev": (26, 25 / 26, 0.3),
    "db-dev": (60, 1.0, 0.3),
    "ltp-dev": (40, 1.0, 0.3),
    "kg-dev": (20, 1.0, 0.4),
    "card-dev": (12, 1.0, 1.0),
    "alfworld-dev": (20, 1.0, 0.4),
    "mind2web-own": (60, 100 * 55 / 60, 30.0),
    "webshop-own": (60, 1.0, 0.8),
}
"""task -> its samples, what the reference reaches on them, and what naive and random stay below"""


def test_reference_reaches_the_published_figures(tmp_path: Path) -> None:
    """Runs that are killed are tests/faults/test_environments.py."""
    with (
        server("agents", f"--tasks={PLAN}", cwd=tmp_path) as agents,
        server("controller", cwd=tmp_path) as controller,
        server("worker", f"--tasks={PLAN}", f"--controller={controller.url}", cwd=tmp_path),
    ):
        options = [f"--set=controller={controller.url}"]
        for name in AGENTS:
            options += [f"--set=agents.{name}.endpoint={agents.url}", f"--set=agents.{name}.concurrency=2"]
        exits(0, "run", PLAN, "--name", "whole", "-q", *options, cwd=tmp_path, **KEY)
    report = json.loads(proctor("report", "whole", "--json", cwd=tmp_path).stdout)
    pairs = {(pair["agent"], pair["task"]): pair for pair in report["pairs"]}
    assert {key: (pair["planned"], pair["scored"]) for key, pair in pairs.items()} == {
        (agent, task): (count, count) for agent in AGENTS for task, (count, _, _) in TASKS.items()
    }
    for task, (_, reached, floor) in TASKS.items():
        assert pairs["reference", task]["value"] == pytest.approx(reached)
        assert all(pairs[agent, task]["value"] < floor for agent in ("naive", "random"))
