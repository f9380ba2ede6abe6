"""Thousands of histories of crashes, delays, duplicates and partitions, and bugs that they must not miss.

In a tenth of them several clients share the run; in the others each client replaces the one before.
`python -m tests.simulation SEED` replays the history of a failing seed, line by line.
"""

import os
import subprocess
import sys
from collections import Counter
from unittest import mock

import pytest

from tests.simulation.history import simulate
from tests.simulation.mutants import MUTANTS, Mutant
from tests.simulation.setting import clients_of
from tests.support import ROOT

SEEDS = 2000
SLICE = 100
RARE = (31513, 41858, 5122)
"""Further seeds, of histories that are seldom: a start that comes twice begins the session at a second worker; an
attempt that got further than the one before fails too; a start is repeated that succeeded, at a controller that does
not hear the session's worker."""
ENOUGH = 400
"""Within so many seeds every planted bug is noticed; most are at once."""
TEAMS = [seed for seed in range(SEEDS) if clients_of(seed) > 1]
"""The seeds in which several clients share a run. 531: one that ends at the run's budget has told all that it spent."""

FULL = 178
"""One of them that shows all that there is of sharing; the others are looked at only if it no longer does."""


@pytest.mark.parametrize("first", range(0, SEEDS, SLICE))
def test_no_history_breaks_an_invariant(first: int) -> None:
    broken = {seed: problems for seed in range(first, first + SLICE) if (problems := simulate(seed)[0])}
    assert not broken, f"replay with: python -m tests.simulation {min(broken)}"


def test_clients_share_a_run_hand_trials_over_and_are_fenced() -> None:
    seen = Counter[str]()
    for seed in sorted(TEAMS, key=lambda seed: seed != FULL):
        counts = simulate(seed).counts
        seen.update(counts)
        seen["three at once"] += counts["at once"] >= 3
        if all(seen[what] for what in ("three at once", "handed over", "lost", "fenced")):
            return
    pytest.fail(f"the seeds that are to have several clients have only {seen}")


@pytest.mark.parametrize("seed", RARE)
def test_no_rare_history_breaks_an_invariant(seed: int) -> None:
    problems = simulate(seed, clients=1).problems
    assert not problems, f"replay with: python -m tests.simulation {seed}"


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.bug for mutant in MUTANTS])
def test_a_planted_bug_is_noticed(mutant: Mutant) -> None:
    with mock.patch.object(mutant.owner, mutant.name, mutant.value):
        seeds = sorted(TEAMS if mutant.shared else range(ENOUGH), key=lambda seed: seed != mutant.first)
        clients = None if mutant.shared else 1
        found = (problem for seed in seeds for problem in simulate(seed, kinds=mutant.kinds, clients=clients).problems)
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
