"""Upgrades the tables of an earlier version before a client writes to them."""

import logging
from collections.abc import Callable
from itertools import takewhile
from typing import Any
from weakref import WeakKeyDictionary

import sqlalchemy as sa

from eval_client.store.connection import StoreError, is_transient, reason
from eval_client.store.tables import (
    attempt_table,
    binary_collation,
    is_mysql,
    metadata,
    reply_table,
    run_table,
    trial_table,
    turn_table,
)
from eval_client.store.values import RESTORE

log = logging.getLogger(__name__)

GROWN = (run_table, trial_table, attempt_table, turn_table, reply_table)
"""The tables that have got columns since schema 2."""
FIRST_ADDED = {
    "proctor_run": "stop",
    "proctor_trial": "cluster",
    "proctor_attempt": "digest",
    "proctor_turn": "cached_tokens",
    "proctor_reply": "cached_tokens",
}
"""table -> the first of its columns that schema 2 lacks."""
NARROW = (
    *("run", "agent", "task", "reason", "id", "score", "sample", "epoch", "turns", "prompt_tokens"),
    *("completion_tokens", "cached_tokens", "reasoning_tokens", "seconds", "ended_at", "attempts"),
    *("cluster", "cut_answers", "cache_write_tokens", "estimated_tokens", "billed_tokens", "billed_money"),
)
INDEXES = (
    "DROP INDEX IF EXISTS proctor_trial_narrow",
    "DROP INDEX IF EXISTS proctor_trial_columns",
    f"CREATE INDEX IF NOT EXISTS proctor_trial_sums ON proctor_trial ({', '.join(NARROW)})",
    "CREATE INDEX IF NOT EXISTS proctor_trial_cause ON proctor_trial (run, agent, task, cause, id) "
    "WHERE cause IS NOT NULL",
)
"""What reports, filters and sorts read in SQLite in place of whole rows, nine tenths of which are finishes.

`proctor_trial_narrow` and `proctor_trial_columns` are those of earlier versions, which lack columns.

A store without them, of an earlier version and never resumed, is read more slowly.
"""
LOOSE = (
    "the store's tables are of an earlier version, in which names that differ only in case, accents or final blanks "
    "count as one, and so may the figures read from them; the next run or resume there converts them, or as their "
    "owner: %s"
)
_NO_TABLES = (
    "its account may not create the tables there; grant it CREATE, ALTER, INDEX, SELECT, INSERT, UPDATE and DELETE, in "
    "PostgreSQL CREATE on the schema, or give the URL of an account that has them"
)
TOKEN_COUNTS = ("prompt_tokens", "completion_tokens")
OLDEST_MARIADB, OLDEST_MYSQL = (10, 2, 2), (8, 0, 17)
"""The first versions with a binary collation that counts final blanks."""


def migrate(engine: sa.Engine) -> None:
    """Add missing tables, columns and indexes, widen token counts, and make MySQL and MariaDB compare texts exactly.

    Several clients may do so at the same time. Raises StoreError where the store's account lacks the right or the
    server is too old, DatabaseError where the database is unavailable.
    """
    _check_version(engine)
    try:
        _again_if_it_fails(metadata.create_all, engine)
        _again_if_it_fails(_compare_exactly, engine)
        _again_if_it_fails(_add_columns, engine)
    except sa.exc.DatabaseError as error:
        if is_transient(error):
            raise
        if not sa.inspect(engine).has_table(run_table.name):
            raise StoreError(f"store: {_NO_TABLES}: {reason(error)}") from error
        changes = loose_tables(engine) or [table.name for table in GROWN]
        fix = f"let its account create tables, and alter {', '.join(changes)} (as their owner)"
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
    """The columns of a table that a store has; one of an earlier schema lacks some.

    Warns, once for an engine, where MySQL or MariaDB would take different names in it as equal.
    """
    if engine not in _complete and (loose := loose_tables(engine)):
        log.warning(LOOSE, "; ".join(_conversion(engine, table) for table in loose))
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
    """The columns that a store has. Raises StoreError where one is missing that every version has made."""
    try:
        there = {column["name"] for column in sa.inspect(engine).get_columns(table.name)}
    except sa.exc.NoSuchTableError:
        there = set()
    always = takewhile(lambda column: column.name != FIRST_ADDED.get(table.name), table.columns)
    if missing := [column for column in always if column.name not in there]:
        raise StoreError(f"the store is damaged: it has no {table.name}.{missing[0].name}; {RESTORE}")
    return [column for column in table.columns if column.name in there]


def _check_version(engine: sa.Engine) -> None:
    if not is_mysql(engine.dialect):
        return
    engine.connect().close()  # only a connection tells the version
    is_mariadb = getattr(engine.dialect, "is_mariadb", False)
    name, oldest = ("MariaDB", OLDEST_MARIADB) if is_mariadb else ("MySQL", OLDEST_MYSQL)
    found = engine.dialect.server_version_info or ()
    if found < oldest:
        needed, version = (".".join(map(str, numbers)) for numbers in (oldest, found))
        raise StoreError(f"store: {name} {version} can't compare names exactly; use {name} {needed} or later")


def loose_tables(engine: sa.Engine) -> list[str]:
    """The tables in MySQL or MariaDB that earlier versions made, with a column that compares texts loosely."""
    if not is_mysql(engine.dialect):
        return []
    query = sa.text(
        "SELECT DISTINCT table_name FROM information_schema.columns WHERE table_schema = DATABASE() "
        "AND table_name IN :names AND collation_name <> :collation ORDER BY table_name"
    ).bindparams(sa.bindparam("names", expanding=True))
    with engine.connect() as connection:
        values = {"names": list(metadata.tables), "collation": binary_collation(engine.dialect)}
        return list(connection.execute(query, values).scalars())


def _compare_exactly(engine: sa.Engine) -> None:
    """Convert the tables that compare texts loosely. No key is lost: what is equal exactly is equal loosely too."""
    for table in loose_tables(engine):
        with engine.begin() as connection:
            connection.execute(sa.text(_conversion(engine, table)))


def _conversion(engine: sa.Engine, table: str) -> str:
    return f"ALTER TABLE {table} CONVERT TO CHARACTER SET utf8mb4 COLLATE {binary_collation(engine.dialect)}"


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


def use_rights(engine: sa.Engine) -> list[int]:
    """Use each right that a run needs once, on a table that is dropped again; the schemas of the runs in the store.

    Raises DatabaseError where the account lacks one.
    """
    probe = sa.Table("proctor_doctor_probe", sa.MetaData(), sa.Column("n", sa.Integer))
    with engine.begin() as connection:
        probe.create(connection, checkfirst=True)
        connection.execute(probe.insert(), {"n": 1})
        connection.execute(probe.update().values(n=2))
        connection.execute(probe.delete())
        probe.drop(connection)
    with engine.connect() as connection:
        if not sa.inspect(connection).has_table(run_table.name):
            return []
        return list(connection.execute(sa.select(run_table.c.schema_version).distinct()).scalars())
