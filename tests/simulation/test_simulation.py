"""Thousands of histories of crashes, delays, duplicates and partitions, and bugs that they must not miss.

Each client replaces the one before.
`python -m tests.simulation SEED` replays the history of a failing seed, line by line.
"""

import os
import subprocess
import sys

import pytest

from tests.simulation.history import simulate
from tests.simulation.mutants import MUTANTS, Mutant
from tests.support import ROOT
from tests.unit.house.planting import planted_here

SEEDS = 2000
SLICE = 100
RARE = (31513, 41858, 5122)
"""Further seeds, of histories that are seldom: a start that comes twice begins the session at a second worker; an
attempt that got further than the one before fails too; a start is repeated that succeeded, at a controller that does
not hear the session's worker."""
ENOUGH = 400
"""Within so many seeds every planted bug is noticed; most are at once."""


@pytest.mark.parametrize("first", range(0, SEEDS, SLICE))
def test_no_history_breaks_an_invariant(first: int) -> None:
    broken = {seed: problems for seed in range(first, first + SLICE) if (problems := simulate(seed)[0])}
    assert not broken, f"replay with: python -m tests.simulation {min(broken)}"


@pytest.mark.parametrize("seed", RARE)
def test_no_rare_history_breaks_an_invariant(seed: int) -> None:
    problems = simulate(seed).problems
    assert not problems, f"replay with: python -m tests.simulation {seed}"


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.bug for mutant in MUTANTS])
def test_a_planted_bug_is_noticed(mutant: Mutant) -> None:
    with planted_here(mutant.change):
        seeds = sorted(range(ENOUGH), key=lambda seed: seed != mutant.first)
        found = (problem for seed in seeds for problem in simulate(seed, kinds=mutant.kinds).problems)
        assert any(problem.startswith(mutant.caught) for problem in found)


def test_a_seed_is_one_history_in_every_process() -> None:
    code = "from tests.simulation.history import simulate; print([simulate(seed)[1] for seed in range(30)])"
    command = [sys.executable, "-c", code]
    first, second = (
        subprocess.run(
            command, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "4")
    )
    assert first == second
