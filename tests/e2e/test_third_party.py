"""A package of someone else's becomes an environment by being installed."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from proctor import registry
from proctor.config.task import TaskDefinition
from proctor.conformance.check import check
from proctor.session.play import PolicyAgent, play_to_finish
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
    assert finish.score == 1.0
    assert environment.summarize([finish]).metrics == {"mean_score": 1.0}


def test_its_digest_is_by_its_parameters_and_its_name() -> None:
    guessing = registry.load("guessing")
    digests = [guessing.model_validate(fields).digest() for fields in ({}, {"highest": 100}, {"highest": 1000})]
    assert digests[0] == digests[1] == "224fdc4eb3948ae87ecc103cb3e087ab"
    assert digests[2] != digests[0]


async def test_it_keeps_every_promise_but_of_policies_that_it_lacks() -> None:
    results = [result async for result in check(registry.load("guessing")())]
    assert [result for result in results if not result.ok] == []
    assert [result.name for result in results if result.state == "left out"] == [
        "the naive policy ends with a score",
        "the random policy ends with a score",
    ]
