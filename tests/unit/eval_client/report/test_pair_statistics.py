"""Letters, intervals and bounds of a run's pairs are those of `proctor compare`."""

import random
from pathlib import Path

import pytest

from eval_client.report.compare.compare import compare_run
from eval_client.report.compare.measure import Settings
from eval_client.report.compare.sides import find_pairs
from eval_client.report.pair_statistics import MOST_WORK, TEST_WORK, Letters, pair_statistics, run_letters
from eval_client.report.reference import Reference
from eval_client.report.report import report
from eval_client.store.store import Store
from tests.unit.eval_client.report.compare.stored import Grades, stored_run


def drawn_run(folder: Path, seed: int, agents: int, samples: int, tasks: tuple[str, ...] = ("db", "os")) -> Store:
    """Agents of unlike skill on a task that is passed or failed, and on one with graded epochs."""
    chance = random.Random(seed)

    def of_os(skill: float) -> Grades:
        return [[round(min(1.0, max(0.0, chance.gauss(skill, 0.3))), 2) for _ in range(2)] for _ in range(samples)]

    def of_db(skill: float) -> Grades:
        return [float(chance.random() < skill) for _ in range(samples)]

    drawn = {"os": of_os, "db": of_db}
    grades = {f"agent{n}": {task: drawn[task](n / agents) for task in tasks} for n in range(agents)}
    return stored_run(folder, f"drawn{seed}", grades)


def letters_of(store: Store) -> Letters:
    return run_letters(store, report(store).pairs)


@pytest.mark.parametrize("seed", range(5))
def test_letters_are_those_of_the_command(tmp_path: Path, seed: int) -> None:
    store = drawn_run(tmp_path, seed, 4, 24)
    found = compare_run(
        find_pairs(Reference(store.run, None, None, None), None, lambda _: store), Settings(), lettered=True
    )
    letters = letters_of(store)
    assert (dict(letters.of_task), letters.left_out) == (found.letters, "")
    assert len({text for of_task in found.letters.values() for text in of_task.values()}) > 1, "some are told apart"


def test_intervals_and_bounds_are_those_of_the_command(tmp_path: Path) -> None:
    store = drawn_run(tmp_path, 9, 2, 24)
    (found,) = compare_run(
        find_pairs(Reference(store.run, None, None, None), None, lambda _: store), Settings(), lettered=True
    ).comparisons
    statistics = pair_statistics(store, report(store).pairs, letters_of(store))
    for row in found.tasks:
        for place, agent in enumerate(("agent0", "agent1")):
            mine = statistics[agent, row.task]
            assert mine.interval == row.mean_interval[place]
            assert (mine.missing.low, mine.missing.high) == row.mean_bounds[place]


def test_missing_scores_widen_the_bounds_and_enter_no_interval(tmp_path: Path) -> None:
    store = stored_run(
        tmp_path, "r", {"a": {"t": [1.0, 1.0, None, None]}, "b": {"t": [None] * 4}, "c": {"t": [1.0] * 4}}
    )
    letters = letters_of(store)
    statistics = pair_statistics(store, report(store).pairs, letters)
    assert (statistics["a", "t"].missing.low, statistics["a", "t"].missing.high) == (0.5, 1.0)
    assert statistics["b", "t"].interval is None
    assert statistics["a", "t"].interval is not None
    assert letters.of_task == {"t": {"a": "a", "c": "a"}}, "an agent without a score has no letter"


def test_letters_are_left_out_where_they_would_be_too_many_or_too_costly(tmp_path: Path) -> None:
    assert letters_of(stored_run(tmp_path, "one", {"a": {"t": [1.0]}})) == Letters({}, "")
    assert "more than 6 agents" in letters_of(drawn_run(tmp_path, 1, 7, 2)).left_out
    tests = 15 * 5  # of each two of six agents on each of five tasks
    samples = MOST_WORK // tests - TEST_WORK + 1  # one fewer would do: neither tests nor samples alone are too many
    of_task = {f"task{number}": [1.0] * samples for number in range(5)}
    large = stored_run(tmp_path, "large", {f"agent{number}": of_task for number in range(6)})
    assert tests * (TEST_WORK + samples - 1) <= MOST_WORK
    assert "too many tests" in letters_of(large).left_out
