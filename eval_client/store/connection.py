"""Stores by URL: how to connect to one, and which runs it holds."""

import asyncio
import logging
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import sqlalchemy as sa

from eval_client.store import wal
from eval_client.store.tables import run_table
from proctor.observability.redaction import remember

Answer = TypeVar("Answer")

log = logging.getLogger(__name__)

AGAIN_S = 1.0
SAY_AFTER = 5
"""Tries in vain after which `retry_until_available` says what it waits for."""
RESTORE = "restore it from a copy, or start a new run"
FORBIDDEN = (1044, 1142, 1143)
"""MariaDB's and MySQL's codes for what an account may not do with a database, a table or a column."""
IDLE_IN_TRANSACTION = "25P03"
"""PostgreSQL's code for a connection that it closed since its client stood still in the midst of a transaction."""


class StoreError(ValueError):
    """The store can't be used as asked; the message says what to do."""


class RunOver(StoreError):
    """The run has come to its end; there is nothing to join."""


class RunExists(StoreError):
    """A new run can't be written: there is one of that name."""


def connect(url: str) -> sa.Engine:
    """An engine for a store's URL. SQLite is set to WAL with full durability."""
    try:
        parsed = sa.make_url(url)
        remember(str(parsed.password or ""))
        if parsed.get_backend_name() in ("mysql", "mariadb"):
            parsed = parsed.update_query_dict({"charset": "utf8mb4"})
        engine = sa.create_engine(parsed, pool_pre_ping=True)
    except (sa.exc.ArgumentError, ImportError) as error:
        fix = "use sqlite, postgresql+psycopg or mysql+pymysql, and install its extra"
        raise StoreError(f"store: {error}; {fix}") from error
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _set_up_sqlite)
        if engine.url.database not in (None, "", ":memory:"):
            _watch_file(engine, str(engine.url.database))
    return engine


def _watch_file(engine: sa.Engine, path: str) -> None:
    """Look at what a kill has left of a store's file, and refuse its connections once it is another file."""
    first: list[tuple[int, int]] = []

    def open_file(_dialect: object, _record: object, arguments: list[str], options: dict[str, Any]) -> object:
        acknowledged = wal.acknowledged_frames(path)
        _suit_read_only(path, arguments, options)
        connection: sqlite3.Connection = sqlite3.connect(arguments[0], **options)
        if acknowledged:
            wal.note_losses(connection, path, acknowledged)
        return connection

    def check_identity(_connection: object, _record: object, _proxy: object) -> None:
        try:
            status = os.stat(path)
        except FileNotFoundError:
            now = None
        else:
            now = status.st_dev, status.st_ino
            first[:] = first or [now]
        if [now] != first:
            raise StoreError(
                f"{path} was removed or replaced while this client had it open: it writes nothing more, and what it "
                "has written is not in the file that is there now; put the run's own file back, then resume it"
            )

    sa.event.listen(engine, "do_connect", open_file)
    sa.event.listen(engine, "checkout", check_identity)


def _suit_read_only(path: str, arguments: list[str], options: dict[str, Any]) -> None:
    """In a folder that can't be written to SQLite makes no log, so it has to be told that nobody else writes either."""
    if not os.path.exists(path) or is_writable(path):
        return
    if not wal.stands(path):
        arguments[0], options["uri"] = f"file:{quote(path)}?immutable=1", True
    elif not os.path.exists(f"{path}-shm"):
        raise StoreError(
            f"{path}: its newest commits are in {path}-wal, which SQLite can't read in a folder that can't be written "
            "to; copy the run's folder to where it can be, and name the copy"
        )


def is_writable(path: str) -> bool:
    """Whether a store's file can be written, and those that SQLite makes beside it."""
    return os.access(Path(path).parent, os.W_OK)


def passes(error: sa.exc.SQLAlchemyError) -> bool:
    """Whether the same may be tried again later: the database is away, full, locked, or has dropped the connection."""
    if isinstance(error, sa.exc.OperationalError):
        return not is_damage(error) and not _is_forbidden(error)
    return isinstance(error, sa.exc.DBAPIError) and (
        error.connection_invalidated or getattr(error.orig, "sqlstate", None) == IDLE_IN_TRANSACTION
    )


def _is_forbidden(error: sa.exc.OperationalError) -> bool:
    """Whether the account has no right to it: drivers of those two say so with the errors of a server that is away."""
    return error.orig is not None and error.orig.args[:1] in [(code,) for code in FORBIDDEN]


def is_damage(error: sa.exc.SQLAlchemyError) -> bool:
    """Whether a SQLite file is no store any more: tables are gone, pages are not what they were."""
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def damaged(engine: sa.Engine, what: str) -> str:
    """What to say of a store that is damaged, and what to do."""
    where = engine.url.render_as_string(hide_password=True)
    return f"store {engine.url.database if engine.dialect.name == 'sqlite' else where} is damaged: {what}; {RESTORE}"


async def retry_until_available(ask: Callable[..., Answer], *arguments: object, aside: bool = True) -> Answer:
    """The database's answer, whenever it can be had; asked in a thread, or where not `aside` here and now."""
    tried = 0
    while True:
        try:
            return await asyncio.to_thread(ask, *arguments) if aside else ask(*arguments)
        except sa.exc.SQLAlchemyError as error:
            if not passes(error):
                raise
            tried += 1
            if tried == SAY_AFTER:
                log.warning("the store does not answer, waiting: %s", reason(error))
            await asyncio.sleep(AGAIN_S)


def reason(error: sa.exc.SQLAlchemyError) -> str:
    """What the database said, in its own words."""
    return str(getattr(error, "orig", None) or type(error).__name__)


def _set_up_sqlite(connection: object, _record: object) -> None:
    cursor = connection.cursor()  # type: ignore[attr-defined]
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=5000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def sqlite_url(folder: Path) -> str:
    """The URL of the store inside a run's folder."""
    return f"sqlite:///{folder.resolve() / 'run.sqlite'}"


def runs(engine: sa.Engine) -> list[tuple[str, str, str]]:
    """(run, created at, state) of every run in a store, oldest first."""
    if not sa.inspect(engine).has_table(run_table.name):
        return []
    with engine.connect() as connection:
        query = sa.select(run_table.c.id, run_table.c.created_at, run_table.c.state).order_by(run_table.c.created_at)
        return [(row.id, row.created_at, row.state) for row in connection.execute(query)]
