"""Benchmarks print what they promise, and their results are told rightly. The figures are not judged here."""

import subprocess
import sys

import pytest

from benchmarks.flow import POLICIES, makespan, shop
from benchmarks.measure import Figure, figure, parse, spread
from benchmarks.results import met, table
from tests.pace import slowly
from tests.support import ROOT

QUICK = [
    "floor",
    "resume",
    pytest.param("million", marks=pytest.mark.postgresql),
    "store",
    pytest.param("sandbox", marks=pytest.mark.docker),
    pytest.param("database", marks=pytest.mark.mariadb),
    "overhead",
    "ideal",
    "tools",
    "long_history",
    "flow",
    "replicas",
    "worlds",
    "start",
    pytest.param("view", marks=pytest.mark.browser),
]


@pytest.mark.parametrize("name", QUICK)
def test_every_line_of_a_quick_run_is_a_figure(name: str) -> None:
    command = [sys.executable, "-m", f"benchmarks.{name}", "--quick", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=slowly(300), check=False)
    assert done.returncode == 0, done.stderr
    figures = [parse(line) for line in done.stdout.splitlines()]
    assert len(figures) >= 4
    assert len({each.name for each in figures}) == len(figures)
    assert all(each.value >= 0 for each in figures)


def test_a_figure_is_held_against_its_budget() -> None:
    assert figure("a", 1.0, "s", at_most=1.0).within is True
    assert figure("a", 1.1, "s", at_most=1.0).within is False
    assert figure("a", 0.9, "", at_least=0.95).within is False
    assert figure("a", 5.0, "s") == Figure(name="a", value=5.0, unit="s", budget=None, within=None)


def test_a_line_that_is_no_figure_is_refused() -> None:
    with pytest.raises(ValueError, match="unit"):
        parse('{"name": "a", "value": 1}')


def test_results_show_median_spread_and_verdict() -> None:
    rounds = [[figure("x", value, "ms", at_most=2.0)] for value in (1.0, 5.0, 1.5)]
    assert table(rounds).splitlines()[-1] == "| x | 1.5 | 1 to 5 | ms | 2 | met |"
    rounds = [[spread("x", values, "ms")] for values in ((1.0, 2.0, 9.0), (3.0,))]
    assert table(rounds).splitlines()[-1] == "| x | 2.5 | 1 to 9 | ms |  |  |"
    assert not met([figure("x", value, "ms", at_most=2.0) for value in (1.0, 5.0, 5.0)])


@pytest.mark.parametrize("policy", POLICIES)
def test_no_simulated_run_is_shorter_than_its_bound(policy: str) -> None:
    scene = shop(seed=3, agents=4, tasks=3)
    assert makespan(scene, POLICIES[policy](scene)) >= scene.bound() * (1 - 1e-9)
