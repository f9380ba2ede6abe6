"""One trial: its score with the evidence, its attempts and its turns, and how its world draws it."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import PurePath
from typing import NamedTuple, TypeVar

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from eval_client.report.task_environment import AnswerReader, answer_reader, environment_of
from eval_client.report.trial_markdown import (
    EVIDENCE,
    Showing,
    answer_markdown,
    attempts_markdown,
    evidence_markdown,
    evidence_text,
    sent_markdown,
    turn_facts,
    turn_texts,
)
from eval_client.store.connection import StoreError
from eval_client.store.store import Store
from eval_client.store.trials.rows import (
    MAX_TRIAL,
    Neighbours,
    QueryError,
    TrialRow,
    neighbours,
    sample_trials,
    trial_query,
)
from eval_client.store.trials.trajectory import ConversationTurn, Trajectory, conversation, read_trajectory
from eval_client.store.values import Unreadable
from eval_client.view.rendering import MEDIA_TYPES, from_markdown, link
from eval_client.view.runs import NotFound
from eval_client.view.viewer import Viewer
from proctor.types import Drawing

log = logging.getLogger(__name__)

PAGE = 50
"""Turns of a page."""
MAX_DIGITS = 9
Default = TypeVar("Default", int, None)
MOST_SAME = 12
"""Trials that a page names; the rest are a link away."""


class PageTurn(NamedTuple):
    """A turn: what it cost, what was sent, and the answer."""

    told: ConversationTurn
    facts: tuple[str, ...]
    sent: Markup
    answer: Markup


def trial_page(viewer: Viewer, request: Request) -> Response:
    """A trial with a page of its turns. Raises StoreError, QueryError."""
    store, given = viewer.open(request), request.query_params
    journal, unfolded = whole_number(given, "journal", None), whole_number(given, "earlier", 0)
    trial = found_trial(store, request.path_params["trial"], journal)
    manifest = store.manifest()
    wanted = unfolded or whole_number(given, "turn", 0)
    last = max(len(trial.turns) - 1, 0)
    page = next((index for index, each in enumerate(trial.turns) if each.turn >= wanted), last) // PAGE
    query, world = trial_query(given), environment_of(manifest, trial.task)
    parts = (trial.turns[first : first + PAGE] for first in range(0, len(trial.turns), PAGE))
    ends, here = [(part[0].turn, part[-1].turn) for part in parts], ("runs", trial.run, "trials", trial.trial)
    same = same_sample(store, trial, [agent.name for agent in manifest.read_plan().agents])
    place = page_place(trial, journal=journal, **query.carried())
    return viewer.page(
        "trial.html",
        f"{trial.agent} × {trial.task} × {trial.sample}",
        run=viewer.head(store, (trial.agent,), (trial.task,)),
        place="trial",
        trial=trial,
        turns=list(shown_turns(trial, page, answer_reader(manifest, trial.task), place, unfolded)),
        pages=turn_pages(ends, page, lambda first: link(*here, journal=journal, turn=first, **query.carried())),
        carried=query.carried(),
        beside=Neighbours(None, None) if query.text else neighbours(store, query, trial.trial),
        same=same[:MOST_SAME],
        same_more=max(0, len(same) - MOST_SAME),
        evidence="" if trial.finish is None else from_markdown(evidence_markdown(trial.finish, place)),
        drawing=world.drawing_title if world is not None and trial.finish is not None else None,
        attempts=from_markdown(attempts_markdown(trial, place)),
        others=[each for each in trial.journals if each != trial.journal],
    )


def page_place(trial: Trajectory, **carried: object) -> Showing:
    """How a page shows a trial: long texts are cut, and what is not shown is a link away."""

    def refer(turn: int, part: str, words: str) -> str:
        address = ("runs", trial.run, "trials", trial.trial)
        if part == "earlier":
            return f"[{words} ▸]({link(*address, **carried, earlier=turn)}#turn-{turn})"
        return f"[{words}]({link(*address, 'raw', journal=trial.journal, turn=turn, part=part)})"

    return Showing(refer, cut=True)


def shown_turns(
    trial: Trajectory, page: int, read: AnswerReader, place: Showing, unfolded: int = 0
) -> Iterator[PageTurn]:
    """The turns of a page; `unfolded` is the turn whose earlier messages are shown too."""
    for told in islice(conversation(trial.turns, page * PAGE), PAGE):
        sent = from_markdown(sent_markdown(told, place, whole=told.turn == unfolded))
        yield PageTurn(told, tuple(turn_facts(told, place)), sent, from_markdown(answer_markdown(told, read, place)))


def raw_text(viewer: Viewer, request: Request) -> Response:
    """One text of a turn, or the evidence of the score, whole and as it is stored. Raises StoreError, QueryError."""
    given, part = request.query_params, request.query_params.get("part", "")
    turn = whole_number(given, "turn", 0)
    trial = found_trial(viewer.open(request), request.path_params["trial"], whole_number(given, "journal", None))
    if part == EVIDENCE and trial.finish is not None:
        found: str | None = evidence_text(trial.finish.detail)
    else:
        turns = (told for told in conversation(trial.turns) if told.turn == turn)
        found = next((dict(turn_texts(told)).get(part) for told in turns), None)
    if found is None:
        raise NotFound(f"trial {trial.trial} has no part {part!r} of turn {turn}")
    name = f'attachment; filename="trial-{trial.trial}-turn-{turn}.txt"'
    content = found.encode("utf-8", "backslashreplace")
    return Response(content, media_type="text/plain; charset=utf-8", headers={"Content-Disposition": name})


def found_trial(store: Store, number: str, journal: int | None) -> Trajectory:
    """A trial by its number in an address. Raises NotFound where there is none, StoreError."""
    if not _is_count(number) or int(number) > MAX_TRIAL:
        raise NotFound(f"{number!r} is no trial's number")
    try:
        return read_trajectory(store, int(number), journal)
    except Unreadable:
        raise
    except StoreError as error:
        raise NotFound(str(error)) from error


def whole_number(given: Mapping[str, str], name: str, default: Default) -> int | Default:
    """A number of an address, or the default where it has none. Raises QueryError."""
    text = given.get(name, "")
    if text and not _is_count(text):
        raise QueryError(f"{name}: {text!r} is no whole number")
    return int(text) if text else default


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS


def turn_pages(ends: Sequence[tuple[int, int]], current: int, address: Callable[[int], str]) -> list[dict[str, object]]:
    """The pages of turns, by the first and the last turn of each; none where one page has them all."""
    pages: list[dict[str, object]] = []
    for number, (first, last) in enumerate(ends):
        pages.append({"label": f"{first} to {last}", "address": address(first), "current": number == current})
    return pages if len(pages) > 1 else []


def same_sample(store: Store, trial: Trajectory, agents: list[str]) -> list[TrialRow]:
    """The other trials of a trial's sample: its own agent's first, then those of `agents` in their order.

    The trial's epoch comes first within an agent. `agents` lets the database read its index on (run, agent, task).
    """
    found = [row for row in sample_trials(store, trial.task, trial.sample, agents) if row.id != trial.trial]
    return sorted(
        found,
        key=lambda each: (each.agent != trial.agent, agents.index(each.agent), each.epoch != trial.epoch, each.epoch),
    )


def drawing_page(viewer: Viewer, request: Request) -> Response:
    """The drawing of a trial. Raises StoreError; NotFound, with what to do, if it has none."""
    store = viewer.open(request)
    trial = found_trial(store, request.path_params["trial"], None)
    title, drawn = _drawn(viewer, store, trial)
    return viewer.page(
        "drawing.html",
        f"{title}: {trial.agent} × {trial.task} × {trial.sample}",
        run=viewer.head(store, (trial.agent,), (trial.task,)),
        place="drawing",
        trial=trial,
        name=title,
        body=Markup(drawn.body),  # the world escapes it, and the policy runs no script in it
    )


def drawing_part(viewer: Viewer, request: Request) -> Response:
    """The style or the script of a drawing. Raises StoreError."""
    store = viewer.open(request)
    _, drawn = _drawn(viewer, store, found_trial(store, request.path_params["trial"], None))
    ending = PurePath(request.url.path).suffix
    return Response(drawn.style if ending == ".css" else drawn.script, media_type=MEDIA_TYPES[ending])


def _drawn(viewer: Viewer, store: Store, trial: Trajectory) -> tuple[str, Drawing]:
    """The title and the drawing of a trial. Whatever the world's code raises costs the drawing, not the viewer."""
    environment = environment_of(store.manifest(), trial.task)
    title = environment.drawing_title if environment is not None else None
    if environment is None or title is None or trial.finish is None:
        raise NotFound(f"trial {trial.trial} has no drawing: its world makes none, or it is not over yet")
    finish, draw = trial.finish, environment.draw

    def turn_address(turn: int) -> str:
        return f"{link('runs', trial.run, 'trials', trial.trial, turn=turn)}#turn-{turn}"

    try:
        drawn = viewer.kept.get(("drawing", trial.run, trial.trial), lambda: draw(finish, turn_address), finish)
    except ValueError as error:
        raise NotFound(f"trial {trial.trial}: {error}") from error
    except Exception as error:
        log.warning("%s.draw failed", type(environment).__name__, exc_info=True)
        raise NotFound(f"trial {trial.trial} can't be drawn; the viewer's log says why") from error
    return title, drawn
