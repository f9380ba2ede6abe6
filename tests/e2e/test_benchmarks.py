"""Benchmarks print what they promise, and their results are told rightly. The figures are not judged here."""

import json
import subprocess
import sys

import pytest

from benchmarks.flow import POLICIES, makespan, shop
from benchmarks.measure import Figure, figure, parse, spread
from benchmarks.results import ROWS, rows
from benchmarks.results_page import CLAIMS, PAGE, Measured, Row, missed, page_lines
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
    "growth",
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


def test_results_are_medians_with_their_spread_and_more_rounds_than_not_within_the_budget() -> None:
    (row,) = rows([[figure("x", value, "ms", at_most=2.0)] for value in (1.0, 5.0, 1.5)])
    assert (row.value, row.least, row.most, row.met) == (1.5, 1.0, 5.0, True)
    (row,) = rows([[spread("x", values, "ms")] for values in ((1.0, 2.0, 9.0), (3.0,))])
    assert (row.value, row.least, row.most, row.met) == (2.5, 1.0, 9.0, None)
    (row,) = rows([[figure("x", value, "ms", at_most=2.0)] for value in (1.0, 5.0, 5.0)])
    assert row.met is False


def test_a_line_of_the_results_has_figure_spread_rounds_budget_and_what_stands_beside_it() -> None:
    claim = next(each for each in CLAIMS if each.beside == "TextWorld")
    ours = Row(name=claim.figure, unit="ms", values=(0.5, 0.25, 0.75), least=0.2, most=0.75, budget=0.4, met=False)
    theirs = Row(name=claim.rival, unit="ms", values=(45.0,), least=45.0, most=45.0)
    measured = {claim.benchmark: Measured(machine="m", date="2026-12-01", rows=(ours, theirs))}
    lines = list(page_lines(measured))
    assert f"| {claim.what} | 0.5 ms | 0.2 to 0.75 | 3 | 0.4, **missed** | TextWorld: 45 ms |" in lines
    assert missed(measured) == [f"worlds: {claim.figure}"]
    assert f"- worlds: {claim.figure}: 0.5 ms, budget 0.4" in lines
    assert lines[-1] == "- worlds: 2026-12-01, m"


def test_the_page_is_that_of_the_rows_and_they_have_what_it_claims() -> None:
    measured = {name: Measured.model_validate(each) for name, each in json.loads(ROWS.read_text("utf-8")).items()}
    assert PAGE.read_text("utf-8").splitlines() == list(page_lines(measured))
    for claim in CLAIMS:
        if claim.benchmark in measured:
            assert measured[claim.benchmark].row(claim.figure), claim
            assert not claim.rival or measured[claim.benchmark].row(claim.rival), claim


@pytest.mark.parametrize("policy", POLICIES)
def test_no_simulated_run_is_shorter_than_its_bound(policy: str) -> None:
    scene = shop(seed=3, agents=4, tasks=3)
    assert makespan(scene, POLICIES[policy](scene)) >= scene.bound() * (1 - 1e-9)
