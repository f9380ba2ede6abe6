"""Pure: a run as agents by tasks, and tables that files and pages have beside it."""

from collections.abc import Sequence
from typing import NamedTuple

from eval_client.report.pair_statistics import Letters
from eval_client.report.plots.figures import Facts, sample_scores, score_bounds
from eval_client.report.report import PairReport, RunReport
from proctor.tables.table import Figure, ResultTable, TableColumn, TableRow, coverage_text

SHADES = 10
"""Steps of the shade behind a score."""


class PairCell(NamedTuple):
    """A pair in the matrix."""

    pair: PairReport
    coverage: str | None
    """The share of planned trials that are scored; None where all are."""
    faults: int
    shade: int | None
    """From 0 to SHADES, for the mean score; None without a score."""
    letters: str
    """Empty where letters are left out."""


class Matrix(NamedTuple):
    """Agents by tasks."""

    tasks: tuple[PairReport, ...]
    """A pair of each task, for the column's heading."""
    rows: dict[str, tuple[PairCell | None, ...]]
    """agent -> its cells, one for each task; None where it does not play the task."""


class Totals(NamedTuple):
    """Trials of a run."""

    planned: int
    scored: int
    unscored: int


def totals(report: RunReport) -> Totals:
    """The run's trials, over all pairs."""
    pairs = report.pairs
    faults = sum(sum(pair.faults.values()) for pair in pairs)
    return Totals(sum(pair.planned for pair in pairs), sum(pair.scored for pair in pairs), faults)


def matrix(pairs: Sequence[PairReport], letters: Letters) -> Matrix:
    """The pairs as a matrix: tasks in the order of the plan, agents in that of their first task."""
    by_pair = {(pair.agent, pair.task): pair for pair in pairs}
    tasks = {pair.task: pair for pair in pairs}
    agents = dict.fromkeys(pair.agent for pair in pairs)
    rows = {}
    for agent in agents:
        found = [by_pair.get((agent, task)) for task in tasks]
        rows[agent] = tuple(None if pair is None else _cell(pair, letters) for pair in found)
    return Matrix(tuple(tasks.values()), rows)


def _cell(pair: PairReport, letters: Letters) -> PairCell:
    return PairCell(
        pair,
        None if pair.coverage == 1 else coverage_text(pair.coverage),
        sum(pair.faults.values()),
        None if pair.mean_score is None else round(SHADES * pair.mean_score),
        letters.of_task.get(pair.task, {}).get(pair.agent, ""),
    )


def with_bounds(board: ResultTable, pairs: Sequence[PairReport], facts: Facts) -> ResultTable:
    """A leaderboard with what the mean scores could be, where trials are missing."""
    bounds = [score_bounds(facts[pair.agent, pair.task]) for pair in pairs]
    if not any(bounds):
        return board
    ends = ("-" if each is None else f"{each[0]:.3f}..{each[1]:.3f}" for each in bounds)
    rows = tuple(row._replace(cells=(*row.cells, end)) for row, end in zip(board.rows, ends, strict=True))
    note = "Mean score could be: with all missing scores 0, and with all 1."
    columns = (*board.columns, TableColumn("mean score could be"))
    return board._replace(columns=columns, rows=rows, notes=(*board.notes, note))


def not_comparable_notes(made: RunReport) -> list[str]:
    """Why scores are not comparable with published ones, once for each task."""
    unlike = (
        f"{pair.task}: not comparable with published scores: {pair.comparable}"
        for pair in made.pairs
        if pair.comparable
    )
    return list(dict.fromkeys(unlike))


def sample_tables(facts: Facts) -> list[ResultTable]:
    """For each task a row for each sample, and a column for each agent."""
    tables = []
    for task in dict.fromkeys(task for _, task in facts):
        held = {agent: sample_scores(trials) for (agent, of), trials in facts.items() if of == task}
        rows = []
        for name in dict.fromkeys(name for scores in held.values() for name in scores):
            means = (scores[name].mean if name in scores and scores[name].scores else None for scores in held.values())
            rows.append(TableRow((name, *map(Figure, means))))
        columns = (TableColumn("sample", left=True), *map(TableColumn, held))
        tables.append(ResultTable(task, columns, tuple(rows)))
    return tables
