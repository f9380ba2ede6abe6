"""The overview of a run: what it does now, its matrix of agents by tasks, and the plots and tables behind it."""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from eval_client.core.run_view import RunView, clock
from eval_client.report.compare.compare import Letters, run_letters
from eval_client.report.configuration_tables import agents_table, tasks_table
from eval_client.report.pair_report import PairReport, RunReport
from eval_client.report.plots.cost import cost_plots
from eval_client.report.plots.pairs import matrix as matrix_plot
from eval_client.report.plots.pairs import reasons
from eval_client.report.plots.svg import Address, Plot
from eval_client.report.run_tables import task_tables
from eval_client.report.score_matrix import Facts, matrix, with_bounds
from eval_client.report.shared_tables import shared_tables
from eval_client.store.records import Manifest
from eval_client.store.store import Store
from eval_client.store.trials.rows import QueryError, TrialQuery, read_trials
from eval_client.store.trials.scores import trial_facts
from eval_client.view.pages.compare import compared_plot
from eval_client.view.rendering import link
from eval_client.view.runs import NotFound
from eval_client.view.viewer import Viewer
from proctor.tables.table import counted
from proctor.types import NOT_UNDERSTOOD, FinishReason

MOST_PAIRS = 60
"""Pairs up to which the overview has the details too."""
PLOTS = ("matrix", "reasons", "cost", "differences")
LAST = 8
"""Trials in the list of those that ended last."""


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
        notes=store.notes(),
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


def _details(store: Store, report: RunReport) -> dict[str, Any]:
    return run_details(store.manifest(), report, trial_facts(store), partial(trials_address, store.run))


def trials_address(run: str, agent: str, task: str, **selected: str) -> str:
    return link("runs", run, "trials", agent=agent, task=task, **selected)


def run_details(manifest: Manifest, report: RunReport, facts: Facts, address: Address) -> dict[str, Any]:
    """What is behind the scores: plots, whose marks lead to an address, with tables folded below."""
    plan = manifest.read_plan()
    unlike = [pair for pair in report.pairs if _is_remarkable(pair)]
    validity, *spent = shared_tables([report])
    tasks = []
    for each in task_tables([report]):
        of_task = [pair for pair in report.pairs if pair.task == each.task]
        tasks += [with_bounds(each.board, of_task, facts), *([each.metrics] if each.metrics is not None else [])]
    return {
        "reasons": reasons(unlike, address) if unlike else None,
        "remarks": tuple(_remarks(report.pairs, len(unlike))),
        "costs": [plot for plot in cost_plots(report.pairs, facts, plan.all_prices(), address) if plot.table.rows[1:]],
        "validity": [validity],
        "spent": spent,
        "tasks": tasks,
        "played": [agents_table(plan), tasks_table(manifest)],
    }


def _is_remarkable(pair: PairReport) -> bool:
    """Whether not all of its trials that are over were completed, or replies were cut off or could not be read."""
    reasons_of = {reason for reason, share in pair.validity.items() if share}
    bad = pair.unscored or pair.cut_answers or pair.metrics.get(NOT_UNDERSTOOD)
    return bool(bad) or not reasons_of <= {FinishReason.COMPLETED.value}


def _remarks(pairs: Sequence[PairReport], unlike: int) -> Iterator[str]:
    """What the reasons don't show: cut and bad replies, and how many pairs are left out there."""
    for pair in pairs:
        counts = ((pair.cut_answers, "cut off by max_tokens"), (pair.metrics.get(NOT_UNDERSTOOD), "not understood"))
        if told := [f"{count:,.0f} {what}" for count, what in counts if count]:
            yield f"Replies of {pair.agent} on {pair.task}: {', '.join(told)}."
    if rest := len(pairs) - unlike:
        which = "The other" if unlike else "All"
        yield f"{which} {counted(rest, 'pair')}: all scored trials were completed, without faults or bad replies."


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


def live_panel(viewer: Viewer, store: Store) -> dict[str, Any] | None:
    """What a run does now; None unless it is under way."""
    live = viewer.live.look(store)
    if (view := live.view) is None:
        return None
    return {
        "heard": f"last heard {live.heard_s:.0f} s ago" if live.silent else None,
        "left": clock(view.left_s),
        "running": sum(pair.running for pair in view.pairs),
        "view": view,
        "use": [(name, used, capacity, used >= capacity) for name, (used, capacity) in view.use.items()],
        "warnings": list(_warnings(view)),
        "waits": list(view.waits().values()),
    }


def _warnings(view: RunView) -> Iterator[str]:
    for name, left in sorted(view.cooling.items()):
        yield f"endpoint {name} pauses for another {left:.0f} s after a 429"
    yield from view.troubles
    yield from view.shared


def plot_svg(viewer: Viewer, request: Request) -> Response:
    """One plot of a run, or of a comparison, as SVG with the viewer's style.

    Raises NotFound, QueryError, CompareError, DatabaseError.
    """
    name, given = request.path_params["name"], request.query_params
    if name not in PLOTS:
        raise NotFound(f"there is no plot {name!r}; the plots are: {', '.join(PLOTS)}")
    if name == "differences":
        plot = compared_plot(viewer, request)
    else:
        plot = _run_plot(viewer, name, given.get("run", ""), given.get("task", ""))
    sheet = f'<?xml-stylesheet type="text/css" href="{viewer.assets["view.css"].address}"?>\n'
    return Response((sheet + plot.svg).encode("utf-8", "backslashreplace"), media_type="image/svg+xml")


def _run_plot(viewer: Viewer, name: str, run: str, task: str) -> Plot:
    """The plot of a task's pairs, of all pairs where none is named. Raises NotFound, QueryError."""
    if not run:
        raise QueryError("run: name the run whose plot is wanted")
    store = viewer.runs.open(run)
    pairs = viewer.kept_report(store).report.pairs
    tasks = dict.fromkeys(pair.task for pair in pairs)
    if task and task not in tasks:
        raise NotFound(f"run {store.run!r} has no task {task!r}; its tasks are: {', '.join(tasks)}")
    some = [pair for pair in pairs if task in ("", pair.task)]
    drawn = viewer.kept.get(("plot", store.run, name, task), lambda: _drawn(store, some, name))
    if drawn is None:
        raise NotFound(f"run {run!r} has no plot {name!r} of task {task!r}: nothing to draw yet")
    return drawn


def _drawn(store: Store, pairs: Sequence[PairReport], name: str) -> Plot | None:
    """The plot; of costs that of the first task that cost anything."""
    address = partial(trials_address, store.run)
    if name != "cost":
        return (matrix_plot if name == "matrix" else reasons)(pairs, address)
    prices = store.manifest().read_plan().all_prices()
    return next(iter(cost_plots(pairs, trial_facts(store), prices, address)), None)
