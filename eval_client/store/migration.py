"""Upgrades the tables of an earlier version before a client writes to them."""

import logging
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import sqlalchemy as sa

from eval_client.store.connection import StoreError, is_transient, reason
from eval_client.store.tables import attempt_table, metadata, run_table, trial_table, turn_table

log = logging.getLogger(__name__)

GROWN = (run_table, trial_table, attempt_table, turn_table)
"""The tables that have got columns since schema 2."""
NARROW = (
    *("run", "agent", "task", "reason", "id", "score", "sample", "epoch", "turns", "prompt_tokens"),
    *("completion_tokens", "cached_tokens", "reasoning_tokens", "seconds", "ended_at", "attempts"),
    *("cluster", "cut_answers"),
)
INDEXES = (
    "DROP INDEX IF EXISTS proctor_trial_narrow",
    f"CREATE INDEX IF NOT EXISTS proctor_trial_columns ON proctor_trial ({', '.join(NARROW)})",
    "CREATE INDEX IF NOT EXISTS proctor_trial_cause ON proctor_trial (run, agent, task, cause, id) "
    "WHERE cause IS NOT NULL",
)
"""What reports, filters and sorts read in SQLite in place of whole rows, nine tenths of which are finishes.

`proctor_trial_narrow` is that of an earlier version, which lacks a column.

A store without them, of an earlier version and never resumed, is read more slowly.
"""
TOKEN_COUNTS = ("prompt_tokens", "completion_tokens")


def migrate(engine: sa.Engine) -> None:
    """Add missing tables, columns and indexes, and widen token counts. Several clients may do so at the same time.

    Raises StoreError where the store's account lacks the right, SQLAlchemyError where the database is unavailable.
    """
    try:
        _again_if_it_fails(metadata.create_all, engine)
        _again_if_it_fails(_add_columns, engine)
    except sa.exc.DatabaseError as error:
        if is_transient(error):
            raise
        fix = f"let its account create tables, and alter {', '.join(table.name for table in GROWN)} (as their owner)"
        raise StoreError(f"store: its tables are of an earlier version; {fix}: {reason(error)}") from error
    _widen_token_counts(engine)
    if engine.dialect.name == "sqlite":
        _again_if_it_fails(_add_indexes, engine)


def _again_if_it_fails(change: Callable[[sa.Engine], None], engine: sa.Engine) -> None:
    """Make a change; try it up to three times, since another client may be making the same change."""
    for left in (2, 1, 0):
        try:
            change(engine)
            return
        except sa.exc.DatabaseError:
            if not left:
                raise


def existing_columns(engine: sa.Engine, table: sa.Table) -> list[sa.Column[Any]]:
    """The columns of a table that a store has; one of an earlier schema lacks some."""
    complete = _complete.setdefault(engine, set())
    if table.name in complete:
        return list(table.columns)
    found = _columns_now(engine, table)
    if len(found) == len(table.columns):
        complete.add(table.name)
    return found


_complete: WeakKeyDictionary[sa.Engine, set[str]] = WeakKeyDictionary()
"""engine -> its tables that were seen with all columns; no version drops one"""


def _columns_now(engine: sa.Engine, table: sa.Table) -> list[sa.Column[Any]]:
    there = {column["name"] for column in sa.inspect(engine).get_columns(table.name)}
    return [column for column in table.columns if column.name in there]


def _add_columns(engine: sa.Engine) -> None:
    for table in GROWN:
        there = {column.name for column in _columns_now(engine, table)}
        missing = [column for column in table.columns if column.name not in there]
        with engine.begin() as connection:
            for column in missing:
                added = sa.schema.CreateColumn(column).compile(dialect=engine.dialect)
                connection.execute(sa.text(f"ALTER TABLE {table.name} ADD COLUMN {added}"))


def _add_indexes(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        for index in INDEXES:
            connection.execute(sa.text(index))


def _widen_token_counts(engine: sa.Engine) -> None:
    """Make the token counts of `proctor_turn` BIGINT, as those of trials are; SQLite's integers have no width."""
    if engine.dialect.name == "sqlite":
        return
    now = {column["name"]: column["type"] for column in sa.inspect(engine).get_columns(turn_table.name)}
    narrow = [name for name in TOKEN_COUNTS if not isinstance(now[name], sa.BigInteger)]
    if not narrow:
        return
    change = "ALTER COLUMN {} TYPE BIGINT" if engine.dialect.name == "postgresql" else "MODIFY {} BIGINT NOT NULL"
    statement = f"ALTER TABLE {turn_table.name} {', '.join(map(change.format, narrow))}"
    try:
        with engine.begin() as connection:
            connection.execute(sa.text(statement))
    except sa.exc.DBAPIError as error:
        log.warning(
            "a turn of over 2147483647 tokens can't be stored; as the tables' owner: %s (%s)", statement, error.orig
        )
