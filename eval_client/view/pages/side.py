"""Two trials side by side, turn by turn."""

from collections.abc import Iterator
from itertools import zip_longest

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from eval_client.report.task_environment import answer_reader
from eval_client.store.store import Store
from eval_client.store.trials.rows import QueryError, sample_trials
from eval_client.store.trials.trajectory import Trajectory, first_difference
from eval_client.view.pages.trial import (
    PAGE,
    PageTurn,
    found_trial,
    page_place,
    shown_turns,
    turn_pages,
    whole_number,
)
from eval_client.view.rendering import link
from eval_client.view.runs import NotFound
from eval_client.view.viewer import Viewer


def side_page(viewer: Viewer, request: Request) -> Response:
    """Two trials of one sample of a run, side by side; without a turn it redirects to the first that differs.

    Raises StoreError, QueryError.
    """
    store, given = viewer.open(request), request.query_params
    left = found_trial(store, given.get("a", ""), None)
    right = found_trial(store, given.get("b") or str(_companion(store, left)), None)
    if (left.task, left.sample) != (right.task, right.sample):
        raise QueryError(f"b: trial {right.trial} is of another sample than trial {left.trial}; name one of the same")
    first = first_difference(left.turns, right.turns)
    turn, here = whole_number(given, "turn", 0), ("runs", store.run, "side")
    most = max(len(left.turns), len(right.turns))
    if not (given.get("b") and turn) and most:
        turn = most if first is None else first + 1
        address = link(*here, a=left.trial, b=right.trial, turn=turn)
        return RedirectResponse(f"{address}#turn-{turn}", 307)
    page = max(0, min(turn, most) - 1) // PAGE
    ends = [(begin, min(most, begin + PAGE - 1)) for begin in range(1, most + 1, PAGE)]
    return viewer.page(
        "side.html",
        f"{_label(left)} and {_label(right)}",
        run=viewer.head(store, (left.agent, right.agent), (left.task, right.task)),
        place="side",
        trials=(("A", left), ("B", right)),
        choices=list(_choices(store, left)),
        first=None if first is None else first + 1,
        turns=list(_turns(store, left, right, page, first)),
        pages=turn_pages(ends, page, lambda first: link(*here, a=left.trial, b=right.trial, turn=first)),
    )


def _companion(store: Store, trial: Trajectory) -> int:
    """The trial of the same sample that is best set beside one: over, of another agent, in the same epoch."""
    others = [row for row in sample_trials(store, trial.task, trial.sample) if row.id != trial.trial]
    if not others:
        raise NotFound(f"b: trial {trial.trial} is the only one of its sample; name another trial of the run as b")
    return min(others, key=lambda row: (row.reason is None, row.agent == trial.agent, row.epoch != trial.epoch)).id


def _choices(store: Store, trial: Trajectory) -> Iterator[tuple[int, str]]:
    """(id, name) of the trials of a trial's sample."""
    for row in sample_trials(store, trial.task, trial.sample):
        outcome = (row.reason or "not over yet") if row.score is None else f"{row.score:.3f}"
        yield row.id, f"{row.agent}, epoch {row.epoch}: {outcome}"


def _label(trial: Trajectory) -> str:
    return f"{trial.agent} × {trial.task}"


def _turns(
    store: Store, left: Trajectory, right: Trajectory, page: int, first: int | None
) -> Iterator[dict[str, object]]:
    """The turns of a page. Sides with equal digests were shown the same; a trial may be over before the other."""
    manifest = store.manifest()
    sides = (shown_turns(each, page, answer_reader(manifest, each.task), page_place(each)) for each in (left, right))
    for place, (a, b) in enumerate(zip_longest(*sides), page * PAGE):
        shared, alike = None, False
        if a is not None and b is not None:
            alike = a.told.action is not None and _said(a) == _said(b)
            if a.told.digest == b.told.digest:  # one side's history may already have held some of the messages
                shared = max((a, b), key=lambda side: len(side.told.messages)).sent
        told = {"number": place + 1, "sides": (("A", a), ("B", b)), "shared": shared, "same_answer": alike}
        yield {**told, "first_difference": place == first}


def _said(turn: PageTurn) -> object:
    """An answer without what differs between any two, such as the ids of calls."""
    action = turn.told.action
    calls = () if action is None else tuple((call.name, call.arguments) for call in action.tool_calls)
    return None if action is None else action.content, calls
