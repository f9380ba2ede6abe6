"""The plan over all ten environments, every server a process: the reference solves them, the others do not."""

import json
from pathlib import Path

import pytest

from eval_client.plan.load import load_plan
from proctor import registry
from tests.e2e.proctor import exits, proctor
from tests.support import ROOT

PLAN = ROOT / "examples" / "all.yaml"
REACHED = {"mind2web": 0.8, "stss": 0.9}
"""task -> what the reference reaches at least, where it is not everything"""
GUESSED = {"os": 0.3}
"""task -> what naive stays below, though it solves some"""
SCALE = {"mind2web": 100.0, "simulbench": 10.0}
"""task -> the highest value of its primary metric, where that is not 1"""


def test_the_plan_names_every_environment_of_ours() -> None:
    assert {task.name for task in load_plan(PLAN).definitions()} == set(registry.names())


@pytest.mark.docker
@pytest.mark.mariadb
def test_every_environment_is_played_whole_and_told_apart(tmp_path: Path) -> None:
    exits(0, "run", str(PLAN), "--name", "all", "-q", cwd=tmp_path)
    report = json.loads(proctor("report", "all", "--json", cwd=tmp_path).stdout)
    values = {(pair["agent"], pair["task"]): pair["value"] / SCALE.get(pair["task"], 1.0) for pair in report["pairs"]}
    assert all(pair["scored"] == pair["planned"] > 0 for pair in report["pairs"])
    tasks = [task.name for task in load_plan(PLAN).definitions()]
    for task in tasks:
        reference, naive, chance = (values[agent, task] for agent in ("reference", "naive", "random"))
        assert reference >= REACHED.get(task, 0.999), (task, reference)
        assert max(naive, chance) < reference, (task, reference, naive, chance)
        assert task not in GUESSED or 0 < naive < GUESSED[task], (task, naive)
