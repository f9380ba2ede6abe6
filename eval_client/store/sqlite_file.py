"""Files of SQLite's: how they are opened, in a read-only folder and on a full disk too, and taken for data alone."""

import contextlib
import os
import re
import sqlite3
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from eval_client.store.values import MOST_BYTES, RESTORE, StoreError, Unreadable

_NOT_PLAIN = re.compile(r"\b(AS|CHECK|VIRTUAL|WITHOUT|REFERENCES|COLLATE)\b", re.IGNORECASE)
_UNDECODABLE = re.compile(r"Could not decode to UTF-8 column '(\w+)'")


def open_for_writing(engine: sa.Engine) -> None:
    """Let an engine open its file with WAL and full durability, and refuse it once it was removed or replaced."""
    sa.event.listen(engine, "connect", _set_up)
    sa.event.listen(engine, "handle_error", explained)
    path = engine.url.database
    if path not in (None, "", ":memory:"):
        sa.event.listen(engine, "do_connect", partial(_open_store_file, str(path)))
        sa.event.listen(engine, "checkout", partial(_check_identity, str(path), []))


def open_for_reading(engine: sa.Engine) -> sa.Engine:
    """An engine that only reads the file of another, and holds no connection to it longer than a query takes."""
    reading = sa.create_engine(engine.url, poolclass=sa.pool.NullPool)
    sa.event.listen(reading, "do_connect", _open_read_only)
    sa.event.listen(reading, "connect", lambda connection, _record: guard(connection))
    sa.event.listen(reading, "handle_error", explained)
    return reading


def _open_store_file(
    path: str, _dialect: object, _record: object, arguments: list[str], options: dict[str, Any]
) -> sqlite3.Connection:
    """Open a store's file as its folder allows."""
    _adapt_to_read_only(path, arguments, options)
    connection: sqlite3.Connection = sqlite3.connect(arguments[0], **options)
    try:
        connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL):
            raise
        connection.close()
        return _read_into_memory(path, options)
    return connection


def _check_identity(path: str, first: list[tuple[int, int]], *_: object) -> None:
    """Raises StoreError where the file is another than at first."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        now = None
    else:
        now = status.st_dev, status.st_ino
        first[:] = first or [now]
    if [now] != first:
        raise StoreError(
            f"{path} was removed or replaced while this client had it open: this client stops writing, and its earlier "
            "writes are not in the present file; put the run's own file back, then resume the run"
        )


def _adapt_to_read_only(path: str, arguments: list[str], options: dict[str, Any]) -> None:
    """Open a store in a read-only folder as immutable, since SQLite can't create its log there. Raises StoreError."""
    if not os.path.exists(path) or is_writable(path):
        return
    if not has_log(path):
        arguments[0], options["uri"] = f"file:{quote(os.fsencode(path))}?immutable=1", True
    elif not os.path.exists(f"{path}-shm"):
        raise StoreError(
            f"{path}: its newest commits are in {path}-wal, which SQLite can't read in a read-only folder; "
            "copy the run's folder to a writable place, and name the copy"
        )


def _open_read_only(_dialect: object, _record: object, arguments: list[str], options: dict[str, Any]) -> None:
    """Make a connection to a file read-only. Raises StoreError where the file is not there."""
    path = arguments[0]
    if not os.path.isfile(path):
        raise StoreError(f"{path} is not there; was the run's folder moved or removed?")
    immutable = not is_writable(path) and not has_log(path)  # SQLite could not create its log there
    arguments[0], options["uri"] = f"file:{quote(os.fsencode(path))}?{'immutable=1' if immutable else 'mode=ro'}", True


def _read_into_memory(path: str, options: Mapping[str, Any]) -> sqlite3.Connection:
    """A copy of a store to read, where the disk has no room for the index of its log: this process holds that index."""
    copy: sqlite3.Connection = sqlite3.connect(":memory:", **options)
    with contextlib.closing(sqlite3.connect(path)) as source:
        source.execute("PRAGMA locking_mode=EXCLUSIVE")
        source.backup(copy)
    copy.execute("PRAGMA query_only=ON")
    return copy


def _set_up(connection: sqlite3.Connection, _record: object) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=5000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
    guard(connection)


def is_writable(path: str) -> bool:
    """Whether the folder of a store's file is writable, as SQLite needs for its log."""
    return os.access(Path(path).parent, os.W_OK)


def has_log(path: str) -> bool:
    """Whether a store has a log that is not empty."""
    log = Path(f"{path}-wal")
    return log.exists() and log.stat().st_size > 0


def guard(connection: sqlite3.Connection) -> None:
    """Take a file of SQLite's for data alone: no function of its schema runs, and our tables are plain tables.

    Raises StoreError where one is a view, has a trigger, or has computed columns.
    """
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
    query = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE tbl_name LIKE 'proctor#_%' ESCAPE '#'"
    for kind, name, table, sql in connection.execute(query):
        plain = kind == "index" or (kind == "table" and not _NOT_PLAIN.search(str(sql)))
        if not plain:
            what = f"{kind} {ascii(name)[1:-1][:80]}" if kind != "table" else "no plain table"
            raise StoreError(f"the store is damaged: {ascii(table)[1:-1][:80]}: {what}; {RESTORE}")


def explained(context: sa.engine.ExceptionContext) -> None:
    """Raises StoreError for what SQLite's driver can't hand over as a value: text that is no UTF-8, or is too large."""
    error = context.original_exception
    if not isinstance(error, sqlite3.Error):
        return
    statement = context.statement or getattr(context.execution_context, "statement", None) or ""
    if undecodable := _UNDECODABLE.search(str(error)):
        name = undecodable[1]
        table = re.search(rf"\b(proctor_\w+)\.\W?{name}\b", statement)
        raise Unreadable(f"{table[1] if table else 'a table'}.{name}", "a text that is no UTF-8") from error
    if context.execution_context and _is_too_big(error) and statement.startswith("SELECT"):
        where = _too_big(context.execution_context.cursor, statement)
        raise Unreadable(where, f"more than {MOST_BYTES:,} bytes") from error


def _is_too_big(error: BaseException) -> bool:
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_TOOBIG


def _too_big(cursor: Any, statement: str) -> str:
    """The column of a statement, as TABLE.COLUMN, that holds a value beyond the limit."""
    for table, column in dict.fromkeys(re.findall(r"\b(proctor_[a-z]+)\.\W?(\w+)", statement)):
        try:
            cursor.connection.execute(f'SELECT max(length("{column}")) FROM {table}').fetchall()
        except sqlite3.Error as error:
            if _is_too_big(error):
                return f"{table}.{column}"
    return "a column"
