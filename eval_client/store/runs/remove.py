"""Removes runs that no client plays: their rows, and their folders."""

import contextlib
import shutil
from pathlib import Path

import sqlalchemy as sa

from eval_client.store.connection import StoreError, file_url
from eval_client.store.lock import check_idle, sole_client
from eval_client.store.store import Store
from eval_client.store.tables import metadata, run_table
from eval_client.store.values import check_name


def remove_run(store: Store, folder: Path) -> None:
    """Remove a run: the whole folder where its store is in it; else its rows in the database, and its logs.

    Raises StoreError where a client plays the run or a database has none of its name, OSError where the folder can't be
    removed.
    """
    check_name(store.run)
    check_idle(store)
    with sole_client(store):
        if store.engine.url == file_url(folder):
            store.engine.dispose()
            shutil.rmtree(folder)
        elif not store.exists():
            raise StoreError(f"no run {store.run!r} in this store; `proctor ls` lists the runs")
        else:
            _remove_rows(store)
            _remove_logs(folder)


def _remove_rows(store: Store) -> None:
    """Remove the run's rows in one transaction; the run's own row goes last."""
    there = set(sa.inspect(store.engine).get_table_names())
    tables = [table for table in metadata.tables.values() if table.name in there and table is not run_table]
    with store.engine.begin() as connection:
        for table in tables:
            connection.execute(table.delete().where(table.c.run == store.run))
        connection.execute(run_table.delete().where(run_table.c.id == store.run))


def _remove_logs(folder: Path) -> None:
    """Remove the logs of a run's servers on this machine, and the folder if nothing else is in it."""
    shutil.rmtree(folder / "logs", ignore_errors=True)
    with contextlib.suppress(OSError):
        folder.rmdir()
