"""All rows that a filter of the table selects, as a file that is sent while it is made."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from eval_client.report.export import Row, csv_lines, json_lines
from eval_client.store.store import Store
from eval_client.view.trials.query import TrialQuery, trial_query
from eval_client.view.trials.rows import rows_of, select_ids
from eval_client.view.trials.search import with_text
from eval_client.view.viewer import Viewer

ROWS = 500
"""Rows that are read and sent at once."""


def trials_csv(viewer: Viewer, request: Request) -> Response:
    """The trials that the filter selects, as CSV. Raises StoreError, QueryError."""
    return _file(viewer, request, csv_lines, "trials.csv", "text/csv; charset=utf-8")


def trials_jsonl(viewer: Viewer, request: Request) -> Response:
    """The trials that the filter selects, as JSON, one a line. Raises StoreError, QueryError."""
    return _file(viewer, request, json_lines, "trials.jsonl", "application/x-ndjson")


def _file(
    viewer: Viewer, request: Request, lines: Callable[[Iterable[Row]], Iterator[str]], name: str, media_type: str
) -> Response:
    store = viewer.open(request)
    query = trial_query(request.query_params).model_copy(update={"after": ""})
    rows = _rows(store, query, select_ids(store, query))
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(_parts(lines(rows)), media_type=media_type, headers=headers)


def _rows(store: Store, query: TrialQuery, trials: list[int]) -> Iterator[Row]:
    """The rows of the trials that hold the query's text, in their order. No connection outlasts ROWS of them."""
    for start in range(0, len(trials), ROWS):
        some = trials[start : start + ROWS]
        if query.text:
            some = [trial for trial, holds in with_text(store, some, query.text) if holds]
        yield from (row.model_dump(mode="json") for row in rows_of(store, some))


def _parts(lines: Iterator[str]) -> Iterator[bytes]:
    while part := "".join(islice(lines, ROWS)):
        yield part.encode("utf-8", "backslashreplace")
