"""The overview of a run: what it does now, its matrix of agents by tasks, and the plots and tables behind it."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from eval_client.core.run_view import PairView, RunView, clock
from eval_client.report.compare.run_pairs import Letters, run_letters
from eval_client.report.configuration_tables import agents_table, tasks_table
from eval_client.report.pair_report import RunReport
from eval_client.report.plots.cost import cost_plots
from eval_client.report.plots.reasons import reasons
from eval_client.report.plots.svg import Address, Plot
from eval_client.report.run_tables import task_tables
from eval_client.report.score_matrix import Facts, matrix, with_bounds
from eval_client.report.shared_tables import shared_tables
from eval_client.store.records import Manifest
from eval_client.store.store import Store
from eval_client.store.trials.rows import TrialQuery, read_trials
from eval_client.store.trials.scores import trial_facts
from eval_client.view.live import LiveRun
from eval_client.view.rendering import link
from eval_client.view.viewer import Viewer
from proctor.tables.table import ResultTable

MOST_PAIRS = 60
"""Pairs up to which the overview has the details too, and of which it shows what they wait for."""
LAST = 8
"""Trials in the list of those that ended last."""


class LivePanel(NamedTuple):
    """The part of an overview that shows a run under way."""

    heard: str | None
    """When the run was last heard of, where that is long ago."""
    left: str
    running: int
    view: RunView
    use: list[tuple[str, int, int, bool]]
    """Of each capacity limit, such as `agent gpt`: its name, how much is in use and allowed, whether it is full."""
    warnings: list[str]
    pairs: list[PairView]
    """Those with trials to play, as many as are shown."""
    more: int
    """How many others there are."""


class RunDetails(NamedTuple):
    """What is behind the scores: plots, with their tables folded below."""

    reasons: Plot
    costs: tuple[Plot, ...]
    """Empty where no trial cost anything."""
    validity: tuple[ResultTable, ...]
    spent: tuple[ResultTable, ...]
    tasks: tuple[ResultTable, ...]
    """Of each task its leaderboard, and the environment's metrics."""
    played: tuple[ResultTable, ...]
    """What was run."""


def overview_page(viewer: Viewer, request: Request) -> Response:
    """The overview of a run."""
    store = viewer.open(request)
    live = live_panel(viewer, store)  # before the scores, which are then never older
    kept = viewer.kept_report(store)
    # what is below is rendered once for each report
    figures = kept.made("overview", lambda: _figures(viewer, store, kept.report))
    page = viewer.page(
        "overview.html",
        store.run,
        run=viewer.head(store),
        place="overview",
        created_at=store.created_at(),
        kept=lambda name, caller: kept.made(f"overview {name}", caller),
        live=live,
        **figures,
    )
    page.headers.update(kept.headers(time.monotonic()))
    return page


def tables_page(viewer: Viewer, request: Request) -> Response:
    """How the trials of a run ended, what they cost, and the tables of its report."""
    store = viewer.open(request)
    kept = viewer.kept_report(store)
    details = kept.made("details", lambda: _details(store, kept.report))
    page = viewer.page("tables.html", f"Tables of {store.run}", run=viewer.head(store), place="tables", details=details)
    page.headers.update(kept.headers(time.monotonic()))
    return page


def _figures(viewer: Viewer, store: Store, report: RunReport) -> dict[str, Any]:
    """What the overview shows of a report; of more than MOST_PAIRS the details are a link away."""
    letters = kept_letters(viewer, store, report)
    details = _details(store, report) if len(report.pairs) <= MOST_PAIRS else None
    known = {"report": report, "matrix": matrix(report.pairs, letters), "letters": letters}
    last = read_trials(store, TrialQuery(sort="-ended_at", size=LAST)).items
    return {**known, "details": details, "ended": [row for row in last if row.ended_at is not None]}


def _details(store: Store, report: RunReport) -> RunDetails:
    return run_details(store.manifest(), report, trial_facts(store), partial(trials_address, store.run))


def trials_address(run: str, agent: str, task: str, **selected: str) -> str:
    """The address of a pair's trials."""
    return link("runs", run, "trials", agent=agent, task=task, **selected)


def run_details(manifest: Manifest, report: RunReport, facts: Facts, address: Address) -> RunDetails:
    """The details of a report; the marks of plots lead to an address."""
    plan = manifest.read_plan()
    validity, *spent = shared_tables([report])
    tasks = []
    for each in task_tables([report]):
        of_task = [pair for pair in report.pairs if pair.task == each.task]
        tasks += [with_bounds(each.board, of_task, facts), *([each.metrics] if each.metrics is not None else [])]
    return RunDetails(
        reasons=reasons(report.pairs, address),
        costs=tuple(cost_plots(report.pairs, facts, plan.all_prices(), address)),
        validity=(validity,),
        spent=tuple(spent),
        tasks=tuple(tasks),
        played=(agents_table(plan), tasks_table(manifest)),
    )


def kept_letters(viewer: Viewer, store: Store, report: RunReport) -> Letters:
    """The run's letters, made anew only where its scores have changed."""
    return viewer.kept.get(("letters", store.run), lambda: run_letters(store, report.pairs), scores_stamp(report))


def scores_stamp(report: RunReport) -> tuple[tuple[str, str, int, float | None], ...]:
    """What changes whenever a run's scores do."""
    return tuple((pair.agent, pair.task, pair.scored, pair.value) for pair in report.pairs)


def live_page(viewer: Viewer, request: Request) -> Response:
    """The live panel of a run, which an open page fetches again."""
    store = viewer.open(request)
    return viewer.page("live.html", store.run, live=live_panel(viewer, store))


def live_panel(viewer: Viewer, store: Store) -> LivePanel | None:
    """The panel of a run; None unless it is under way."""
    live = viewer.live.look(store)
    return None if live.view is None else _panel(live, live.view)


def _panel(live: LiveRun, view: RunView) -> LivePanel:
    pairs = [pair for pair in view.pairs if pair.done < pair.planned]
    return LivePanel(
        heard=f"last heard {live.heard_s:.0f} s ago" if live.silent else None,
        left=clock(view.left_s),
        running=sum(pair.running for pair in view.pairs),
        view=view,
        use=[(name, used, capacity, used >= capacity) for name, (used, capacity) in view.use.items()],
        warnings=list(_warnings(view)),
        pairs=pairs[:MOST_PAIRS],
        more=max(0, len(pairs) - MOST_PAIRS),
    )


def _warnings(view: RunView) -> Iterator[str]:
    for name, left in sorted(view.cooling.items()):
        yield f"endpoint {name} pauses for another {left:.0f} s after a 429"
    yield from view.troubles
    yield from view.shared
