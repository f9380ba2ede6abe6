"""`proctor stss ...` with wrong arguments: one message, exit code 2."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from environments.stss.commands import stss
from environments.stss.environment import Stss
from proctor.plugins import FinishedTrial
from proctor.session.play import PolicyAgent

SAMPLE = "fernmouth_birthday"


@pytest.fixture(scope="module")
def trial() -> FinishedTrial:
    environment = Stss()
    finish = asyncio.run(environment.play(SAMPLE, PolicyAgent(environment.reference(SAMPLE))))
    return FinishedTrial(run="one", agent="a", task="town", sample=SAMPLE, epoch=0, finish=finish)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "damaged", "told"),
    [
        (["files", "one", "--to", "file/days"], False, "--to: file/days"),
        (["scenarios", "one", "--to", "file/frozen.json"], False, "--to: file/frozen.json"),
        (["scenarios", "one", "--to", "frozen.json", "--task", "city"], False, "no trial of the task 'city'"),
        (["files", "one"], True, f"a-town-{SAMPLE}-0: the stored days of its finish are damaged"),
    ],
)
def test_what_cannot_be_done_is_told_once(
    here: Path, trial: FinishedTrial, arguments: list[str], damaged: bool, told: str
) -> None:
    detail = trial.finish.detail | ({"evidence": "damaged"} if damaged else {})
    given = trial.model_copy(update={"finish": trial.finish.model_copy(update={"detail": detail})})

    def open_run(run: str) -> Iterator[FinishedTrial]:
        yield given

    (here / "file").touch()
    result = CliRunner().invoke(stss, arguments, obj=open_run)
    assert (result.exit_code, result.output.count("Error: ")) == (2, 1)
    assert told in result.output
