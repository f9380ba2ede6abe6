"""The table of a run's trials, as a page and as files, and the trials of one sample."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import PurePath

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from eval_client.report.exports.write import Row, csv_lines, json_lines
from eval_client.report.trial_table import COLUMNS, USUAL, TrialColumn, chosen_columns, shown_columns
from eval_client.store.store import Store
from eval_client.store.trials.rows import NONE, SIZE, SORTS, TrialQuery, rows_of, sample_trials, select_ids, trial_query
from eval_client.store.trials.search import find_trials, with_text
from eval_client.view.rendering import link
from eval_client.view.runs import NotFound
from eval_client.view.viewer import Viewer
from proctor.types import WORDS, FinishReason

ROWS = 500
"""Rows of a file that are read and sent at once."""
JSONL = "application/x-ndjson"


def trials_page(viewer: Viewer, request: Request) -> Response:
    """The trials that the filter selects."""
    store = viewer.open(request)
    ticked = ",".join(request.query_params.getlist("columns"))
    query = trial_query({**request.query_params, "columns": "" if ticked == USUAL else ticked})
    manifest = store.manifest()
    plan = manifest.read_plan()
    columns, found = shown_columns(query, plan), find_trials(store, query)
    return viewer.page(
        "trials.html",
        f"Trials of {store.run}",
        run=viewer.head(store),
        place="trials",
        query=query,
        carried=query.carried(),
        agents=[agent.name for agent in plan.agents],
        tasks=list(manifest.tasks),
        reasons=[*FinishReason, NONE],
        headings=_headings(store.run, query, columns),
        columns=columns,
        chosen=chosen_columns(query.columns),
        all_columns=COLUMNS,
        found=found,
        files=[(form, _address(store.run, query, f"trials.{form.lower()}")) for form in ("CSV", "JSONL")],
        first=_address(store.run, query) if query.after else None,
        next=_address(store.run, query, after=found.next) if found.next else None,
        filtered=query != TrialQuery(sort=query.sort, size=query.size, after=query.after, columns=query.columns),
    )


def sample_page(viewer: Viewer, request: Request) -> Response:
    """All trials of one sample. Raises StoreError."""
    store = viewer.open(request)
    task, sample = (request.query_params.get(name, "") for name in ("task", "sample"))
    rows = sample_trials(store, task, sample) if "\0" not in task + sample else []
    if not rows:
        raise NotFound(f"run {store.run!r} has no sample {sample!r} of a task {task!r}")
    columns = shown_columns(TrialQuery(task=task), store.manifest().read_plan())
    return viewer.page(
        "sample.html",
        f"{sample} of {task}",
        run=viewer.head(store),
        place="sample",
        task=task,
        sample=sample,
        headings=_headings(store.run, None, columns),
        columns=columns,
        rows=rows,
    )


def _headings(run: str, query: TrialQuery | None, columns: Sequence[TrialColumn]) -> list[dict[str, object]]:
    """The columns' headings, with the order of each and the address that sorts by it.

    Without a query none of them sorts, nor do those of a search in texts.
    """
    headings = []
    for column in columns:
        name = column.name if column.name in SORTS else ""
        sort = query.sort if query is not None else ""
        sorted_by = name and sort.removeprefix("-") == name
        order = "none" if not sorted_by else "descending" if sort.startswith("-") else "ascending"
        sorts = query is not None and name and not query.text
        address = _address(run, query, sort=f"-{name}" if order == "ascending" else name) if query and sorts else ""
        headings.append({"title": column.title, "numeric": bool(column.form), "order": order, "address": address})
    return headings


def _address(run: str, query: TrialQuery, place: str = "trials", **changed: str) -> str:
    """The address of the first page of a query, changed, or of its rows at another place."""
    size = {} if query.size == SIZE else {"size": str(query.size)}
    return link("runs", run, place, **{**query.carried(), **size, **changed})


def trials_file(viewer: Viewer, request: Request) -> Response:
    """The trials that the filter selects, as CSV or as JSON, one a line. Raises StoreError, QueryError."""
    store, name = viewer.open(request), PurePath(request.url.path).name
    query = trial_query(request.query_params).model_copy(update={"after": ""})
    rows = _rows(store, query, select_ids(store, query))
    lines, media_type = (csv_lines, "text/csv; charset=utf-8") if name.endswith(".csv") else (json_lines, JSONL)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(_parts(lines(rows)), media_type=media_type, headers=headers)


def _rows(store: Store, query: TrialQuery, trials: list[int]) -> Iterator[Row]:
    """The rows of the trials that hold the query's text, in their order, without what was asked and answered.

    No connection outlasts ROWS of them.
    """
    for start in range(0, len(trials), ROWS):
        some = trials[start : start + ROWS]
        if query.text:
            some = [trial for trial, holds in with_text(store, some, query.text) if holds]
        yield from (row.model_dump(mode="json", exclude={*WORDS}) for row in rows_of(store, some))


def _parts(lines: Iterator[str]) -> Iterator[bytes]:
    while part := "".join(islice(lines, ROWS)):
        yield part.encode("utf-8", "backslashreplace")
