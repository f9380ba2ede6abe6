"""The pages' values as JSON, for programs."""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from eval_client.core import Pair
from eval_client.core.statistics.samples import Interval
from eval_client.report.compare.compare import Letters
from eval_client.report.pair_report import PairReport
from eval_client.report.score_matrix import score_bounds
from eval_client.report.task_environment import AnswerReader, answer_reader, turn_facts
from eval_client.store.trials.rows import MAX_SIZE, SIZE, QueryError, trial_query
from eval_client.store.trials.scores import trial_facts
from eval_client.store.trials.search import find_trials
from eval_client.store.trials.trajectory import ConversationTurn, conversation
from eval_client.view.pages.listing import read_runs
from eval_client.view.pages.overview import kept_letters, scores_stamp
from eval_client.view.pages.trial import found_trial, whole_number
from eval_client.view.viewer import Viewer
from proctor.digest import digest_of
from proctor.types import Value


class JsonAnswer(JSONResponse):
    """JSON in UTF-8; lone surrogates, which UTF-8 can't hold, as the escapes that JSON has for them."""

    def render(self, content: object) -> bytes:
        return json.dumps(content, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")


def runs_json(viewer: Viewer, request: Request) -> Response:
    """The runs, the newest first."""
    found = read_runs(viewer, request.query_params.get("after", ""), _size(request))
    return _listed(found.items, found.next, found.total)


def run_json(viewer: Viewer, request: Request) -> Response:
    """A run with its pairs, as `proctor report --json` has them, and its live view while it is under way."""
    store = viewer.open(request)
    live = viewer.live.look(store)
    report = viewer.kept_report(store).report
    reasons = {pair.task: pair.comparable for pair in report.pairs if pair.comparable}
    letters = kept_letters(viewer, store, report)
    key, stamp = ("statistics", store.run), scores_stamp(report)
    bounds = viewer.kept.get(key, lambda: {pair: score_bounds(of) for pair, of in trial_facts(store).items()}, stamp)
    pairs = [_pair(pair, bounds, letters) for pair in report.pairs]
    facts = {**report.model_dump(mode="json"), "pairs": pairs, "letters_left_out": letters.left_out}
    facts |= {"state": viewer.runs.state(store), "comparable": reasons}
    facts |= {"live": live.view and live.view.model_dump(mode="json"), "heard_s": live.heard_s}
    return JsonAnswer(facts)


def live_json(viewer: Viewer, request: Request) -> Response:
    """How a run stands: `version` differs after it has changed, `shown` after its live view has, clocks apart."""
    store = viewer.open(request)
    found = viewer.live.look(store)
    live = found.view and found.view.model_dump(mode="json")
    version, shown = digest_of([viewer.runs.state(store), found.version]), digest_of(found.content)
    return JsonAnswer({"version": version, "shown": shown, "live": live, "heard_s": found.heard_s})


def trials_json(viewer: Viewer, request: Request) -> Response:
    """The trials that a filter selects."""
    found = find_trials(viewer.open(request), trial_query(request.query_params))
    if found.searched is None:
        return _listed(found.items, found.next, found.total)
    return _listed(found.items, found.next, None, searched=found.searched, searchable=found.total)


def trial_json(viewer: Viewer, request: Request) -> Response:
    """A trial with some of its turns: those after the turn `after`, `size` of them.

    The turn `earlier` alone has all its messages: those of all turns would be as many as the square of their number.
    """
    given = request.query_params
    journal, unfolded = whole_number(given, "journal", None), whole_number(given, "earlier", None)
    store = viewer.open(request)
    trial = found_trial(store, request.path_params["trial"], journal)
    after, size = whole_number(given, "after", 0), _size(request)
    read = answer_reader(store.manifest(), trial.task)
    first = sum(turn.turn <= after for turn in trial.turns)
    told = list(islice(conversation(trial.turns, first), size))
    items = [_turn(each, read, unfolded=each.turn == unfolded) for each in told]
    turns = {"items": items, "next": str(told[-1].turn) if first + size < len(trial.turns) else None}
    return JsonAnswer({**trial.model_dump(mode="json", exclude={"turns"}), "turns": turns})


ROUTES: tuple[tuple[str, Callable[[Viewer, Request], Response]], ...] = (
    ("/api/v1/runs", runs_json),
    ("/api/v1/runs/{run}", run_json),
    ("/api/v1/runs/{run}/live", live_json),
    ("/api/v1/runs/{run}/trials", trials_json),
    ("/api/v1/runs/{run}/trials/{trial}", trial_json),
)


def _pair(pair: PairReport, bounds: Mapping[Pair, Interval], letters: Letters) -> dict[str, object]:
    """A pair with what the missing trials could make of its mean score, and its letters unless they are left out."""
    low, high = bounds[pair.agent, pair.task]
    found = letters.of_task.get(pair.task, {}).get(pair.agent)
    return {**pair.model_dump(mode="json"), "missing": {"low": low, "high": high}, "letters": found}


def _turn(told: ConversationTurn, read: AnswerReader, *, unfolded: bool) -> dict[str, object]:
    """A turn as JSON; `earlier` is the number of messages that were sent again."""
    facts = turn_facts(told.model_copy(update={"earlier": ()}), read)
    messages = [message.model_dump(mode="json") for message in told.earlier] if unfolded else None
    return {**facts, "earlier": len(told.earlier), "earlier_messages": messages, "finish": told.finish_reason}


def _listed(items: Sequence[Value], after: str | None, total: int | None, **more: int) -> Response:
    listed = [item.model_dump(mode="json") for item in items]
    return JsonAnswer({"items": listed, "next": after, "total": total, **more})


def _size(request: Request) -> int:
    size = whole_number(request.query_params, "size", SIZE)
    if not 1 <= size <= MAX_SIZE:
        raise QueryError(f"size: {size} is no number from 1 to {MAX_SIZE}")
    return size
