"""The table of a run's trials, and the trials of one sample."""

from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from eval_client.plan.plan import Plan
from eval_client.view.rendering import link
from eval_client.view.runs import NotFound
from eval_client.view.trials.query import NONE, SIZE, TrialQuery, trial_query
from eval_client.view.trials.rows import sample_trials
from eval_client.view.trials.search import find_trials
from eval_client.view.viewer import Viewer
from proctor.types import FinishReason


class SortHeading(NamedTuple):
    """A column's heading: what it sorts by, and the address that sorts by it."""

    title: str
    name: str
    numeric: bool
    order: str
    """`ascending`, `descending`, or `none` where the table is not sorted by it."""
    address: str


TITLES = (
    ("#", "id"),
    ("agent", "agent"),
    ("task", "task"),
    ("sample", "sample"),
    ("ep", "epoch"),
    ("score", "score"),
    ("reason", "reason"),
    ("turns", "turns"),
    ("tok in", "prompt_tokens"),
    ("tok out", "completion_tokens"),
    ("model s", ""),
    ("world s", ""),
    ("attempts", "attempts"),
    ("ended", "ended_at"),
)
"""(heading, sort); not every column can be sorted by."""
LEFT = ("agent", "task", "sample", "reason")


def trials_page(viewer: Viewer, request: Request) -> Response:
    """The trials that the filter selects."""
    store = viewer.open(request)
    query = trial_query(request.query_params)
    found, manifest = find_trials(store, query), store.manifest()
    return viewer.page(
        "trials.html",
        f"Trials of {store.run}",
        run=viewer.head(store),
        place="trials",
        query=query,
        carried=query.carried(),
        agents=[agent.name for agent in Plan.model_validate(manifest.plan).agents],
        tasks=list(manifest.tasks),
        reasons=[*FinishReason, NONE],
        headings=_headings(store.run, query),
        found=found,
        files=[(form, _address(store.run, query, f"trials.{form.lower()}")) for form in ("CSV", "JSONL")],
        first=_address(store.run, query) if query.after else None,
        next=_address(store.run, query, after=found.next) if found.next else None,
        filtered=query != TrialQuery(sort=query.sort, size=query.size, after=query.after),
    )


def sample_page(viewer: Viewer, request: Request) -> Response:
    """All trials of one sample. Raises StoreError."""
    store = viewer.open(request)
    task, sample = (request.query_params.get(name, "") for name in ("task", "sample"))
    rows = sample_trials(store, task, sample) if "\0" not in task + sample else []
    if not rows:
        raise NotFound(f"run {store.run!r} has no sample {sample!r} of a task {task!r}")
    return viewer.page(
        "sample.html",
        f"{sample} of {task}",
        run=viewer.head(store),
        place="sample",
        task=task,
        sample=sample,
        headings=_headings(store.run, None),
        rows=rows,
    )


def _headings(run: str, query: TrialQuery | None) -> list[SortHeading]:
    """The columns' headings; without a query none of them sorts, nor do those of a search in texts."""
    headings = []
    for title, name in TITLES:
        sort = query.sort if query is not None else ""
        order = "none" if sort.removeprefix("-") != name else "descending" if sort.startswith("-") else "ascending"
        sorts = query is not None and name and not query.text
        address = _address(run, query, sort=f"-{name}" if order == "ascending" else name) if query and sorts else ""
        headings.append(SortHeading(title, name, name not in LEFT, order, address))
    return headings


def _address(run: str, query: TrialQuery, place: str = "trials", **changed: str) -> str:
    """The address of the first page of a query, changed, or of its rows at another place."""
    size = {} if query.size == SIZE else {"size": str(query.size)}
    return link("runs", run, place, **{**query.carried(), **size, **changed})
