"""Commands of environments: found by entry point, with access to the trials of runs."""

from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from eval_client.cli.main import proctor
from eval_client.store.connection import connect, sqlite_url
from eval_client.store.records import Manifest, Trial
from eval_client.store.store import Store
from eval_client.store.tables import trial_table
from proctor import plugins
from proctor.plugins import FinishedTrial, OpenRun
from proctor.types import Finish, FinishReason


@click.group()
def toy() -> None:
    """Commands of a toy."""


@toy.command()
@click.argument("run")
@click.pass_obj
def scores(open_run: OpenRun, run: str) -> None:
    """Print the scores of RUN."""
    for trial in open_run(run):
        assert isinstance(trial, FinishedTrial)
        click.echo(f"{trial.run} {trial.agent} {trial.task} {trial.sample} {trial.epoch} {trial.finish.score}")


@pytest.fixture
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("toy", "tests.unit.proctor.test_plugins:toy", plugins.GROUP),
        EntryPoint("bare", "no_such_package.commands:bare", plugins.GROUP),
    ]

    def entry_points(group: str, name: str | None = None) -> Sequence[EntryPoint]:
        return [point for point in points if point.group == group and name in (None, point.name)]

    monkeypatch.setattr(plugins, "entry_points", entry_points)


@pytest.mark.usefixtures("_installed")
def test_a_command_of_an_environment_reads_the_finished_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "one").mkdir(parents=True)
    store = Store(connect(sqlite_url(tmp_path / "runs" / "one")), "one")
    trials = [Trial(id=number, agent="a", task="t", sample=f"s{number}", epoch=0) for number in range(2)]
    store.create(Manifest(version="1", plan_path="plan.yaml", plan={}, identity={}), trials)
    finish = Finish(reason=FinishReason.COMPLETED, score=0.5)
    with store.engine.begin() as connection:
        first = trial_table.update().where(trial_table.c.id == 0)
        connection.execute(first.values(reason=finish.reason, score=0.5, finish=finish.model_dump_json()))

    done = CliRunner().invoke(proctor, ["toy", "scores", "one"])

    assert (done.exit_code, done.output) == (0, "one a t s0 0 0.5\n")


@pytest.mark.usefixtures("_installed")
def test_a_run_that_is_missing_and_a_package_that_is_missing_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    no_run = CliRunner().invoke(proctor, ["toy", "scores", "two"])
    assert no_run.exit_code == 2
    assert "no run 'two'" in no_run.output

    no_package = CliRunner().invoke(proctor, ["bare"])
    assert no_package.exit_code != 0
    assert "pip install 'proctor[bare]'" in no_package.output


@pytest.mark.usefixtures("_installed")
def test_the_help_lists_them() -> None:
    output = CliRunner().invoke(proctor, ["--help"]).output
    assert "Commands of environments" in output
    assert "proctor toy --help" in output
