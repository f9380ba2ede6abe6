"""The overview of a run: the matrix of agents by tasks, what ended last, and the tables of the report."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from eval_client.report.pair_statistics import Letters, run_letters
from eval_client.report.report import PairReport, RunReport
from eval_client.report.tables.run_report import shared_tables, task_tables
from eval_client.store.store import Store
from eval_client.view.pages.live import live_panel
from eval_client.view.trials.rows import TrialRow, last_ended
from eval_client.view.viewer import Viewer
from proctor.tables.table import ResultTable, coverage_text

SHADES = 10
"""Steps of the shade behind a score."""
MOST_PAIRS = 60
"""Pairs up to which the overview has the tables of the report too."""
LAST = 8
"""Trials in the list of those that ended last."""


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


class PageTables(NamedTuple):
    """The tables of `proctor report`."""

    shared: tuple[ResultTable, ...]
    """Of all pairs together."""
    tasks: tuple[ResultTable, ...]
    """Of each task."""
    folded: bool
    """Whether those of each task are folded."""


class OverviewFigures(NamedTuple):
    """What the overview shows of a report."""

    report: RunReport
    totals: Totals
    matrix: Matrix
    letters: Letters
    tables: PageTables | None
    """None where the run has more than MOST_PAIRS: their page is a link away."""
    ended: tuple[TrialRow, ...]
    """The trials that ended last."""


def overview_page(viewer: Viewer, request: Request) -> Response:
    """The overview of a run.

    Its tables are rendered once for each report.
    """
    store = viewer.open(request)
    live = live_panel(viewer, store)  # before the scores, which are then never older
    kept = viewer.kept_report(store)
    figures = kept.made("overview", lambda: _figures(viewer, store, kept.report))
    page = viewer.page(
        "overview.html",
        store.run,
        run=viewer.head(store),
        place="overview",
        created_at=store.created_at(),
        kept=lambda name, caller: kept.made(f"overview {name}", caller),
        live=live,
        **figures._asdict(),
    )
    page.headers.update(kept.headers(time.monotonic()))
    return page


def tables_page(viewer: Viewer, request: Request) -> Response:
    """The tables of a run's report."""
    store = viewer.open(request)
    kept = viewer.kept_report(store)
    tables = kept.made("tables", lambda: _tables(kept.report, folded=False))
    page = viewer.page("tables.html", f"Tables of {store.run}", run=viewer.head(store), place="tables", tables=tables)
    page.headers.update(kept.headers(time.monotonic()))
    return page


def _figures(viewer: Viewer, store: Store, report: RunReport) -> OverviewFigures:
    letters = kept_letters(viewer, store, report)
    return OverviewFigures(
        report=report,
        totals=totals(report),
        matrix=matrix(report.pairs, letters),
        letters=letters,
        tables=_tables(report, folded=True) if len(report.pairs) <= MOST_PAIRS else None,
        ended=tuple(last_ended(store, LAST)),
    )


def _tables(report: RunReport, *, folded: bool) -> PageTables:
    of_tasks = [table for each in task_tables([report]) for table in (each.board, each.metrics) if table is not None]
    return PageTables(tuple(shared_tables([report])), tuple(of_tasks), folded)


def totals(report: RunReport) -> Totals:
    """The run's trials, over all pairs."""
    pairs = report.pairs
    faults = sum(sum(pair.faults.values()) for pair in pairs)
    return Totals(sum(pair.planned for pair in pairs), sum(pair.scored for pair in pairs), faults)


def kept_letters(viewer: Viewer, store: Store, report: RunReport) -> Letters:
    """The run's letters, made anew only where its scores have changed."""
    return viewer.kept.get(("letters", store.run), lambda: run_letters(store, report.pairs), scores_stamp(report))


def scores_stamp(report: RunReport) -> tuple[tuple[str, str, int, float | None], ...]:
    """What changes whenever a run's scores do."""
    return tuple((pair.agent, pair.task, pair.scored, pair.value) for pair in report.pairs)


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
