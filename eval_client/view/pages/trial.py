"""One trial: its score with the evidence, its attempts and its turns."""

import json
from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from eval_client.plan.plan import Plan
from eval_client.report.conversation import conversation
from eval_client.report.readings import answer_reader, environment_of
from eval_client.report.trajectory import Trajectory, read_trajectory
from eval_client.store.connection import StoreError
from eval_client.store.store import Store
from eval_client.view.pages.same_sample import same_sample
from eval_client.view.pages.turns import PAGE, page_of, page_text, part_of, shown_turns
from eval_client.view.rendering import link
from eval_client.view.runs import NotFound
from eval_client.view.trials.query import MAX_TRIAL, QueryError, TrialQuery, trial_query
from eval_client.view.trials.rows import Neighbours, neighbours
from eval_client.view.viewer import Viewer
from proctor.types import Finish

MAX_DIGITS = 9
Default = TypeVar("Default", int, None)
EVIDENCE = "evidence"
"""The part of a trial, in addresses of whole texts, that its score rests on."""


class TurnPage(NamedTuple):
    """A page of turns in the list of pages."""

    label: str
    address: str
    current: bool


class TurnPlace(NamedTuple):
    """Where in a trial a page is: what its address asks for."""

    journal: int | None
    turn: int
    unfolded: int
    """The turn whose earlier messages are shown; 0 for none."""


def trial_page(viewer: Viewer, request: Request) -> Response:
    """A trial with a page of its turns. Raises StoreError, QueryError."""
    store, place = viewer.open(request), _place(request.query_params)
    trial = found_trial(store, request.path_params["trial"], place.journal)
    manifest = store.manifest()
    page = page_of(trial.turns, place.unfolded or place.turn)
    query, world = trial_query(request.query_params), environment_of(manifest, trial.task)
    return viewer.page(
        "trial.html",
        f"{trial.agent} × {trial.task} × {trial.sample}",
        run=viewer.head(store),
        place="trial",
        trial=trial,
        asked=place,
        turns=list(shown_turns(trial.turns, page, place.unfolded, answer_reader(manifest, trial.task))),
        pages=_pages(trial, place, page, query),
        carried=query.carried(),
        beside=Neighbours(None, None) if query.text else neighbours(store, query, trial.trial),
        same=same_sample(store, trial, [agent.name for agent in Plan.model_validate(manifest.plan).agents]),
        evidence=None if trial.finish is None else page_text(_evidence(trial.finish), EVIDENCE),
        drawing=world.drawing_title if world is not None and trial.finish is not None else None,
        lost=[each for each in trial.attempts if each.outcome != "finished"],
        others=[each for each in trial.journals if each != trial.journal],
    )


def raw_text(viewer: Viewer, request: Request) -> Response:
    """One text of a turn, or the evidence of the score, whole and as it is stored. Raises StoreError, QueryError."""
    place, part = _place(request.query_params), request.query_params.get("part", "")
    trial = found_trial(viewer.open(request), request.path_params["trial"], place.journal)
    if part == EVIDENCE and trial.finish is not None:
        found: str | None = _evidence(trial.finish)
    else:
        found = next((part_of(told, part) for told in conversation(trial.turns) if told.turn == place.turn), None)
    if found is None:
        raise NotFound(f"trial {trial.trial} has no part {part!r} of turn {place.turn}")
    name = f'attachment; filename="trial-{trial.trial}-turn-{place.turn}.txt"'
    content = found.encode("utf-8", "backslashreplace")
    return Response(content, media_type="text/plain; charset=utf-8", headers={"Content-Disposition": name})


def _evidence(finish: Finish) -> str:
    """What the environment's score rests on, as JSON."""
    return json.dumps(finish.detail, ensure_ascii=False, indent=2)


def found_trial(store: Store, number: str, journal: int | None) -> Trajectory:
    """A trial by its number in an address. Raises NotFound where there is none, StoreError."""
    if not _is_count(number) or int(number) > MAX_TRIAL:
        raise NotFound(f"{number!r} is no trial's number")
    try:
        return read_trajectory(store, int(number), journal)
    except StoreError as error:
        raise NotFound(str(error)) from error


def _place(given: Mapping[str, str]) -> TurnPlace:
    return TurnPlace(
        whole_number(given, "journal", None), whole_number(given, "turn", 0), whole_number(given, "earlier", 0)
    )


def whole_number(given: Mapping[str, str], name: str, default: Default) -> int | Default:
    """A number of an address, or the default where it has none. Raises QueryError."""
    text = given.get(name, "")
    if text and not _is_count(text):
        raise QueryError(f"{name}: {text!r} is no whole number")
    return int(text) if text else default


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS


def _pages(trial: Trajectory, place: TurnPlace, current: int, query: TrialQuery) -> list[TurnPage]:
    """The pages of a trial's turns; none where one page has them all."""
    firsts = range(0, len(trial.turns), PAGE)
    if len(firsts) < 2:
        return []
    pages = []
    for number, first in enumerate(firsts):
        turns = trial.turns[first : first + PAGE]
        asked = {"journal": place.journal, "turn": turns[0].turn, **query.carried()}
        address = link("runs", trial.run, "trials", trial.trial, **asked)
        pages.append(TurnPage(f"{turns[0].turn} to {turns[-1].turn}", address, number == current))
    return pages
