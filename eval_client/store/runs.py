"""Runs from outside: how they are named, found, watched read-only and removed.

Each is in a folder with its SQLite file, or all are in one database server.
"""

import contextlib
import datetime
import getpass
import os
import re
import secrets
import shutil
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from pydantic import ValidationError

from eval_client.core.run_view import RunView
from eval_client.store.connection import StoreError, connect, file_url, runs
from eval_client.store.migration import stored
from eval_client.store.sqlite_file import open_for_reading
from eval_client.store.store import Store
from eval_client.store.tables import live_table, metadata, run_table
from eval_client.store.values import check_name, is_name
from proctor.config.wording import NAME
from proctor.config.yaml import FileError


class RunMoment(NamedTuple):
    """A run at one moment, read without reading its trials."""

    state: str
    """The stored one."""
    fence: int
    beat: int = 0
    """It grows with each live view."""
    view: str = ""
    """The live view of the client that plays the run, as JSON; empty until the first is written."""

    @property
    def shown(self) -> RunView | None:
        """The view; None before the first one, and where another version of Proctor wrote what can't be read."""
        try:
            return RunView.model_validate_json(self.view)
        except ValidationError:
            return None


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
    from eval_client.store.lock import is_worked_on, sole_client  # who only finds a run needs no lock: 2 ms

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


def owner_name() -> str | None:
    """Whose runs are begun here: PROCTOR_USER, None where that is empty; else the name of this account, if it has one.

    An account that many share, as that of a container, sets PROCTOR_USER to nothing.
    """
    try:
        given = os.environ.get("PROCTOR_USER")
        return getpass.getuser() if given is None else given or None
    except (OSError, KeyError):
        return None


def new_name(plan: str) -> str:
    """A name for a new run: the plan's, the time, and four hex digits."""
    now = datetime.datetime.now(datetime.UTC)
    return f"{plan[:40]}-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def checked_name(name: str) -> str:
    """The given name of a run, unchanged. Raises FileError where it is invalid."""
    if not re.fullmatch(NAME, name):
        raise FileError(f"--name {name}: use up to 64 letters, digits, dots, dashes and underscores")
    return name


def open_store(store: str | None, folder: Path) -> Store:
    """The store of the run that is named like its folder; without a URL it is SQLite in that folder, which is made.

    Raises StoreError.
    """
    if store is not None:
        return Store(connect(store, for_room=True), folder.name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"folder: {folder} can't be made: {error.strerror}; name another one") from error
    return Store(connect(file_url(folder)), folder.name)


def find_run(run: str, store: str | None, output: Path) -> tuple[Store, Path]:
    """An existing run and its folder: by path, by name, or `latest`. Raises StoreError."""
    if store is not None:
        engine = connect(store, for_room=True)
        names = [name for name, _, _ in runs(engine)]
        name = Path(run).name
        if run == "latest":
            name = next(filter(is_name, reversed(names)), name)
        elif name not in names:
            _refuse_parts(name, names)
        return Store(engine, name), output / name
    folders = reversed(run_folders(output)) if run == "latest" else filter(_is_run, (Path(run), output / run))
    folder = next(iter(folders), None)
    if folder is None:
        _refuse_parts(run, [each.name for each in run_folders(output)])
        raise StoreError(f"no run {run!r}: neither a run's folder nor a name in {output}; `proctor ls` lists the runs")
    return Store(connect(file_url(folder)), folder.resolve().name), folder


def find_parts(name: str, store: str | sa.Engine | None, output: Path) -> list[Store]:
    """The parts of a plan whose runs are NAME.KofN, by their numbers; none where there is a run of that name itself."""
    if store is not None:
        engine = connect(store, for_room=True) if isinstance(store, str) else store
        there = [run for run, _, _ in runs(engine)]
        found = [] if name in there else [Store(engine, run) for run in there if _is_part(run, name)]
    elif name == "latest" or _is_run(output / name) or _is_run(Path(name)):
        return []
    else:
        folders = [folder for folder in run_folders(output) if _is_part(folder.name, name)]
        found = [Store(connect(file_url(folder)), folder.name) for folder in folders]
    return sorted(found, key=lambda part: int(re.findall(r"\d+", part.run)[-2]))


def _refuse_parts(name: str, runs: Iterable[str]) -> None:
    """Raises StoreError where a name is that of a plan's parts together."""
    if parts := [run for run in runs if _is_part(run, name)]:
        raise StoreError(f"no run {name!r}, but the parts of a plan: name one of {', '.join(parts)}")


def _is_part(run: str, name: str) -> bool:
    return re.fullmatch(rf"{re.escape(name)}\.\d+of\d+", run) is not None


def run_folders(output: Path) -> list[Path]:
    """Run folders, oldest first; unreadable ones lead. Raises StoreError."""
    if not output.is_dir():
        return []
    try:
        found = [folder for folder in output.iterdir() if _is_run(folder)]
    except OSError as error:
        raise StoreError(f"{output}: can't be read: {error.strerror}; name another folder with -o") from error
    return sorted(found, key=_age_key)


def _age_key(folder: Path) -> tuple[str, str]:
    try:
        return Store(connect(file_url(folder)), folder.name).created_at(), folder.name
    except (StoreError, sa.exc.SQLAlchemyError):
        return "", folder.name


def _is_run(folder: Path) -> bool:
    return os.path.isfile(folder / "run.sqlite")  # False where it can't be looked at, too
