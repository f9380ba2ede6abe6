"""Reads the trials of a run that a query selects, a page at a time, by a keyset: no page is lost while rows change."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from eval_client.store.migration import existing_columns
from eval_client.store.store import Store
from eval_client.store.tables import exact_order, trial_table, turn_table
from eval_client.store.trials.query import (
    MAX_SIZE,
    NONE,
    SORTS,
    TEXTS,
    TrialQuery,
    cursor_text,
    read_cursor,
    score_range,
)
from eval_client.store.values import Number
from proctor.types import Value


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
    cut_answers: int | None
    """How many answers `max_tokens` cut; None for a trial that is not over."""
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


def read_trials(store: Store, query: TrialQuery) -> TrialPage:
    """A page of the trials that a query selects, and how many it selects in all. Raises DatabaseError."""
    with store.engine.connect() as connection:
        found = _select(connection, store, query, query.size + 1)
        keys, more = found[: query.size], len(found) > query.size
        total = _count(connection, store, query) if more or query.after else len(keys)
        items = _rows(connection, store, [trial for trial, _ in keys])
    after = cursor_text(keys[-1][1], keys[-1][0]) if more else None
    return TrialPage(items, after, total)


def last_ended(store: Store, size: int) -> list[TrialRow]:
    """The trials that ended last, the newest first; none in a run of schema 2. Raises DatabaseError."""
    with store.engine.connect() as connection:
        keys = _select(connection, store, TrialQuery(sort="-ended_at"), size)
        return _rows(connection, store, [trial for trial, ended_at in keys if ended_at is not None])


def sample_trials(store: Store, task: str, sample: str) -> list[TrialRow]:
    """All trials of a sample, in the run's order."""
    t = trial_table.c
    query = sa.select(t.id).where(t.run == store.run, t.task == task, t.sample == sample).order_by(t.id)
    with store.engine.connect() as connection:
        return _rows(connection, store, list(connection.execute(query.limit(MAX_SIZE)).scalars()))


def sample_outcomes(
    store: Store, agents: Sequence[str], task: str, sample: str
) -> list[tuple[int, str, int, float | None, str | None]]:
    """(id, agent, epoch, score, reason) of all trials of a sample that some agents play."""
    t = trial_table.c
    query = sa.select(t.id, t.agent, t.epoch, t.score, t.reason).where(
        t.run == store.run, t.agent.in_(agents), t.task == task, t.sample == sample
    )
    with store.engine.connect() as connection:
        return [(row.id, row.agent, row.epoch, row.score, row.reason) for row in connection.execute(query)]


def _select(connection: sa.Connection, store: Store, query: TrialQuery, size: int | None) -> list[tuple[int, Any]]:
    """(trial, value of the sort's column) of the first trials that a query selects, in its order.

    In SQLite the ids of a filtered page are sorted as an expression, which makes SQLite read its narrow index; else it
    would read each row with its finish in the order of ids until the page is full.
    """
    name, descending = query.sort.removeprefix("-"), query.sort.startswith("-")
    key, conditions = _sort_key(store.engine, name), _conditions(store, query)
    filtered = len(conditions) > 1 and connection.dialect.name == "sqlite"
    number: sa.ColumnElement[int] = trial_table.c.id + 0 if filtered else trial_table.c.id
    first = number if name == "id" else key
    ordered = first.desc() if descending else first.asc()
    order: list[sa.ColumnElement[Any]] = [ordered, number]
    if _may_lack(name):  # NULLS LAST costs less, but MariaDB has no such words
        sqlite = connection.dialect.name == "sqlite"
        order = [ordered.nulls_last(), number] if sqlite else [key.is_(None), ordered, number]
    if query.after:
        conditions.append(_is_after(name, first, descending, *read_cursor(query)))
    found = sa.select(trial_table.c.id, key.label("key")).where(*conditions).order_by(*order).limit(size)
    return [(int(trial), value) for trial, value in connection.execute(found)]


def _count(connection: sa.Connection, store: Store, query: TrialQuery, *more: sa.ColumnElement[bool]) -> int:
    counted = sa.select(sa.func.count()).select_from(trial_table).where(*_conditions(store, query), *more)
    return int(connection.execute(counted).scalar_one())


def _rows(connection: sa.Connection, store: Store, trials: Sequence[int]) -> list[TrialRow]:
    """The rows of some trials, in their order."""
    t = trial_table.c
    columns = (column.label(name) for name, column in _columns(store.engine).items())
    query = sa.select(*columns).where(t.run == store.run, t.id.in_(trials))
    found = {row["id"]: dict(row) for row in connection.execute(query).mappings()}
    clocks = _seconds(connection, store, trials)
    return [_row(found[trial], clocks.get(trial, (None, None))) for trial in trials if trial in found]


def neighbours(store: Store, query: TrialQuery, trial: int) -> Neighbours:
    """The trials beside one of the run, among those that a query selects. Raises DatabaseError."""
    t, name, descending = trial_table.c, query.sort.removeprefix("-"), query.sort.startswith("-")
    mine = sa.select(t.id).where(*_conditions(store, query)).limit(1)
    with store.engine.connect() as connection:
        if name == "id":  # by the primary key alone: a run's first and last trials are far apart
            before, after = mine.where(t.id < trial).order_by(t.id.desc()), mine.where(t.id > trial).order_by(t.id)
            before, after = (after, before) if descending else (before, after)
        else:
            key = _sort_key(store.engine, name)
            value = connection.execute(sa.select(key).where(t.run == store.run, t.id == trial)).scalar_one_or_none()
            order = (key.is_(None), key.desc() if descending else key.asc(), t.id)
            reverse = (key.is_not(None), key.asc() if descending else key.desc(), t.id.desc())
            before = mine.where(_is_before(key, descending, value, trial)).order_by(*reverse)
            after = mine.where(_is_after(name, key, descending, value, trial)).order_by(*order)
        return Neighbours(*(connection.execute(each).scalar_one_or_none() for each in (before, after)))


def select_ids(store: Store, query: TrialQuery, size: int | None = None) -> list[int]:
    """The ids of the trials after the query's cursor, in its order, whatever their texts are; with `size` the first."""
    with store.engine.connect() as connection:
        if query.sort != "id":
            return [trial for trial, _ in _select(connection, store, query, size)]
        ids = sa.select(trial_table.c.id).where(*_conditions(store, query), trial_table.c.id > read_cursor(query)[1])
        return list(connection.execute(ids.order_by(trial_table.c.id).limit(size)).scalars())


def count_trials(store: Store, query: TrialQuery) -> int:
    """How many trials a query in the order of trials selects after its cursor, whatever their texts are."""
    with store.engine.connect() as connection:
        return _count(connection, store, query, trial_table.c.id > read_cursor(query)[1])


def rows_of(store: Store, trials: Sequence[int]) -> list[TrialRow]:
    """The rows of some trials, in their order."""
    with store.engine.connect() as connection:
        return _rows(connection, store, trials)


def cursor_after(trial: int) -> str:
    """The cursor of what follows a trial in the order of trials."""
    return cursor_text(trial, trial)


def _columns(engine: sa.Engine) -> dict[str, sa.ColumnElement[Any]]:
    """name -> column, for the fields of a row and all sorts; NULL where the store lacks the column."""
    there = {column.name for column in existing_columns(engine, trial_table)}
    wanted = dict.fromkeys([name for name in TrialRow.model_fields if name in trial_table.c] + list(SORTS))
    empty = {name: sa.cast(sa.null(), trial_table.c[name].type) for name in wanted if name not in there}
    return {name: empty[name] if name in empty else trial_table.c[name] for name in wanted}


def _sort_key(engine: sa.Engine, name: str) -> sa.ColumnElement[Any]:
    """The column of a sort, in the order of its characters' numbers on every database."""
    key = _columns(engine)[name]
    return exact_order(engine.dialect, key) if name in TEXTS else key


def _has(store: Store, column: sa.Column[Any], text: str) -> sa.ColumnElement[bool]:
    """Whether a column's text has a part, in capital or small letters.

    SQLite's LIKE takes both as equal; `icontains` finds the same there at three times the CPU.
    """
    if store.engine.dialect.name == "sqlite":
        return column.contains(text, autoescape=True)
    return column.icontains(text, autoescape=True)


def _may_lack(name: str) -> bool:
    """Whether rows may have no value in a column."""
    return bool(trial_table.c[name].nullable)


def _conditions(store: Store, query: TrialQuery) -> list[sa.ColumnElement[bool]]:
    t = trial_table.c
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


def _is_after(
    name: str, key: sa.ColumnElement[Any], descending: bool, value: str | float | None, last: int
) -> sa.ColumnElement[bool]:
    """The rows after (value, id) in the order of `_select`."""
    later = trial_table.c.id > last
    if value is None:
        return sa.and_(key.is_(None), later)
    beyond = key < value if descending else key > value
    if name == "id":
        return beyond
    after = sa.or_(beyond, sa.and_(key == value, later))
    return sa.or_(after, key.is_(None)) if _may_lack(name) else after


def _is_before(
    key: sa.ColumnElement[Any], descending: bool, value: str | float | None, first: int
) -> sa.ColumnElement[bool]:
    """The rows before (value, id) in the order of `read_trials`."""
    earlier = trial_table.c.id < first
    if value is None:
        return sa.or_(key.is_not(None), sa.and_(key.is_(None), earlier))
    return sa.or_(key > value if descending else key < value, sa.and_(key == value, earlier))


def _seconds(
    connection: sa.Connection, store: Store, trials: Sequence[int]
) -> dict[int, tuple[float | None, float | None]]:
    """trial -> seconds that its agent took, and that its environment took."""
    u = turn_table.c
    there = {column.name for column in existing_columns(store.engine, turn_table)}
    world = sa.func.sum(Number(u.world_seconds)) if "world_seconds" in there else sa.null()
    query = sa.select(u.trial, sa.func.sum(Number(u.model_seconds)), world).group_by(u.trial)
    rows = connection.execute(query.where(u.run == store.run, u.trial.in_(trials)))
    return {int(trial): (model_s, world_s) for trial, model_s, world_s in rows}


def _row(row: Mapping[str, Any], clocks: tuple[float | None, float | None]) -> TrialRow:
    fields = {name: row[name] for name in TrialRow.model_fields if name in row}
    return TrialRow(**fields, model_seconds=clocks[0], world_seconds=clocks[1])
