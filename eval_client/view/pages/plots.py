"""The plots of a run: scores and reasons over all tasks, and costs, turns and learning curves of one."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from eval_client.plan.plan import Plan
from eval_client.report.html import figures
from eval_client.report.html.facts import trial_facts
from eval_client.report.plots.svg import Plot
from eval_client.report.report import PairReport
from eval_client.store.store import Store
from eval_client.view.pages.compare import compared_plot
from eval_client.view.rendering import link
from eval_client.view.runs import NotFound
from eval_client.view.trials.query import QueryError
from eval_client.view.viewer import Viewer

MOST_PAIRS = 60
"""In a larger run the reasons are shown task by task."""
OF_RUN = ("matrix", "reasons")
NAMES = (*OF_RUN, "cost", "turns", "learning", "differences")


class RunPlots(NamedTuple):
    """The plots of a page."""

    task: str
    """The task that `of_task` is about."""
    tasks: tuple[str, ...]
    """All tasks of the run."""
    of_run: tuple[Plot, ...]
    of_task: tuple[Plot, ...]
    """Empty where nothing is scored."""


def plots_page(viewer: Viewer, request: Request) -> Response:
    """The plots of a run and of one of its tasks, by default the first. Raises NotFound, SQLAlchemyError."""
    store = viewer.open(request)
    plots = _plots(viewer, store, request.query_params.get("task", ""))
    return viewer.page("run_plots.html", f"Plots of {store.run}", run=viewer.head(store), place="plots", plots=plots)


def plot_svg(viewer: Viewer, request: Request) -> Response:
    """One plot as SVG. Raises NotFound, QueryError, CompareError, SQLAlchemyError."""
    name, run = request.path_params["name"], request.query_params.get("run", "")
    if name not in NAMES:
        raise NotFound(f"there is no plot {name!r}; the plots are: {', '.join(NAMES)}")
    if name == "differences":
        return _picture(viewer, compared_plot(viewer, request))
    if not run:
        raise QueryError("run: name the run whose plot is wanted")
    plots = _plots(viewer, viewer.runs.open(run), request.query_params.get("task", ""))
    drawn = next((plot for plot in (*plots.of_run, *plots.of_task) if plot.name == name), None)
    if drawn is None:
        raise NotFound(f"run {run!r} has no plot {name!r} of task {plots.task!r}: nothing to draw yet")
    return _picture(viewer, drawn)


def _picture(viewer: Viewer, plot: Plot) -> Response:
    """The plot as a document of its own, with the viewer's style."""
    style = viewer.assets["view.css"].address
    sheet = f'<?xml-stylesheet type="text/css" href="{style}"?>\n'
    return Response((sheet + plot.svg).encode("utf-8", "backslashreplace"), media_type="image/svg+xml")


def _plots(viewer: Viewer, store: Store, task: str) -> RunPlots:
    pairs = viewer.report(store).pairs
    tasks = tuple(dict.fromkeys(pair.task for pair in pairs))
    if task and task not in tasks:
        raise NotFound(f"run {store.run!r} has no task {task!r}; its tasks are: {', '.join(tasks)}")
    chosen = task or next((pair.task for pair in pairs if pair.scored), tasks[0] if tasks else "")
    return viewer.kept.get(("plots", store.run, chosen), lambda: _drawn(store, pairs, tasks, chosen))


def _drawn(store: Store, pairs: Sequence[PairReport], tasks: tuple[str, ...], task: str) -> RunPlots:
    address = partial(_address, store.run)
    of_task = [pair for pair in pairs if pair.task == task]
    manifest = store.manifest()
    prices = Plan.model_validate(manifest.plan).all_prices()
    facts = trial_facts(store, task)
    found = figures.task_plots(of_task, facts, prices, manifest.resumed_at, address)
    return RunPlots(
        task,
        tasks,
        (
            figures.matrix(pairs, address),
            figures.reasons(pairs if len(pairs) <= MOST_PAIRS else of_task, address),
        ),
        tuple(plot for each in found for plot in each.plots),
    )


def _address(run: str, agent: str, task: str, **selected: str) -> str:
    return link("runs", run, "trials", agent=agent, task=task, **selected)
