"""Reads the trials of a run that a filter selects, a page at a time, by a keyset: no page is lost while rows change."""

import base64
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from eval_client.store.migration import existing_columns
from eval_client.store.store import Store
from eval_client.store.tables import trial_table, turn_table
from proctor.types import FinishReason, Value

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
MAX_NUMBER, MAX_TRIAL = 2**62, 2**31 - 1
BAD_CURSOR = "after: this is no cursor that a page of this sort gave; leave it out"
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
    sort: str = "id"
    """One of SORTS, with `-` before it in descending order. Trials without a value come last."""
    after: str = ""
    """The cursor that the page before ended with."""
    size: int = SIZE

    def carried(self) -> dict[str, str]:
        """What the address of a trial takes along: the filter with its order, without the page."""
        return {name: str(value) for name, value in self.model_dump(exclude_defaults=True).items() if name not in PAGED}


class TrialRow(Value):
    """A trial in a table. What a run of schema 2 lacks is None."""

    id: int
    agent: str
    task: str
    sample: str
    cluster: str | None
    epoch: int
    score: float | None
    reason: str | None
    cause: str | None
    turns: int | None
    seconds: float | None
    """Over the attempts that count."""
    prompt_tokens: int | None
    completion_tokens: int | None
    model_seconds: float | None
    world_seconds: float | None
    """Over all journals of the trial, as are the model's seconds."""
    attempts: int
    ended_at: str | None


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
    _score_range(query.score)
    if query.text:
        query = query.model_copy(update={"sort": "id"})
    _cursor(query)
    return query


def read_trials(store: Store, query: TrialQuery) -> TrialPage:
    """A page of the trials that a query selects, and how many it selects in all. Raises SQLAlchemyError."""
    columns = _columns(store.engine)
    condition = sa.and_(*_conditions(store.run, query))
    name, descending = query.sort.removeprefix("-"), query.sort.startswith("-")
    key = columns[name]
    order = (key.is_(None), key.desc() if descending else key.asc(), trial_table.c.id)
    page = sa.select(*(column.label(label) for label, column in columns.items())).where(condition).order_by(*order)
    if query.after:
        page = page.where(_is_after(key, descending, *_cursor(query)))
    with store.engine.connect() as connection:
        total = int(
            connection.execute(sa.select(sa.func.count()).select_from(trial_table).where(condition)).scalar_one()
        )
        rows = [dict(row) for row in connection.execute(page.limit(query.size + 1)).mappings()]
        more, rows = len(rows) > query.size, rows[: query.size]
        clocks = _seconds(connection, store, [row["id"] for row in rows])
    after = _cursor_text(rows[-1][name], rows[-1]["id"]) if more else None
    items = [_row(row, clocks.get(row["id"], (None, None))) for row in rows]
    return TrialPage(items, after, total)


def sample_trials(store: Store, task: str, sample: str) -> list[TrialRow]:
    """All trials of a sample, in the run's order."""
    t, columns = trial_table.c, _columns(store.engine)
    mine = sa.and_(t.run == store.run, t.task == task, t.sample == sample)
    query = sa.select(*(column.label(label) for label, column in columns.items())).where(mine).order_by(t.id)
    with store.engine.connect() as connection:
        rows = [dict(row) for row in connection.execute(query.limit(MAX_SIZE)).mappings()]
        clocks = _seconds(connection, store, [row["id"] for row in rows])
    return [_row(row, clocks.get(row["id"], (None, None))) for row in rows]


def neighbours(store: Store, query: TrialQuery, trial: int) -> Neighbours:
    """The trials beside one of the run, among those that a query selects. Raises SQLAlchemyError."""
    t, name, descending = trial_table.c, query.sort.removeprefix("-"), query.sort.startswith("-")
    mine = sa.select(t.id).where(*_conditions(store.run, query)).limit(1)
    with store.engine.connect() as connection:
        if name == "id":  # by the primary key alone: a run's first and last trials are far apart
            before, after = mine.where(t.id < trial).order_by(t.id.desc()), mine.where(t.id > trial).order_by(t.id)
            before, after = (after, before) if descending else (before, after)
        else:
            key = _columns(store.engine)[name]
            value = connection.execute(sa.select(key).where(t.run == store.run, t.id == trial)).scalar_one_or_none()
            order = (key.is_(None), key.desc() if descending else key.asc(), t.id)
            reverse = (key.is_not(None), key.asc() if descending else key.desc(), t.id.desc())
            before = mine.where(_is_before(key, descending, value, trial)).order_by(*reverse)
            after = mine.where(_is_after(key, descending, value, trial)).order_by(*order)
        return Neighbours(*(connection.execute(each).scalar_one_or_none() for each in (before, after)))


def select_ids(store: Store, query: TrialQuery, size: int | None = None) -> list[int]:
    """The ids of the trials after the query's cursor, in its order, whatever their texts are; with `size` the first."""
    name, descending = query.sort.removeprefix("-"), query.sort.startswith("-")
    key, number = _columns(store.engine)[name], trial_table.c.id
    order = (key.is_(None), key.desc() if descending else key.asc(), number)
    ids = sa.select(number).where(*_conditions(store.run, query)).limit(size)
    ids = ids.order_by(*([number] if query.sort == "id" else order))
    if query.after:
        value, last = _cursor(query)
        ids = ids.where(number > last if query.sort == "id" else _is_after(key, descending, value, last))
    with store.engine.connect() as connection:
        return list(connection.execute(ids).scalars())


def count_trials(store: Store, query: TrialQuery) -> int:
    """How many trials a query in the order of trials selects after its cursor, whatever their texts are."""
    after = [trial_table.c.id > _cursor(query)[1]] if query.after else []
    count = sa.select(sa.func.count()).select_from(trial_table).where(*_conditions(store.run, query), *after)
    with store.engine.connect() as connection:
        return int(connection.execute(count).scalar_one())


def rows_of(store: Store, trials: Sequence[int]) -> list[TrialRow]:
    """The rows of some trials, in their order."""
    t = trial_table.c
    query = sa.select(*(column.label(label) for label, column in _columns(store.engine).items()))
    with store.engine.connect() as connection:
        rows = connection.execute(query.where(t.run == store.run, t.id.in_(trials))).mappings()
        found = {row["id"]: dict(row) for row in rows}
        clocks = _seconds(connection, store, trials)
    return [_row(found[trial], clocks.get(trial, (None, None))) for trial in trials if trial in found]


def cursor_after(trial: int) -> str:
    """The cursor of what follows a trial in the order of trials."""
    return _cursor_text(trial, trial)


def _columns(engine: sa.Engine) -> dict[str, sa.ColumnElement[Any]]:
    """name -> column, for the fields of a row and all sorts; NULL where the store lacks the column."""
    there = {column.name for column in existing_columns(engine, trial_table)}
    wanted = dict.fromkeys([name for name in TrialRow.model_fields if name in trial_table.c] + list(SORTS))
    empty = {name: sa.cast(sa.null(), trial_table.c[name].type) for name in wanted if name not in there}
    return {name: empty[name] if name in empty else trial_table.c[name] for name in wanted}


def _conditions(run: str, query: TrialQuery) -> list[sa.ColumnElement[bool]]:
    t = trial_table.c
    found = [t.run == run]
    found += [column == text for column, text in ((t.agent, query.agent), (t.task, query.task)) if text]
    parts = ((t.sample, query.sample), (t.cause, query.cause))
    found += [column.icontains(text, autoescape=True) for column, text in parts if text]
    if query.reason:
        found.append(t.reason.is_(None) if query.reason == NONE else t.reason == query.reason)
    if query.score == NONE:
        found.append(t.score.is_(None))
    elif query.score:
        low, high = _score_range(query.score)
        found.append(t.score.between(low, high))
    return found


def _score_range(text: str) -> tuple[float, float]:
    """The lowest and the highest score of a filter. Raises QueryError."""
    low, dots, high = text.partition("..")
    try:
        bounds = float(low or "-inf"), float((high or "inf") if dots else (low or "inf"))
    except ValueError:
        bounds = (math.nan, math.nan)
    if text not in ("", NONE) and any(map(math.isnan, bounds)):
        raise QueryError(f"score: {text!r} is no score; write 1, or a range such as 0..0.5, or {NONE}")
    return bounds


def _is_after(
    key: sa.ColumnElement[Any], descending: bool, value: str | float | None, last: int
) -> sa.ColumnElement[bool]:
    """The rows after (value, id) in the order of `read_trials`."""
    later = trial_table.c.id > last
    if value is None:
        return sa.and_(key.is_(None), later)
    beyond = key < value if descending else key > value
    return sa.or_(beyond, sa.and_(key == value, later), key.is_(None))


def _is_before(
    key: sa.ColumnElement[Any], descending: bool, value: str | float | None, first: int
) -> sa.ColumnElement[bool]:
    """The rows before (value, id) in the order of `read_trials`."""
    earlier = trial_table.c.id < first
    if value is None:
        return sa.or_(key.is_not(None), sa.and_(key.is_(None), earlier))
    return sa.or_(key > value if descending else key < value, sa.and_(key == value, earlier))


def _cursor_text(value: object, trial: int) -> str:
    return base64.urlsafe_b64encode(json.dumps([value, trial]).encode()).decode().rstrip("=")


def _cursor(query: TrialQuery) -> tuple[str | float | None, int]:
    """The value and the id of the last row of the page before. Raises QueryError."""
    if not query.after:
        return None, -1
    try:
        value, trial = json.loads(base64.urlsafe_b64decode(query.after + "=" * (-len(query.after) % 4)))
    except (ValueError, TypeError) as error:
        raise QueryError(BAD_CURSOR) from error
    texts = query.sort.removeprefix("-") in TEXTS
    fits = value is None or (isinstance(value, str) if texts else _is_number(value, MAX_NUMBER))
    if not fits or not _is_number(trial, MAX_TRIAL) or trial < 0:
        raise QueryError(BAD_CURSOR)
    return value, trial


def _is_number(value: object, most: int) -> bool:
    return isinstance(value, int | float) and abs(value) <= most


def _seconds(
    connection: sa.Connection, store: Store, trials: Sequence[int]
) -> dict[int, tuple[float | None, float | None]]:
    """trial -> seconds that its agent took, and that its environment took."""
    u = turn_table.c
    there = {column.name for column in existing_columns(store.engine, turn_table)}
    world = sa.func.sum(u.world_seconds) if "world_seconds" in there else sa.null()
    query = sa.select(u.trial, sa.func.sum(u.model_seconds), world).group_by(u.trial)
    rows = connection.execute(query.where(u.run == store.run, u.trial.in_(trials)))
    return {int(trial): (model_s, world_s) for trial, model_s, world_s in rows}


def _row(row: Mapping[str, Any], clocks: tuple[float | None, float | None]) -> TrialRow:
    fields = {name: row[name] for name in TrialRow.model_fields if name in row}
    return TrialRow(**fields, model_seconds=clocks[0], world_seconds=clocks[1])
