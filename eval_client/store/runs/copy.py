"""Copies a run from one store to another, row by row, and checks that all rows arrived."""

from typing import Any

import sqlalchemy as sa

from eval_client.store.connection import RunExists, StoreError
from eval_client.store.lock import check_idle, no_client
from eval_client.store.migration import existing_columns, migrate
from eval_client.store.store import Store
from eval_client.store.tables import (
    SCHEMA_VERSION,
    attempt_table,
    live_table,
    reply_table,
    run_table,
    shard_table,
    summary_table,
    trial_table,
    turn_table,
)

BATCH = 500
"""Rows that are written at once."""
TABLES = {
    "run": run_table,
    "shards": shard_table,
    "trials": trial_table,
    "attempts": attempt_table,
    "turns": turn_table,
    "replies": reply_table,
    "summaries": summary_table,
    "live views": live_table,
}
"""What a run's rows are called in messages -> their table; the run's own row, which tells that it exists, is first."""


def copy_run(source: Store, target: Store) -> dict[str, int]:
    """Copy every row of a run in one transaction; the number of rows by kind.

    Raises RunExists, or StoreError where a client plays the run, or rows were lost on the way.
    """
    source.manifest()
    check_idle(source)
    migrate(target.engine)
    with no_client(source), source.engine.connect() as connection, target.engine.begin() as writer:
        reader = connection.execution_options(stream_results=True)
        if _count(writer, run_table, target.run):
            raise RunExists(f"run {target.run!r} exists in the other store already; remove it there first")
        there = set(sa.inspect(source.engine).get_table_names())
        copied = {
            kind: _copy_table(reader, writer, existing_columns(source.engine, table), table, source.run)
            for kind, table in TABLES.items()
            if table.name in there
        }
        arrived = {kind: _count(writer, TABLES[kind], target.run) for kind in copied}
        now = {kind: _count(reader, TABLES[kind], source.run) for kind in copied}
        if not copied == arrived == now:
            raise StoreError(f"run {source.run!r} was not copied: it has rows {now}, of which {arrived} arrived")
    return copied


def _copy_table(
    reader: sa.Connection, writer: sa.Connection, columns: list[sa.Column[Any]], table: sa.Table, run: str
) -> int:
    """Copy the rows of a table that belong to a run; how many they were."""
    copied = 0
    rows = reader.execute(sa.select(*columns).where(_of_run(table, run)))
    for batch in rows.mappings().partitions(BATCH):
        writer.execute(table.insert(), [_row(table, row) for row in batch])
        copied += len(batch)
    return copied


def _row(table: sa.Table, row: sa.RowMapping) -> dict[str, Any]:
    return {**row, "schema_version": SCHEMA_VERSION, "stop": None} if table is run_table else dict(row)


def _count(connection: sa.Connection, table: sa.Table, run: str) -> int:
    count = sa.select(sa.func.count()).select_from(table).where(_of_run(table, run))
    return int(connection.execute(count).scalar_one())


def _of_run(table: sa.Table, run: str) -> sa.ColumnElement[bool]:
    return (table.c.id if table is run_table else table.c.run) == run
