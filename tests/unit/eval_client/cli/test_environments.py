"""`proctor check` and `proctor demo` with environments that lack policies."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from eval_client.cli import demo
from eval_client.cli.main import proctor
from eval_client.run.request import RunRequest
from proctor import registry
from tests.toy_environment import installed


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "installed").mkdir()
    with installed(tmp_path / "installed"):
        yield


def test_check_says_what_is_left_out_and_ends_well() -> None:
    done = CliRunner().invoke(proctor, ["check", "toy-solved"])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert "ok       the reference scores 1" in lines
    assert "left out the naive policy ends with a score: the environment has no naive policy" in lines
    assert "left out the random policy ends with a score: the environment has no random policy" in lines


def test_the_demo_plays_each_environment_with_the_policies_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[RunRequest] = []
    monkeypatch.setattr(demo, "play", lambda order, **options: played.append(order))
    monkeypatch.setattr(registry, "names", lambda: ["toy-bare", "toy-letters", "toy-solved"])
    done = CliRunner().invoke(proctor, ["demo"])
    assert done.exit_code == 0, done.output
    assert played[0].plan.pairs() == (
        ("reference", "toy-letters"),
        ("reference", "toy-solved"),
        ("naive", "toy-letters"),
        ("random", "toy-letters"),
    )
    assert "demo: toy-bare is left out: it has no policy for a built-in agent to play by" in done.output
    assert "demo: toy-solved plays 3 samples of its own; it has no naive and no random policy" in done.output
