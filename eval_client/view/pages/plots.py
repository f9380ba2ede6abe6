"""One plot of a run, or of a comparison, as a picture of its own."""

from collections.abc import Sequence
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from eval_client.report.pair_report import PairReport
from eval_client.report.plots.cost import cost_plots
from eval_client.report.plots.matrix import matrix
from eval_client.report.plots.reasons import reasons
from eval_client.report.plots.svg import Plot
from eval_client.store.store import Store
from eval_client.store.trials.rows import QueryError
from eval_client.store.trials.scores import trial_facts
from eval_client.view.pages.compare import compared_plot
from eval_client.view.pages.overview import trials_address
from eval_client.view.runs import NotFound
from eval_client.view.viewer import Viewer

NAMES = ("matrix", "reasons", "cost", "differences")


def plot_svg(viewer: Viewer, request: Request) -> Response:
    """One plot as SVG. Raises NotFound, QueryError, CompareError, DatabaseError."""
    name, run = request.path_params["name"], request.query_params.get("run", "")
    if name not in NAMES:
        raise NotFound(f"there is no plot {name!r}; the plots are: {', '.join(NAMES)}")
    if name == "differences":
        return _picture(viewer, compared_plot(viewer, request))
    if not run:
        raise QueryError("run: name the run whose plot is wanted")
    store = viewer.runs.open(run)
    pairs, task = _pairs(viewer, store, request.query_params.get("task", ""))
    drawn = viewer.kept.get(("plot", store.run, name, task), lambda: _drawn(store, pairs, name))
    if drawn is None:
        raise NotFound(f"run {run!r} has no plot {name!r} of task {task!r}: nothing to draw yet")
    return _picture(viewer, drawn)


def _picture(viewer: Viewer, plot: Plot) -> Response:
    """The plot as a document of its own, with the viewer's style."""
    style = viewer.assets["view.css"].address
    sheet = f'<?xml-stylesheet type="text/css" href="{style}"?>\n'
    return Response((sheet + plot.svg).encode("utf-8", "backslashreplace"), media_type="image/svg+xml")


def _pairs(viewer: Viewer, store: Store, task: str) -> tuple[Sequence[PairReport], str]:
    """The pairs of a task, of all where none is named. Raises NotFound."""
    pairs = viewer.report(store).pairs
    tasks = tuple(dict.fromkeys(pair.task for pair in pairs))
    if task and task not in tasks:
        raise NotFound(f"run {store.run!r} has no task {task!r}; its tasks are: {', '.join(tasks)}")
    return [pair for pair in pairs if task in ("", pair.task)], task


def _drawn(store: Store, pairs: Sequence[PairReport], name: str) -> Plot | None:
    """The plot; of costs that of the first task that cost anything."""
    address = partial(trials_address, store.run)
    if name != "cost":
        return (matrix if name == "matrix" else reasons)(pairs, address)
    prices = store.manifest().read_plan().all_prices()
    return next(iter(cost_plots(pairs, trial_facts(store), prices, address)), None)
