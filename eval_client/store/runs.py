"""What is done to a whole run from outside: watching it read-only, and removing it."""

import contextlib
import shutil
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from eval_client.store.connection import StoreError, connect, file_url
from eval_client.store.lock import is_worked_on, sole_client
from eval_client.store.migration import stored
from eval_client.store.sqlite_file import open_for_reading
from eval_client.store.store import Store
from eval_client.store.tables import live_table, metadata, run_table
from eval_client.store.values import check_name


class RunMoment(NamedTuple):
    """A run at one moment, read without reading its trials."""

    state: str
    """The stored one."""
    fence: int
    beat: int = 0
    """It grows with each live view."""
    view: str = ""
    """The live view of the client that plays the run, as JSON; empty until the first is written."""


def connect_read_only(url: str | sa.URL) -> sa.Engine:
    """An engine that can only read a store, and holds no connection to a file longer than a query takes.

    Raises StoreError for an invalid URL.
    """
    engine = connect(url)
    if engine.dialect.name == "sqlite":
        return open_for_reading(engine)
    sa.event.listen(engine, "connect", partial(_refuse_writes, engine.dialect.name == "postgresql"))
    return engine


def _refuse_writes(postgresql: bool, connection: Any, _record: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET SESSION {'CHARACTERISTICS AS ' if postgresql else ''}TRANSACTION READ ONLY")
    connection.commit()


def run_moment(engine: sa.Engine, run: str) -> RunMoment:
    """The run's state and live view. Raises StoreError where the run is not there, DatabaseError."""
    shown = stored(engine, live_table).c
    query = sa.select(shown.beat, shown.view).where(shown.run == run).order_by(shown.shard.desc()).limit(1)
    with engine.connect() as connection:
        if not sa.inspect(connection).has_table(run_table.name):
            raise StoreError(f"run {run!r} was stopped before it began; run its plan again")
        facts = sa.select(run_table.c.state, run_table.c.fence).where(run_table.c.id == run)
        row = connection.execute(facts).one_or_none()
        if row is None:
            raise StoreError(f"run {run!r} is no longer in its store")
        live = connection.execute(query).one_or_none()
    return RunMoment(row.state, int(row.fence), *(() if live is None else (int(live.beat), live.view)))


def remove_run(store: Store, folder: Path) -> None:
    """Remove a run: the whole folder where its store is in it; else its rows in the database, and its logs.

    Raises StoreError where a client plays the run or a database has none of its name, OSError where the folder can't be
    removed.
    """
    check_name(store.run)
    if is_worked_on(store):
        raise StoreError(f"run {store.run!r} is being played; stop it first: proctor stop {store.run}")
    with sole_client(store):
        if store.engine.url == file_url(folder):
            store.engine.dispose()
            shutil.rmtree(folder)
        elif not store.exists():
            raise StoreError(f"no run {store.run!r} in this store; `proctor ls` lists the runs")
        else:
            _remove_rows(store)
            shutil.rmtree(folder / "logs", ignore_errors=True)
            with contextlib.suppress(OSError):
                folder.rmdir()


def _remove_rows(store: Store) -> None:
    """Remove the run's rows in one transaction; the run's own row goes last."""
    there = set(sa.inspect(store.engine).get_table_names())
    tables = [table for table in metadata.tables.values() if table.name in there and table is not run_table]
    with store.engine.begin() as connection:
        for table in tables:
            connection.execute(table.delete().where(table.c.run == store.run))
        connection.execute(run_table.delete().where(run_table.c.id == store.run))
