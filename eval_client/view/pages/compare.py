"""Two agents compared, or all agents of a run: what `proctor compare` prints."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from eval_client.report.compare.compare import compare_run
from eval_client.report.compare.measure import Settings
from eval_client.report.compare.sides import (
    ACROSS,
    MOST_AGENTS,
    CompareError,
    NotComparable,
    agents_of,
    find_pairs,
    find_side,
    parse_reference,
)
from eval_client.report.compare.values import Comparison, Comparisons, comparison_table, letters_tables
from eval_client.report.plots.differences import differences
from eval_client.report.plots.svg import Plot
from eval_client.store.connection import DatabaseError, StoreError
from eval_client.store.store import Store
from eval_client.store.trials.rows import MAX_TEXT, QueryError, rows_of
from eval_client.store.trials.scores import trial_facts
from eval_client.view.rendering import link
from eval_client.view.runs import NotFound
from eval_client.view.viewer import Viewer
from proctor.tables.table import ResultTable

MOST_ANSWERS = 10
"""Samples of a task whose answers are shown."""
OFFERED_RUNS = 20
"""The newest runs, whose agents the form offers."""


class ComparisonQuery(NamedTuple):
    """What an address asks for. Without B, all agents of A's run are compared with each other."""

    a: str
    b: str
    tasks: tuple[str, ...]
    across: tuple[str, ...]


class ShownComparison(NamedTuple):
    """A comparison on the page."""

    found: Comparison
    table: ResultTable
    plot: Plot


def compare_page(viewer: Viewer, request: Request) -> Response:
    """The form to compare two runs, and the comparison or the reason why there is none. Raises QueryError."""
    query = _query(request)
    found, refusal, status = None, "", 200
    if query.a or query.b:
        try:
            found = _compared(viewer, query)
        except (CompareError, NotFound) as error:
            refusal, status = str(error), status_of(error)
    shown = shown_comparisons(found)
    return viewer.page(
        "compare.html",
        compared_title(shown),
        status,
        place="compare",
        query=query,
        offered=viewer.kept.get("offered runs", lambda: _offered(viewer)),
        all_across=ACROSS,
        refusal=refusal,
        found=shown,
        letters=letters_tables(found) if isinstance(found, Comparisons) else [],
        unlike=list(dict.fromkeys(text for each in shown for text in each.found.alike)),
        answers=_answers(viewer, found) if isinstance(found, Comparison) else [],
        sides=_side_names(found) if isinstance(found, Comparison) else (),
    )


def _answers(viewer: Viewer, found: Comparison) -> list[dict[str, Any]]:
    """For each task what both sides answered, on the samples whose scores in the first epoch differ most."""
    a, b = viewer.runs.open(found.a.run), viewer.runs.open(found.b.run)
    tables = []
    for each in found.tasks:
        ours, theirs = _first_epoch(a, found.a.agent, each.task), _first_epoch(b, found.b.agent, each.task_b)
        apart = {name: abs(ours[name][1] - theirs[name][1]) for name in ours if name in theirs}
        names = sorted((name for name in apart if apart[name]), key=lambda name: -apart[name])[:MOST_ANSWERS]
        mine, other_rows = (rows_of(store, [of[name][0] for name in names]) for store, of in ((a, ours), (b, theirs)))
        rows = [
            {"a": one, "b": other, "address": link("runs", a.run, "side", a=one.id, b=other.id) * (a.run == b.run)}
            for one, other in zip(mine, other_rows, strict=True)
        ]
        tables += [{"task": each.name, "rows": rows}] if rows else []
    return tables


def _side_names(found: Comparison) -> tuple[str, str]:
    a, b = found.a, found.b
    return (a.agent, b.agent) if a.agent != b.agent else (a.run, b.run)


def _first_epoch(store: Store, agent: str, task: str) -> dict[str, tuple[int, float]]:
    """sample -> the id and the score of its trial in the first epoch, where that is scored."""
    trials = trial_facts(store, task).get((agent, task), [])
    return {each.sample: (each.id, each.score) for each in trials if each.epoch == 0 and each.score is not None}


def compare_json(viewer: Viewer, request: Request) -> Response:
    """A comparison as `proctor compare --json` prints it. Raises CompareError, StoreError, QueryError."""
    found = _compared(viewer, _query(request))
    return Response(found.model_dump_json(), media_type="application/json")


def compared_plot(viewer: Viewer, request: Request) -> Plot:
    """The differences of two agents. Raises CompareError, StoreError, QueryError."""
    query = _query(request)
    if not query.b:
        raise QueryError("b: name the agent to compare with, as RUN:AGENT")
    found = _compared(viewer, query)
    return differences(found if isinstance(found, Comparison) else found.comparisons[0])


def status_of(error: CompareError | NotFound) -> int:
    """The status of a refusal: there is no such run, the address is wrong, or the sides can't be compared."""
    if isinstance(error, NotFound):
        return 404
    return 409 if isinstance(error, NotComparable) else 400


def _query(request: Request) -> ComparisonQuery:
    given = request.query_params
    found = ComparisonQuery(
        a=given.get("a", "").strip(),
        b=given.get("b", "").strip(),
        tasks=tuple(text for each in given.getlist("task") if (text := each.strip())),
        across=tuple(given.getlist("across")),
    )
    for name, text in (("a", found.a), ("b", found.b), *(("task", task) for task in found.tasks)):
        if len(text) > MAX_TEXT or "\0" in text:
            raise QueryError(f"{name}: at most {MAX_TEXT} characters, without NUL")
    for kind in found.across:
        if kind not in ACROSS:
            raise QueryError(f"across: {kind!r} is none of {', '.join(ACROSS)}")
    return found


def _compared(viewer: Viewer, query: ComparisonQuery) -> Comparison | Comparisons:
    """Raises CompareError, StoreError, DatabaseError."""

    def opened(run: str) -> Store:
        entries = viewer.runs.entries() if run == "latest" else []
        if run == "latest" and not entries:
            raise NotFound("there is no run yet")
        return viewer.runs.open(entries[0].run if entries else run)

    def compare() -> Comparison | Comparisons:
        settings = Settings(across=query.across, tasks=query.tasks)
        if not query.a:
            raise CompareError("a: no agent is named; write RUN:AGENT")
        if not query.b:
            return compare_run(find_pairs(parse_reference(query.a), None, opened), settings, lettered=True)
        a, b = (find_side(parse_reference(side), opened) for side in (query.a, query.b))
        return compare_run([(a, b)], settings, lettered=False).comparisons[0]

    return viewer.kept.get(query, compare)


def _offered(viewer: Viewer) -> list[dict[str, Any]]:
    """The newest runs that can be read with their agents, and whether all pairs of these can be compared."""
    offered = []
    for entry in viewer.runs.entries()[:OFFERED_RUNS]:
        with contextlib.suppress(StoreError, DatabaseError):
            agents = agents_of(viewer.runs.open(entry.run).manifest())
            offered.append({"run": entry.run, "agents": agents, "pairs": 2 <= len(agents) <= MOST_AGENTS})
    return offered


def compared_title(shown: Sequence[ShownComparison]) -> str:
    """Who is compared; without anybody, what the page is for."""
    if not shown:
        return "Compare agents"
    first = shown[0].found
    return f"{first.a.agent} against {first.b.agent}" if len(shown) == 1 else f"{first.a.run}: agents compared"


def shown_comparisons(
    found: Comparison | Comparisons | None, told: Callable[[Comparison], Comparison] = lambda one: one
) -> list[ShownComparison]:
    """All comparisons as they are `told`, in the order of a page."""
    each = () if found is None else [found] if isinstance(found, Comparison) else found.comparisons
    return [ShownComparison(one, comparison_table(one), differences(one)) for one in map(told, each)]
