"""Searches the texts of turns in slices: nothing indexes them, and one page must not keep a core busy for long."""

import contextlib
import re
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from eval_client.store.store import Store
from eval_client.store.tables import turn_table
from eval_client.store.trials.rows import TrialPage, TrialQuery, count_trials, read_trials, rows_of, select_ids
from eval_client.store.values import json_of, parsed

SLICE_S, WAIT_S = 0.5, 5.0
"""Seconds of CPU that one page takes, and seconds that it takes where a database server is slow."""
SELECTED, BATCH, ROWS = 2_000, 20, 4
"""Trials that are selected at once, trials whose turns one statement reads, and turns that are held at once."""
_ESCAPED = re.compile(r'["\\\x00-\x1f]+')
"""Characters that JSON does not write as they are."""

_turn, _newer = turn_table.c, turn_table.alias().c
_newest = sa.select(sa.func.max(_newer.journal)).where(_newer.run == _turn.run, _newer.trial == _turn.trial)
_TURNS = (
    sa.select(_turn.trial, _turn.observation, _turn.reply)
    .where(_turn.run == sa.bindparam("run"), _turn.trial.in_(sa.bindparam("trials", expanding=True)))
    .where(_turn.journal == _newest.scalar_subquery())
    .order_by(_turn.trial, _turn.turn)
    .execution_options(yield_per=ROWS)
)
"""The turns of the newest journals of some trials."""


def find_trials(store: Store, query: TrialQuery) -> TrialPage:
    """A page of the trials that a query selects; with a text, those that a slice of work finds."""
    if not query.text:
        return read_trials(store, query)
    cpu_s, begun_s = time.thread_time(), time.monotonic()
    return search(store, query, lambda: time.thread_time() - cpu_s > SLICE_S or time.monotonic() - begun_s > WAIT_S)


def search(store: Store, query: TrialQuery, is_over: Callable[[], bool]) -> TrialPage:
    """The next trials with the text, in the order of trials: a whole page, or as many as are found until `is_over`."""
    found, last = list[int](), None
    with contextlib.closing(_candidates(store, query)) as candidates:
        for trial, holds in candidates:
            found += [trial] if holds else []
            if len(found) == query.size or is_over():
                last = str(trial)
                break
    total = count_trials(store, query.model_copy(update={"after": ""}))
    left = count_trials(store, query.model_copy(update={"after": last})) if last else 0
    return TrialPage(rows_of(store, found), last if left else None, total, total - left)


def _candidates(store: Store, query: TrialQuery) -> Generator[tuple[int, bool]]:
    """(trial, whether it holds the query's text) for the trials after the query's cursor."""
    while trials := select_ids(store, query, SELECTED):
        yield from with_text(store, trials, query.text)
        query = query.model_copy(update={"after": str(trials[-1])})


def with_text(store: Store, trials: Sequence[int], text: str) -> Iterator[tuple[int, bool]]:
    """(trial, whether an observation or an answer of its newest journal holds the text), for trials in rising order.

    Capital and small letters are equal.
    """
    finds = _finder(text)
    with store.engine.connect() as connection:
        for start in range(0, len(trials), BATCH):
            some = trials[start : start + BATCH]
            with connection.execute(_TURNS, {"run": store.run, "trials": some}) as turns:
                holding = {trial for trial, observation, reply in turns if finds(observation, reply)}
            yield from ((trial, trial in holding) for trial in some)


def _finder(text: str) -> Callable[[str, str], bool]:
    """Whether a turn, as its two texts of JSON, holds a text.

    Most turns are told by their JSON alone: it must hold the longest part that JSON writes as it is.
    """
    wanted = text.casefold()
    part = max(_ESCAPED.split(wanted), key=len)

    def finds(observation: str, reply: str) -> bool:
        return any(
            part in stored.casefold() and any(wanted in each.casefold() for each in parsed(column, _texts, stored))
            for column, stored in ((turn_table.c.observation, observation), (turn_table.c.reply, reply))
        )

    return finds


def _texts(stored: str) -> list[str]:
    """The texts of an observation's messages, or of an answer, in their JSON."""
    whole: Any = json_of(stored)
    found = []
    for each in (*whole.get("messages", ()), *filter(None, [whole.get("action")])):
        found += [each["content"], each.get("reasoning", "")]
        found += [call[name] for call in each.get("tool_calls", ()) for name in ("name", "arguments")]
    return list(map(str, found))
