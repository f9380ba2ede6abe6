"""Reads the tables of an earlier version, and upgrades them before a client writes to them.

Whatever a store lacks is found by comparing its tables with those that are declared.
"""

import logging
from collections.abc import Callable, Iterator
from functools import cache
from itertools import takewhile
from typing import Any
from weakref import WeakKeyDictionary

import sqlalchemy as sa

from eval_client.store.connection import StoreError, is_transient, reason
from eval_client.store.tables import (
    attempt_table,
    binary_collation,
    call_table,
    is_mysql,
    live_table,
    metadata,
    reply_table,
    run_table,
    trial_table,
    turn_table,
)
from eval_client.store.values import RESTORE

log = logging.getLogger(__name__)

GROWN = {run_table: "stop", trial_table: "cluster", attempt_table: "digest", turn_table: "cached_tokens"}
GROWN |= {reply_table: "cached_tokens"}
"""The tables that have got columns since schema 2 -> the first of them."""
LATER = (reply_table, live_table, call_table)
"""Tables that a store of an earlier version may lack."""
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

The first two are those of earlier versions, which lack columns. A store without the others is read more slowly.
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
OLDEST = {"MariaDB": (10, 2, 2), "MySQL": (8, 0, 17)}
"""The first versions with a binary collation that counts final blanks."""
_complete: WeakKeyDictionary[sa.Engine, set[str]] = WeakKeyDictionary()
"""engine -> its tables that were seen with all columns; no version drops one"""


def migrate(engine: sa.Engine) -> None:
    """Add missing tables, columns and indexes, and make MySQL and MariaDB compare texts exactly.

    Several clients may do so at the same time. Raises StoreError where the store's account lacks the right or the
    server is too old, DatabaseError where the database is unavailable.
    """
    if is_mysql(engine.dialect):
        _check_version(engine)
    try:
        _change(engine, metadata.create_all)
        _change(engine, _conversions)
        _change(engine, _additions)
    except sa.exc.DatabaseError as error:
        if is_transient(error):
            raise
        if not sa.inspect(engine).has_table(run_table.name):
            raise StoreError(f"store: {_NO_TABLES}: {reason(error)}") from error
        changes = loose_tables(engine) or [table.name for table in GROWN]
        fix = f"let its account create tables, and alter {', '.join(changes)} (as their owner)"
        raise StoreError(f"store: its tables are of an earlier version; {fix}: {reason(error)}") from error


def _change(engine: sa.Engine, change: Callable[[sa.Engine], Iterator[str] | None]) -> None:
    """Make a change, or those of its statements; try up to three times, since other clients may be making the same."""
    for left in (2, 1, 0):
        try:
            for statement in change(engine) or ():
                with engine.begin() as connection:
                    connection.execute(sa.text(statement))
            return
        except sa.exc.DatabaseError:
            if not left:
                raise


def _conversions(engine: sa.Engine) -> Iterator[str]:
    """Let tables compare texts exactly. No key is lost: what is equal exactly is equal loosely too."""
    for table in loose_tables(engine):
        collation = binary_collation(engine.dialect)
        yield f"ALTER TABLE {table} CONVERT TO CHARACTER SET utf8mb4 COLLATE {collation}"


def _additions(engine: sa.Engine) -> Iterator[str]:
    """Add columns that an earlier version had not; in SQLite indexes too."""
    for table in GROWN:
        there = _columns_now(engine, table)
        for column in (column for column in table.columns if column not in there):
            added = sa.schema.CreateColumn(column).compile(dialect=engine.dialect)
            yield f"ALTER TABLE {table.name} ADD COLUMN {added}"
    if engine.dialect.name == "sqlite":
        yield from INDEXES


def _check_version(engine: sa.Engine) -> None:
    engine.connect().close()  # only a connection tells the version
    name = "MariaDB" if getattr(engine.dialect, "is_mariadb", False) else "MySQL"
    found = engine.dialect.server_version_info or ()
    if found < OLDEST[name]:
        needed, version = (".".join(map(str, numbers)) for numbers in (OLDEST[name], found))
        raise StoreError(f"store: {name} {version} can't compare names exactly; use {name} {needed} or later")


def stored(engine: sa.Engine, table: sa.Table) -> sa.FromClause:
    """A table to read as a store has it: NULL stands for columns that an earlier schema lacks."""
    there = existing_columns(engine, table)
    if len(there) == len(table.columns):
        return table
    return _filled(table, tuple(column.name for column in there), engine.dialect.name == "postgresql")


@cache
def _filled(table: sa.Table, there: tuple[str, ...], typed: bool) -> sa.FromClause:
    """`typed` gives each NULL its column's type, without which PostgreSQL takes it for a text."""
    null = sa.cast if typed else sa.type_coerce
    columns = [column for column in table.columns if column.name in there]
    lacking = (column for column in table.columns if column.name not in there)
    empty = (null(sa.null(), getattr(column.type, "of", column.type)).label(column.name) for column in lacking)
    return sa.select(*columns, *empty).where(sa.true() if there else sa.false()).subquery(table.name)


def existing_columns(engine: sa.Engine, table: sa.Table) -> list[sa.Column[Any]]:
    """The columns of a table that a store has; one of an earlier schema lacks some.

    Warns, once for an engine, where MySQL or MariaDB would take different names in it as equal.
    """
    if engine not in _complete and loose_tables(engine):
        log.warning(LOOSE, "; ".join(_conversions(engine)))
    complete = _complete.setdefault(engine, set())
    if table.name in complete:
        return list(table.columns)
    found = _columns_now(engine, table)
    if len(found) == len(table.columns):
        complete.add(table.name)
    return found


def _columns_now(engine: sa.Engine, table: sa.Table) -> list[sa.Column[Any]]:
    """The columns that a store has. Raises StoreError where one is missing that every version has made."""
    try:
        there = {column["name"] for column in sa.inspect(engine).get_columns(table.name)}
    except sa.exc.NoSuchTableError:
        if table in LATER:
            return []
        there = set()
    always = takewhile(lambda column: column.name != GROWN.get(table), table.columns)
    if missing := [column for column in always if column.name not in there]:
        raise StoreError(f"the store is damaged: it has no {table.name}.{missing[0].name}; {RESTORE}")
    return [column for column in table.columns if column.name in there]


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
