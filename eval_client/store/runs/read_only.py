"""Reads stores that others write: no row is written, no table is made, no connection to a file outlasts a query."""

import os
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

import sqlalchemy as sa

from eval_client.store.connection import StoreError, connect, is_writable
from eval_client.store.damage import has_log
from eval_client.store.tables import LIVE, live_table, run_table, shard_table
from eval_client.store.values import explained, guard

READ_ONLY = {
    "postgresql": "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    "mysql": "SET SESSION TRANSACTION READ ONLY",
    "mariadb": "SET SESSION TRANSACTION READ ONLY",
}
"""dialect -> the statement after which a session can't write"""


def connect_read_only(url: str | sa.URL) -> sa.Engine:
    """An engine that can only read a store. Raises StoreError for an invalid URL."""
    engine = connect(url)
    if engine.dialect.name == "sqlite":
        engine = sa.create_engine(engine.url, poolclass=sa.pool.NullPool)
        sa.event.listen(engine, "do_connect", _open_file)
        sa.event.listen(engine, "connect", lambda connection, _record: guard(connection))
        sa.event.listen(engine, "handle_error", explained)
    else:
        sa.event.listen(engine, "connect", partial(_refuse_writes, READ_ONLY[engine.dialect.name]))
    return engine


def _open_file(_dialect: object, _record: object, arguments: list[str], options: dict[str, Any]) -> None:
    """Make a connection to a file read-only. Raises StoreError where the file is not there."""
    path = arguments[0]
    if not os.path.isfile(path):
        raise StoreError(f"{path} is not there; was the run's folder moved or removed?")
    immutable = not is_writable(path) and not has_log(path)  # SQLite could not create its log there
    arguments[0], options["uri"] = f"file:{quote(os.fsencode(path))}?{'immutable=1' if immutable else 'mode=ro'}", True


def _refuse_writes(statement: str, connection: Any, _record: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
    connection.commit()


class RunMoment(NamedTuple):
    """A run at one moment, read without reading its trials."""

    state: str
    """The stored one."""
    fence: int
    beat: int = 0
    """It grows with each live view."""
    view: str = ""
    """The live view of the client that plays the run, as JSON; empty until the first is written."""


def run_moment(engine: sa.Engine, run: str) -> RunMoment:
    """The run's state and live view. Raises StoreError where the run is not there, DatabaseError."""
    mine = sa.and_(shard_table.c.run == live_table.c.run, shard_table.c.shard == live_table.c.shard)
    query = sa.select(live_table.c.beat, live_table.c.view).join_from(live_table, shard_table, mine)
    query = query.where(live_table.c.run == run, shard_table.c.state == LIVE).order_by(live_table.c.shard.desc())
    with engine.connect() as connection:
        tables = sa.inspect(connection).get_table_names()
        if run_table.name not in tables:
            raise StoreError(f"run {run!r} was stopped before it began; run its plan again")
        facts = sa.select(run_table.c.state, run_table.c.fence).where(run_table.c.id == run)
        row = connection.execute(facts).one_or_none()
        if row is None:
            raise StoreError(f"run {run!r} is no longer in its store")
        there = live_table.name in tables  # a store of schema 2 has none
        live = connection.execute(query.limit(1)).one_or_none() if there else None
    return RunMoment(row.state, int(row.fence), *(() if live is None else (int(live.beat), live.view)))
