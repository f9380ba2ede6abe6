"""Runs stand in one report only where their trials were shaped alike."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from eval_client.cli.main import proctor
from eval_client.store.connection import connect, sqlite_url
from eval_client.store.records import Manifest, Trial
from eval_client.store.store import Store


def run(folder: Path, name: str, *, seed: int = 0, digest: str = "d") -> str:
    (folder / name).mkdir()
    plan = {"seed": seed, "agents": [{"name": "a", "builtin": "naive"}], "tasks": [{"name": "t", "environment": "os"}]}
    tasks = {"t": {"environment": "os", "digest": digest, "samples": 1}}
    manifest = {"version": "1", "plan_path": "p", "plan": plan, "identity": {}, "tasks": tasks}
    trial = Trial(id=0, agent="a", task="t", sample="s", epoch=0)
    Store(connect(sqlite_url(folder / name)), name).create(Manifest.model_validate(manifest), [trial])
    return str(folder / name)


@pytest.mark.parametrize("options", [(), ("--form", "agentbench")])
def test_unlike_runs_are_refused_with_each_difference(options: tuple[str, ...], tmp_path: Path) -> None:
    runs = run(tmp_path, "one"), run(tmp_path, "two", seed=1, digest="e")
    done = CliRunner().invoke(proctor, ["report", *options, *runs])
    assert done.exit_code == 2
    assert "t of one, t of two: seed: 0 and 1" in done.output
    assert "digest: d and e" in done.output


def test_alike_runs_stand_in_one_report(tmp_path: Path) -> None:
    runs = [run(tmp_path, "one"), run(tmp_path, "two")]
    done = CliRunner().invoke(proctor, ["report", *runs])
    assert done.exit_code == 0
    assert [line.split()[:2] for line in done.output.splitlines()[3:5]] == [["a", "one"], ["a", "two"]]
