"""Letters, intervals and bounds of a run's pairs are those of `proctor compare`."""

import random
from pathlib import Path

import pytest

from eval_client.report.compare.compare import MOST_WORK, TEST_WORK, Letters, compare_run, run_letters
from eval_client.report.compare.measure import Settings
from eval_client.report.compare.sides import Reference, find_pairs
from eval_client.report.report import report
from eval_client.report.run_tables import pairs_table, task_tables
from eval_client.report.score_matrix import score_bounds
from eval_client.store.store import Store
from eval_client.store.tables import trial_table
from eval_client.store.trials.scores import trial_facts
from eval_client.view.saved import report_page
from proctor.tables.command import rendered
from proctor.tables.table import entry_lines
from proctor.types import Summary
from tests.unit.eval_client.report.compare.stored import Grades, stored_run
from tests.unit.eval_client.view.told import Page


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
    facts = trial_facts(store)
    pairs = {(pair.agent, pair.task): pair for pair in report(store).pairs}
    for row in found.tasks:
        for place, agent in enumerate(("agent0", "agent1")):
            assert pairs[agent, row.task].interval == pytest.approx(row.mean_interval[place])
            assert score_bounds(facts[agent, row.task]) == row.mean_bounds[place]


def test_missing_scores_widen_the_bounds_and_enter_no_interval(tmp_path: Path) -> None:
    store = stored_run(
        tmp_path, "r", {"a": {"t": [1.0, 1.0, None, None]}, "b": {"t": [None] * 4}, "c": {"t": [1.0] * 4}}
    )
    letters = letters_of(store)
    assert score_bounds(trial_facts(store)["a", "t"]) == (0.5, 1.0)
    intervals = {pair.agent: pair.interval for pair in report(store).pairs}
    assert intervals["b"] is None
    assert intervals["a"] is not None
    assert letters.of_task == {"t": {"a": "a", "c": "a"}}, "an agent without a score has no letter"


def test_letters_are_left_out_where_they_would_be_too_many_or_too_costly(tmp_path: Path) -> None:
    assert letters_of(stored_run(tmp_path, "one", {"a": {"t": [1.0]}})) == Letters({}, "")
    assert "7 agents, more than 6" in letters_of(drawn_run(tmp_path, 1, 7, 2)).left_out
    tests = 15 * 5  # of each two of six agents on each of five tasks
    samples = MOST_WORK // tests - TEST_WORK + 1  # one fewer would do: neither tests nor samples alone are too many
    of_task = {f"task{number}": [1.0] * samples for number in range(5)}
    large = stored_run(tmp_path, "large", {f"agent{number}": of_task for number in range(6)})
    assert tests * (TEST_WORK + samples - 1) <= MOST_WORK
    assert "too many tests" in letters_of(large).left_out


@pytest.mark.parametrize("stored", [None, 0.75, 0.5], ids=["no summary", "of an earlier version", "of this version"])
def test_every_sample_counts_once_in_every_figure(tmp_path: Path, stored: float | None) -> None:
    """Scores [1, 1, 1] and [-, -, 0]; earlier versions kept the mean over trials as the environment's metric."""
    uneven: dict[str, Grades] = {"t": [[1.0, 1.0, 1.0], [None, None, 0.0]]}
    store = stored_run(tmp_path, "uneven", {"a": uneven, "b": uneven})
    if stored is not None:
        summary = Summary(primary="rate", metrics={"rate": stored}, standard_error=0.25)
        for agent in "ab":
            store.write_summary(agent, "t", 4, summary)
    pairs = report(store).pairs
    assert {(pair.value, pair.mean_score, pair.metrics.get("rate", 0.5)) for pair in pairs} == {(0.5, 0.5, 0.5)}
    assert {totals.mean for totals in store.pair_totals()} == {0.5}
    reference = Reference(store.run, None, None, None)
    (row,) = compare_run(find_pairs(reference, None, lambda _: store), Settings(), lettered=True).comparisons[0].tasks
    assert row.mean == (0.5, 0.5)
    assert row.primary is None or (row.primary.a, row.primary.b) == (0.5, 0.5)
    assert "0.500 [" in Page(report_page(store)).text


@pytest.mark.parametrize(
    ("metric", "value", "interval"),
    [("step_sr", 0.0, (0.0, 56.1)), ("step_sr", 100.0, (43.9, 100.0)), ("odd", 50.0, None)],
)
def test_an_interval_is_on_the_scale_that_the_environment_names(
    tmp_path: Path, metric: str, value: float, interval: tuple[float, float] | None
) -> None:
    grades: dict[str, Grades] = {"t": [value / 100] * 3}
    store = stored_run(tmp_path, "r", {"a": grades}, environments={"t": "mind2web"})
    store.write_summary("a", "t", 3, Summary(primary=metric, metrics={metric: value}, standard_error=0.0))
    (pair,) = report(store).pairs
    assert pair.interval == (interval and pytest.approx(interval, abs=0.1))
    assert pair.standard_error is None
    assert "±" not in "".join(pair.figure.lines())


def test_repeated_trials_have_their_shares_with_intervals_in_every_form(tmp_path: Path) -> None:
    """Five samples of four epochs, of which 0, 1, 2, 3 and 4 are passed."""
    grades: dict[str, Grades] = {"t": [[float(epoch < passed) for epoch in range(4)] for passed in range(5)]}
    store = stored_run(tmp_path, "four", {"a": grades})
    made = report(store)
    (pair,) = made.pairs
    shares = {each.k: (each.pass_at, each.pass_hat) for each in pair.repeats}
    assert shares == {1: (0.5, 0.5), 2: pytest.approx((2 / 3, 1 / 3)), 4: (0.8, 0.2)}
    assert pair.passed == 2.5
    titles = ["pass@1", "pass@2", "pass@4", "pass^2", "pass^4"]
    (board,) = (each.board for each in task_tables([made]))
    assert [column.title for column in board.columns][2:7] == titles
    page = report_page(store)
    assert all(title in page for title in titles)
    for form in ("text", "markdown", "latex", "csv", "json"):
        shown = rendered([pairs_table([made])] if form == "csv" else [board], form).replace("\\textasciicircum{}", "^")
        assert "pass@4" in shown
        assert "0.8" in shown
    low, high = pair.repeats[2].pass_at_interval or (1, 0)
    assert low < 0.8 < high


def test_agents_that_none_beats_are_marked_with_what_a_passed_sample_costs(tmp_path: Path) -> None:
    grades = {"dear": {"t": [1.0, 1.0, 0.0, 0.0]}, "good": {"t": [1.0, 1.0, 1.0, 0.0]}, "cheap": {"t": [1.0, 0, 0, 0]}}
    store = stored_run(tmp_path, "costs", grades)
    with store.engine.begin() as connection:
        for agent, tokens in (("dear", 4_000), ("good", 3_000), ("cheap", 100)):
            mine = trial_table.c.agent == agent
            connection.execute(trial_table.update().where(mine).values(prompt_tokens=tokens, completion_tokens=0))
    (board,) = (each.board for each in task_tables([report(store)]))
    assert [column.title for column in board.columns][-2:] == ["tokens per trial", "tokens per passed sample"]
    shown = {row.cells[0]: tuple(map(entry_lines, row.cells[-2:])) for row in board.rows}
    assert shown == {
        "good": (("3,000*",), ("4,000",)),
        "dear": (("4,000",), ("8,000",)),
        "cheap": (("100*",), ("400",)),
    }
    assert any("on the cost-score front" in note for note in board.notes)
