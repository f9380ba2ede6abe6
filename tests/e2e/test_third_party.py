"""A package of someone else's becomes an environment by being installed."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from environments import registry
from environments.base import PolicyAgent, play_to_finish
from environments.check import check
from environments.definition import TaskDefinition
from tests.pace import slowly
from tests.support import ROOT

EXAMPLE = ROOT / "examples" / "third_party"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip put the example package; nothing is fetched."""
    target = tmp_path_factory.mktemp("installed")
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(EXAMPLE)], check=True, timeout=slowly(120))
    return target


@pytest.fixture(autouse=True)
def _importable(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(installed)
    importlib.invalidate_caches()


def test_it_is_listed_beside_ours() -> None:
    assert {"guessing", "db", "os"} <= set(registry.names())


async def test_it_plays_as_a_task_with_parameters() -> None:
    task = TaskDefinition(name="guess-1000", environment="guessing", parameters={"highest": 1000, "guesses": 10})
    environment = task.build()
    reference = environment.reference("game-3", 5)
    assert reference is not None
    finish = await play_to_finish(environment, "game-3", PolicyAgent(reference), seed=5)
    assert (finish.score, finish.metrics) == (1.0, {"guesses": 1})
    assert task.sessions() == 100


async def test_it_keeps_every_promise() -> None:
    assert [result async for result in check(registry.load("guessing")()) if not result.ok] == []
