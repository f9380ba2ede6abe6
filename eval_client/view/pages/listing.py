"""The pages of all runs: their list, and the workers that they share."""

from http import HTTPStatus
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from eval_client.controller_tables import controller_tables
from eval_client.report.configuration_tables import run_head
from eval_client.store.connection import DatabaseError, reason
from eval_client.store.trials.rows import QueryError
from eval_client.view.rendering import link
from eval_client.view.runs import RunEntry
from eval_client.view.viewer import Viewer
from proctor.observability.redaction import redacted
from proctor.types import Value
from task_server.wire.errors import TaskServerError

PAGE = 50


class ListedRun(Value):
    """A run in the list. Where its store can't be read, `problem` says why."""

    run: str
    state: str
    created_at: str
    planned: int = 0
    scored: int = 0
    unscored: int = 0
    agents: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()
    """The lowest and the highest mean score of a pair; one where they are equal."""
    models: str = ""
    tags: tuple[str, ...] = ()
    problem: str = ""


class RunPage(NamedTuple):
    """Some of the runs, the newest first."""

    items: list[ListedRun]
    next: str | None
    total: int


def runs_page(viewer: Viewer, request: Request) -> Response:
    """The list of runs; redirects to the run if there is only one."""
    if viewer.runs.only is not None:
        return RedirectResponse(link("runs", viewer.runs.only), 307)
    return viewer.page("runs.html", "Runs", runs=read_runs(viewer, request.query_params.get("after", "")))


def read_runs(viewer: Viewer, after: str, size: int = PAGE) -> RunPage:
    """The runs after the one of this name. Raises QueryError where there is none."""
    entries = viewer.runs.entries()
    names = [entry.run for entry in entries]
    if after and after not in names:
        raise QueryError(f"after: there is no run {after!r}; leave it out")
    begin = names.index(after) + 1 if after else 0
    some = entries[begin : begin + size]
    more = begin + size < len(entries)
    return RunPage([_listed(viewer, entry) for entry in some], some[-1].run if more else None, len(entries))


def _listed(viewer: Viewer, entry: RunEntry) -> ListedRun:
    try:
        store = viewer.runs.open(entry.run)
        manifest = store.manifest()
        pairs, state = store.pair_totals(), viewer.runs.state(store)
    except (ValueError, DatabaseError) as error:
        problem = reason(error) if isinstance(error, DatabaseError) else str(error).partition("\n")[0]
        return ListedRun(run=entry.run, state="unreadable", created_at=entry.created_at, problem=redacted(problem))
    means = [pair.mean for pair in pairs if pair.mean is not None]
    return ListedRun(
        run=entry.run,
        state=state,
        created_at=entry.created_at,
        planned=sum(pair.planned for pair in pairs),
        scored=sum(pair.scored for pair in pairs),
        unscored=sum(pair.unscored for pair in pairs),
        agents=tuple(dict.fromkeys(pair.agent for pair in pairs)),
        tasks=tuple(dict.fromkeys(pair.task for pair in pairs)),
        scores=tuple(sorted({min(means), max(means)})) if means else (),
        models=dict(run_head(manifest)).get("model", ""),
        tags=manifest.tags,
    )


def workers_page(viewer: Viewer, _request: Request) -> Response:
    """Who holds and wants what of which workers, now; status 503 where the controller does not answer."""
    assert viewer.controller is not None
    url, tokens = viewer.controller
    try:
        tables, trouble = controller_tables(url, tokens), None
    except TaskServerError as error:
        tables, trouble = [], redacted(str(error))
    status = HTTPStatus.OK if trouble is None else HTTPStatus.SERVICE_UNAVAILABLE
    return viewer.page("workers.html", "Workers", status, place="workers", url=url, tables=tables, trouble=trouble)
