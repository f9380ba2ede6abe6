"""Reads the trials of a run that a query selects, a page at a time, by a keyset: no page is lost while rows change."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from pydantic import Field
from pydantic_core import from_json

from eval_client.store.records import record
from eval_client.store.store import Store
from eval_client.store.tables import exact_order, trial_table, turn_table
from eval_client.store.values import Number
from proctor.types import NOT_REDISTRIBUTABLE, WORDS, FinishReason, Value, brief

SORTS = (
    *("id", "agent", "task", "sample", "epoch", "score", "reason", "turns", "prompt_tokens", "completion_tokens"),
    *("seconds", "attempts", "ended_at"),
)
"""The columns by which trials are sorted."""
TEXTS = ("agent", "task", "sample", "reason", "ended_at")
"""Those of them that hold texts."""
MAX_SIZE, SIZE = 500, 100
"""Rows of a page: at most, and unless told otherwise."""
MAX_TEXT = 255
MAX_TRIAL = 2**31 - 1
PAGED = ("after", "size")
NONE = "none"
"""Selects trials without a finish reason, or without a score."""


class QueryError(ValueError):
    """A parameter of an address is invalid; the message names it and the fix."""


class TrialQuery(Value):
    """Selects trials of a run: every condition holds. Empty texts select all."""

    agent: str = ""
    task: str = ""
    sample: str = ""
    """A part of the sample's name, in capital or small letters."""
    reason: str = ""
    """A finish reason, or `none`."""
    score: str = ""
    """`0.5`, a range such as `0..0.5`, `..0.5` or `0.5..`, or `none`."""
    cause: str = ""
    """A part of a fault's cause."""
    text: str = ""
    """A part of an observation or an answer, in capital or small letters; such a search goes in the order of trials."""
    columns: str = ""
    """The columns of the table by their names, with commas between; empty for the usual ones."""
    sort: str = "id"
    """One of SORTS, with `-` before it in descending order. Trials without a value come last."""
    after: str = ""
    """The cursor that the page before ended with: the id of its last trial."""
    size: int = SIZE

    def carried(self) -> dict[str, str]:
        """What the address of a trial takes along: the filter with its order, without the page."""
        return {name: str(value) for name, value in self.model_dump(exclude_defaults=True).items() if name not in PAGED}


def trial_query(given: Mapping[str, str]) -> TrialQuery:
    """The query in the parameters of an address; other parameters are ignored. Raises QueryError."""
    texts = {name: given[name].strip() for name in TrialQuery.model_fields if given.get(name, "").strip()}
    for name, text in texts.items():
        if len(text) > MAX_TEXT or "\0" in text:
            raise QueryError(f"{name}: at most {MAX_TEXT} characters, without NUL")
    size = texts.pop("size", str(SIZE))
    if not (size.isascii() and size.isdigit() and 1 <= int(size) <= MAX_SIZE):
        raise QueryError(f"size: {size!r} is no number from 1 to {MAX_SIZE}")
    query = TrialQuery(size=int(size), **texts)
    if query.sort.removeprefix("-") not in SORTS:
        raise QueryError(f"sort: {query.sort!r} is none of {', '.join(SORTS)}; a minus before it reverses the order")
    if query.reason not in ("", NONE, *FinishReason):
        raise QueryError(f"reason: {query.reason!r} is none of {', '.join(FinishReason)}, {NONE}")
    score_range(query.score)
    if query.after and not (query.after.isascii() and query.after.isdigit() and int(query.after) <= MAX_TRIAL):
        raise QueryError("after: this is no cursor that a page gave; leave it out")
    return query.model_copy(update={"sort": "id"}) if query.text else query


def score_range(text: str) -> tuple[float, float]:
    """The lowest and the highest score of a filter. Raises QueryError."""
    low, dots, high = text.partition("..")
    try:
        bounds = float(low or "-inf"), float((high or "inf") if dots else (low or "inf"))
    except ValueError:
        bounds = (math.nan, math.nan)
    if text not in ("", NONE) and any(map(math.isnan, bounds)):
        raise QueryError(f"score: {text!r} is no score; write 1, or a range such as 0..0.5, or {NONE}")
    return bounds


class TrialRow(Value):
    """A trial in a table. What a run of schema 2 lacks is None."""

    id: int
    agent: str
    task: str
    sample: str
    cluster: str | None = None
    epoch: int
    score: float | None = None
    reason: str | None = None
    cause: str | None = None
    turns: int | None = None
    seconds: float | None = None
    """Over the attempts that count."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cut_answers: int | None = None
    """How many answers `max_tokens` cut; None for a trial that is not over."""
    model_seconds: float | None = None
    world_seconds: float | None = None
    """Over all journals of the trial, as are the model's seconds."""
    attempts: int
    ended_at: str | None = None
    asked: str | None = None
    """None, as are the next two, where the finish does not tell it."""
    expected: str | None = None
    answered: str | None = None
    redistributable: bool = Field(default=True, exclude=True)
    """Whether these words may stand in a file for others."""


class TrialPage(NamedTuple):
    """Some of the trials that a query selects."""

    items: list[TrialRow]
    next: str | None
    """The cursor of the next page; None on the last one."""
    total: int
    """How many trials the query selects, whatever their texts are."""
    searched: int | None = None
    """How many of them have been searched for a text, on this page and those before; None without one."""


class Neighbours(NamedTuple):
    """The trials before and after one in the order of a query; None at its ends."""

    previous: int | None
    next: int | None


class _Order:
    """The order of a query: by a column, trials without a value last, then by their ids."""

    def __init__(self, store: Store, sort: str, *, filtered: bool = False) -> None:
        """In SQLite the ids of a `filtered` page are sorted as an expression, so that it reads its narrow index.

        Else it would read each row with its finish in the order of ids until the page is full.
        """
        name, descending = sort.removeprefix("-"), sort.startswith("-")
        t = store.table(trial_table).c
        number = t.id + 0 if filtered and store.engine.dialect.name == "sqlite" else t.id
        key, self._id, self._value = t[name], t.id, sa.select(t[name]).where(t.run == store.run)
        exact = exact_order(store.engine.dialect, key) if name in TEXTS else key
        lacks = [(sa.case((key.is_(None), 1), else_=0), False)] if trial_table.c[name].nullable else []
        terms: list[tuple[sa.ColumnElement[Any], bool]] = [*lacks, (exact, descending), (number, False)]
        self._terms = [(number, descending)] if name == "id" else terms

    def by(self, *, backwards: bool = False) -> list[sa.ColumnElement[Any]]:
        """What to order by."""
        return [term.desc() if descending != backwards else term.asc() for term, descending in self._terms]

    def beyond(self, connection: sa.Connection, trial: int, *, backwards: bool = False) -> sa.ColumnElement[bool]:
        """The trials after one, or before it."""
        value = connection.execute(self._value.where(self._id == trial)).scalar_one_or_none()
        values = (int(value is None), value, trial)[-len(self._terms) :]
        found: sa.ColumnElement[bool] = sa.false()
        for (term, descending), at in reversed([*zip(self._terms, values, strict=True)]):
            if at is not None:
                more = term < at if descending != backwards else term > at
                found = sa.or_(more, sa.and_(term == at, found))
        return found


def read_trials(store: Store, query: TrialQuery) -> TrialPage:
    """A page of the trials that a query selects, and how many it selects in all. Raises DatabaseError."""
    found = select_ids(store, query, query.size + 1, narrow=True)
    some, more = found[: query.size], len(found) > query.size
    total = count_trials(store, query.model_copy(update={"after": ""})) if more or query.after else len(some)
    return TrialPage(rows_of(store, some), str(some[-1]) if more else None, total)


def sample_trials(store: Store, task: str, sample: str, agents: Sequence[str] = ()) -> list[TrialRow]:
    """All trials of a sample, in the run's order; those of some `agents` are found by the database's index."""
    t = trial_table.c
    mine = [t.run == store.run, t.task == task, t.sample == sample, *([t.agent.in_(agents)] if agents else ())]
    with store.engine.connect() as connection:
        found = list(connection.execute(sa.select(t.id).where(*mine).order_by(t.id).limit(MAX_SIZE)).scalars())
    return rows_of(store, found)


def neighbours(store: Store, query: TrialQuery, trial: int) -> Neighbours:
    """The trials beside one of the run, among those that a query selects. Raises DatabaseError."""
    t, order = store.table(trial_table).c, _Order(store, query.sort)
    with store.engine.connect() as connection:

        def beside(*, backwards: bool) -> int | None:
            there = (*_conditions(store, query), order.beyond(connection, trial, backwards=backwards))
            found = sa.select(t.id).where(*there).order_by(*order.by(backwards=backwards)).limit(1)
            return connection.execute(found).scalar_one_or_none()

        return Neighbours(beside(backwards=True), beside(backwards=False))


def select_ids(store: Store, query: TrialQuery, size: int | None = None, *, narrow: bool = False) -> list[int]:
    """The ids of the trials after the query's cursor, in its order, whatever their texts are; with `size` the first.

    `narrow` where few of the trials that a filter selects are wanted.
    """
    conditions, t = _conditions(store, query), store.table(trial_table).c
    order = _Order(store, query.sort, filtered=narrow and len(conditions) > 1)
    with store.engine.connect() as connection:
        if query.after:
            conditions.append(order.beyond(connection, int(query.after)))
        found = sa.select(t.id).where(*conditions).order_by(*order.by()).limit(size)
        return list(connection.execute(found).scalars())


def count_trials(store: Store, query: TrialQuery) -> int:
    """How many trials a query selects, whatever their texts are; after its cursor, which only id order may have."""
    after = [store.table(trial_table).c.id > int(query.after)] if query.after else []
    with store.engine.connect() as connection:
        counted = sa.select(sa.func.count()).where(*_conditions(store, query), *after)
        return int(connection.execute(counted).scalar_one())


def rows_of(store: Store, trials: Sequence[int]) -> list[TrialRow]:
    """The rows of some trials, in their order, with the seconds that their agents and environments took."""
    t, u = store.table(trial_table).c, store.table(turn_table).c
    columns = [t.finish, *(t[name] for name in TrialRow.model_fields if name in t)]
    sums = (sa.func.sum(Number(u[name])).label(name) for name in ("model_seconds", "world_seconds"))
    query = sa.select(u.trial, *sums).where(u.run == store.run, u.trial.in_(trials)).group_by(u.trial)
    with store.engine.connect() as connection:
        rows = connection.execute(sa.select(*columns).where(t.run == store.run, t.id.in_(trials))).mappings()
        found = {row["id"]: row for row in rows}
        clocks = {row["trial"]: row for row in connection.execute(query).mappings()}
    return [
        record(TrialRow, {**clocks.get(trial, {}), **found[trial], **_words(found[trial]["finish"])})
        for trial in trials
        if trial in found
    ]


def _words(finish: str | None) -> dict[str, str | bool]:
    """What a finish in the store tells in words; of one that can't be read nothing, which the trial's page says."""
    try:
        detail = from_json(finish or "{}").get("detail")
    except (ValueError, AttributeError):
        return {}
    told = detail if isinstance(detail, dict) else {}
    words = {name: brief(told[name]) for name in WORDS if isinstance(told.get(name), str)}
    return {**words, "redistributable": not told.get(NOT_REDISTRIBUTABLE)}


def _has(store: Store, column: sa.ColumnElement[str], text: str) -> sa.ColumnElement[bool]:
    """Whether a column's text has a part, in capital or small letters.

    SQLite's LIKE takes both as equal; `icontains` finds the same there at three times the CPU.
    """
    if store.engine.dialect.name == "sqlite":
        return column.contains(text, autoescape=True)
    return column.icontains(text, autoescape=True)


def _conditions(store: Store, query: TrialQuery) -> list[sa.ColumnElement[bool]]:
    t = store.table(trial_table).c
    found = [t.run == store.run]
    found += [column == text for column, text in ((t.agent, query.agent), (t.task, query.task)) if text]
    if query.sample:
        found.append(_has(store, t.sample, query.sample))
    if query.cause:  # the few rows with a cause have an index of their own
        caused = sa.select(t.id).where(t.run == store.run, t.cause.is_not(None), _has(store, t.cause, query.cause))
        found.append(t.id.in_(caused.correlate(None)))
    if query.reason:
        found.append(t.reason.is_(None) if query.reason == NONE else t.reason == query.reason)
    if query.score == NONE:
        found.append(t.score.is_(None))
    elif query.score:
        low, high = score_range(query.score)
        found.append(t.score.between(low, high))
    return found
