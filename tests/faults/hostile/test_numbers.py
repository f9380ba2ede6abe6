"""A world whose metric is no number: the trial is a fault that names sample and metric; the run ends and goes on."""

import os
from pathlib import Path

import pytest

from tests.e2e.proctor import exits, proctor, rows
from tests.support import ROOT

WORLD = """\
from proctor import Action, Environment, Finish, FinishReason, Message, Observation

class Odd(Environment):
    def samples(self):
        return ["a", "b", "c"]

    async def play(self, sample, agent, seed=0):
        await agent.act(Observation(messages=(Message(role="user", content="say 1"),)))
        value = {value} if sample == "b" else 0.5
        return Finish(reason=FinishReason.COMPLETED, score=1.0, metrics={{"mean_error": value}})

    def naive(self, sample, seed=0):
        return lambda conversation, messages: Action(content="1")
"""


@pytest.mark.parametrize("value", ['float("nan")', 'float("inf")', '-float("inf")', '"high"', "None"])
def test_a_metric_that_is_no_number_is_a_fault_of_its_trial_alone(value: str, tmp_path: Path) -> None:
    info = tmp_path / "odd_world-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-world\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[proctor.environments]\nodd = odd_world:Odd\n")
    (tmp_path / "odd_world.py").write_text(WORLD.format(value=value))
    there = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}

    checked = exits(1, "check", "odd", cwd=tmp_path, **there)
    assert "mean_error" in checked.stdout
    assert "b" in checked.stdout

    (tmp_path / "plan.yaml").write_text(
        "agents: [{name: naive, builtin: naive}]\ntasks: [{name: odd, environment: odd}]\n"
    )
    for command in (("run", "plan.yaml", "--name", "r"), ("resume", "r")):
        exits(1, *command, cwd=tmp_path, **there)
        found = {str(row["sample"]): (row["score"], str(row["cause"])) for row in rows("r", tmp_path)}
        assert (found["a"][0], found["c"][0], found["b"][0]) == (1.0, 1.0, None)
        assert "mean_error" in found["b"][1]
    assert proctor("report", "r", cwd=tmp_path, **there).returncode == 0
