"""Two trials side by side, turn by turn."""

from itertools import zip_longest
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from eval_client.report.conversation import first_difference
from eval_client.report.readings import answer_reader
from eval_client.report.trajectory import Trajectory
from eval_client.store.store import Store
from eval_client.view.pages.trial import TurnPage, found_trial, whole_number
from eval_client.view.pages.turns import PAGE, PageMessage, PageTurn, shown_turns
from eval_client.view.rendering import link
from eval_client.view.runs import NotFound
from eval_client.view.trials.rows import TrialRow, sample_trials
from eval_client.view.viewer import Viewer


class SharedMessages(NamedTuple):
    """What both trials were shown in a turn."""

    trial: Trajectory
    """The trial that the addresses of long texts lead to."""
    messages: tuple[PageMessage, ...]


class SideTurn(NamedTuple):
    """The turns of both trials with one number; None where a trial is over before."""

    number: int
    left: PageTurn | None
    right: PageTurn | None
    shared: SharedMessages | None
    """None where they were shown different things."""
    first_difference: bool
    """Whether this is the first turn in which they were shown different things."""
    same_answer: bool

    @property
    def sides(self) -> tuple[tuple[str, PageTurn | None], ...]:
        """The letter of each side, with its turn."""
        return ("A", self.left), ("B", self.right)


def side_page(viewer: Viewer, request: Request) -> Response:
    """Two trials of a run, side by side; without a turn it redirects to the first that differs.

    Raises StoreError, QueryError.
    """
    store, given = viewer.open(request), request.query_params
    left = found_trial(store, given.get("a", ""), None)
    right = found_trial(store, given.get("b") or str(_companion(store, left)), None)
    first = first_difference(left.turns, right.turns)
    turn = whole_number(given, "turn", 0)
    most = max(len(left.turns), len(right.turns))
    if not (given.get("b") and turn) and most:
        turn = most if first is None else first + 1
        address = link("runs", store.run, "side", a=left.trial, b=right.trial, turn=turn)
        return RedirectResponse(f"{address}#turn-{turn}", 307)
    page = max(0, min(turn, most) - 1) // PAGE
    return viewer.page(
        "side.html",
        f"{_label(left)} and {_label(right)}",
        run=viewer.head(store),
        place="side",
        trials=(("A", left), ("B", right)),
        choices=_choices(store, left, right),
        first=None if first is None else first + 1,
        turns=_turns(store, left, right, page, first),
        pages=_pages(left, right, most, page),
    )


def _companion(store: Store, trial: Trajectory) -> int:
    """The trial of the same sample that is best set beside one: over, of another agent, in the same epoch."""
    others = [row for row in sample_trials(store, trial.task, trial.sample) if row.id != trial.trial]
    if not others:
        raise NotFound(f"b: trial {trial.trial} is the only one of its sample; name another trial of the run as b")
    return min(others, key=lambda row: (row.reason is None, row.agent == trial.agent, row.epoch != trial.epoch)).id


def _choices(store: Store, left: Trajectory, right: Trajectory) -> tuple[tuple[int, str], ...]:
    """(id, name) of the trials that can be chosen: those of the left one's sample, and the right one."""
    found = {row.id: _choice(row) for row in sample_trials(store, left.task, left.sample)}
    return tuple({**found, right.trial: found.get(right.trial, f"{_label(right)}, {right.sample}")}.items())


def _choice(row: TrialRow) -> str:
    outcome = row.reason or "not over yet"
    return f"{row.agent}, epoch {row.epoch}: {outcome if row.score is None else f'{row.score:.3f}'}"


def _label(trial: Trajectory) -> str:
    return f"{trial.agent} × {trial.task}"


def _turns(store: Store, left: Trajectory, right: Trajectory, page: int, first: int | None) -> list[SideTurn]:
    """The turns of a page. Sides with equal digests were shown the same."""
    found = []
    manifest = store.manifest()
    both = zip_longest(
        *(shown_turns(each.turns, page, 0, answer_reader(manifest, each.task)) for each in (left, right))
    )
    for place, (a, b) in enumerate(both, page * PAGE):
        shared, alike = None, False
        if a is not None and b is not None:
            alike = _said(a) == _said(b)
            if a.told.digest == b.told.digest:  # one side's history may already have held some of the messages
                sides = (SharedMessages(left, a.messages), SharedMessages(right, b.messages))
                shared = max(sides, key=lambda side: len(side.messages))
        found.append(SideTurn(place + 1, a, b, shared, place == first, alike))
    return found


def _said(turn: PageTurn) -> object:
    """An answer without what differs between any two, such as the ids of calls."""
    action = turn.told.action
    calls = () if action is None else tuple((call.name, call.arguments) for call in action.tool_calls)
    return turn.told.stop, None if action is None else action.content, calls


def _pages(left: Trajectory, right: Trajectory, most: int, current: int) -> list[TurnPage]:
    """The pages of turns; none where one page has them all."""
    pages = []
    for number, first in enumerate(range(1, most + 1, PAGE)):
        address = link("runs", left.run, "side", a=left.trial, b=right.trial, turn=first)
        pages.append(TurnPage(f"{first} to {min(most, first + PAGE - 1)}", address, number == current))
    return pages if len(pages) > 1 else []
