"""`proctor stss ...` with wrong arguments: one message, exit code 2."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from environments.stss.commands import stss
from environments.stss.environment import Stss
from proctor.plugins import FinishedTrial, RecordedPair, RecordedRun
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
        (["draw", "one", "--to", "file/days"], False, "--to: file/days"),
        (["files", "one", "--to", "file/days"], False, "--to: file/days"),
        (["scenarios", "one", "--to", "file/frozen.json"], False, "--to: file/frozen.json"),
        (["scenarios", "one", "--to", "frozen.json", "--task", "city"], False, "no trial of the task 'city'"),
        (["draw", "one"], True, f"a-town-{SAMPLE}-0: the stored days of its finish are damaged"),
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


class OneTrial(RecordedRun):
    """A run of one trial."""

    def __init__(self, trial: FinishedTrial) -> None:
        self._trial = trial

    def __iter__(self) -> Iterator[FinishedTrial]:
        yield self._trial

    def trial(self, number: int) -> FinishedTrial:
        return self._trial

    def pairs(self) -> list[RecordedPair]:
        return []


@pytest.mark.parametrize(
    ("arguments", "evidence", "said"),
    [
        (["one", "-o", "page.html"], True, "name its number after RUN"),
        (["one", "--viewer", "http://v"], True, "name its number after RUN"),
        (["one", "7", "--viewer", "javascript:alert(1)"], True, "give what `proctor view` prints"),
        (["one", "7", "-o", "file/page.html"], True, "--output: file/page.html"),
        (["one", "7"], False, "trial 7: holds no days; the days can be drawn of a trial that this version played"),
    ],
)
def test_what_cannot_be_drawn_is_told_once(
    here: Path, trial: FinishedTrial, arguments: list[str], evidence: bool, said: str
) -> None:
    detail = {name: value for name, value in trial.finish.detail.items() if evidence or name != "evidence"}
    given = trial.model_copy(update={"finish": trial.finish.model_copy(update={"detail": detail})})
    (here / "file").touch()
    result = CliRunner().invoke(stss, ["draw", *arguments], obj=lambda run: OneTrial(given))
    assert (result.exit_code, result.output.count("Error: ")) == (2, 1)
    assert said in result.output


def test_one_trial_is_drawn_to_a_file_or_under_its_name(here: Path, trial: FinishedTrial) -> None:
    for arguments, path in ((["-o", "one.html"], "one.html"), ([], f"stss-days/a-town-{SAMPLE}-0.html")):
        result = CliRunner().invoke(stss, ["draw", "one", "7", *arguments], obj=lambda run: OneTrial(trial))
        assert (result.exit_code, result.output.strip()) == (0, path)
        assert "Who came" in (here / path).read_text()
