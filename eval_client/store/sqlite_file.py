"""Files of SQLite's: how they are opened, what is gone from one, or damaged in it. Servers see to theirs themselves.

They are opened in a read-only folder and on a full disk too, and taken for data alone.

SQLite keeps the newest commits in its log (`-wal`). From a log that is damaged or cut it silently recovers the part
before the damage, from one that is missing nothing, and then deletes it. So a client counts what it has made durable in
a file of its own beside the store; a clean end, with which the log goes into the store, takes that file away.
"""

import contextlib
import os
import re
import sqlite3
from collections.abc import Mapping
from functools import partial
from operator import add
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from eval_client.shared_disk import journal_mode
from eval_client.store.tables import attempt_table, reply_table, trial_table, turn_table
from eval_client.store.values import MOST_BYTES, RESTORE, StoreError, Unreadable, is_damage

COUNTED = (turn_table, attempt_table, reply_table)
"""The tables whose rows are only added: what was asked and paid for."""
NAMED = 5
"""How many findings are listed."""
_open: dict[Path, str] = {}
"""The files of this process -> their stores."""
_NOT_PLAIN = re.compile(r"\b(AS|CHECK|VIRTUAL|WITHOUT|REFERENCES|COLLATE)\b", re.IGNORECASE)
_UNDECODABLE = re.compile(r"Could not decode to UTF-8 column '(\w+)'")


def open_for_writing(engine: sa.Engine) -> None:
    """Let an engine open its file with full durability, and refuse it once it was removed or replaced.

    With a write-ahead log, but not on a disk that machines share.
    """
    path = file_of(engine)
    sa.event.listen(engine, "connect", partial(_set_up, journal_mode(path) if path else "WAL"))
    sa.event.listen(engine, "handle_error", explained)
    if path:
        sa.event.listen(engine, "do_connect", partial(_open_store_file, path))
        sa.event.listen(engine, "checkout", partial(_check_identity, path, []))


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
    """Open a store's file as its folder allows: in a read-only one SQLite can't create its log. Raises StoreError."""
    if os.path.exists(path) and not is_writable(path):
        copy = "which SQLite can't read in a read-only folder; copy the run's folder to a writable place, and name that"
        if has_journal(path):
            raise StoreError(f"{path}: what a commit under way has changed is in {path}-journal, {copy}")
        if not has_log(path):
            arguments[0], options["uri"] = _uri(path, "immutable=1"), True
        elif not os.path.exists(f"{path}-shm"):
            raise StoreError(f"{path}: its newest commits are in {path}-wal, {copy}")
    connection: sqlite3.Connection = sqlite3.connect(arguments[0], **options)
    try:
        connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL):
            raise
        connection.close()
        return _read_into_memory(path, options)
    return connection


def _uri(path: str, how: str) -> str:
    return f"file:{quote(os.fsencode(path))}?{how}"


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


def _open_read_only(_dialect: object, _record: object, arguments: list[str], options: dict[str, Any]) -> None:
    """Make a connection to a file read-only. Raises StoreError where the file is not there."""
    path = arguments[0]
    if not os.path.isfile(path):
        raise StoreError(f"{path} is not there; was the run's folder moved or removed?")
    how = "mode=ro"
    if not is_writable(path) and not has_log(path):  # SQLite could not create its log there
        how = "immutable=1"
    elif has_journal(path):  # of a commit under way, or of one that was killed, which is undone
        how = "mode=rw"
    arguments[0], options["uri"] = _uri(path, how), True


def _read_into_memory(path: str, options: Mapping[str, Any]) -> sqlite3.Connection:
    """A copy of a store to read, where the disk has no room for the index of its log: this process holds that index."""
    copy: sqlite3.Connection = sqlite3.connect(":memory:", **options)
    with contextlib.closing(sqlite3.connect(path)) as source:
        source.execute("PRAGMA locking_mode=EXCLUSIVE")
        source.backup(copy)
    copy.execute("PRAGMA query_only=ON")
    return copy


def _set_up(journal: str, connection: sqlite3.Connection, _record: object) -> None:
    for pragma in (f"journal_mode={journal}", "synchronous=FULL", "busy_timeout=5000"):
        connection.execute(f"PRAGMA {pragma}")
    guard(connection)


def is_writable(path: str) -> bool:
    """Whether the folder of a store's file is writable, as SQLite needs for its log."""
    return os.access(Path(path).parent, os.W_OK)


def has_log(path: str) -> bool:
    """Whether a store has a write-ahead log that is not empty."""
    log = Path(f"{path}-wal")
    return log.exists() and log.stat().st_size > 0


def has_journal(path: str) -> bool:
    """Whether a store on a shared disk has a rollback journal that is not empty."""
    journal = Path(f"{path}-journal")
    return journal.exists() and journal.stat().st_size > 0


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
    too_big = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_TOOBIG
    if context.execution_context and too_big and statement.startswith("SELECT"):
        tables = ", ".join(dict.fromkeys(re.findall(r"\bproctor_[a-z]+\b", statement)))
        raise Unreadable(f"a column of {tables}", f"more than {MOST_BYTES:,} bytes") from error


def file_of(engine: sa.Engine) -> str | None:
    """The path of a SQLite store; None for other databases and for those in memory."""
    path = engine.url.database if engine.url.get_backend_name() == "sqlite" else None
    return path if path and path != ":memory:" else None


def _beside(engine: sa.Engine, name: str) -> Path:
    """`RUN.open` has the counts of a client that plays the run or was killed; `lost` tells what is lost."""
    return Path(f"{file_of(engine)}.{name}")


class Acknowledged:
    """Counts the rows that a client has made durable, in a file that a kill leaves."""

    def __init__(self, engine: sa.Engine, run: str) -> None:
        self._store, self._path = file_of(engine), _beside(engine, f"{run}.open")
        self._counts = _rows(engine) if self._store is not None else []

    def add(self, turns: int, attempts: int, replies: int) -> None:
        """So many rows more of each of COUNTED are durable. Where the file can't be written, losses go unnoticed."""
        if self._store is None:
            return
        self._counts = list(map(add, self._counts, (turns, attempts, replies)))
        with contextlib.suppress(OSError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
            file = os.open(self._path, flags, 0o644)
            try:
                os.pwrite(file, b"%-20d%-20d%-20d" % tuple(self._counts), 0)
            finally:
                os.close(file)
            _open[self._path] = str(self._store)


def take_marks_away() -> None:
    """At a clean end: delete the files of counts whose stores have no log left."""
    for path, store in _open.items():
        with contextlib.suppress(OSError):
            if not has_log(store):
                path.unlink()


def losses(engine: sa.Engine, run: str) -> str | None:
    """What was acknowledged and is gone, which is recorded in a file; None where nothing is known to be."""
    if file_of(engine) is None:
        return None
    note, mark = _beside(engine, "lost"), _beside(engine, f"{run}.open")
    if note.is_file():
        return note.read_text(errors="replace").strip()
    try:
        counts = [int(count) for count in mark.read_bytes()[:100].split()] if mark.is_file() else []
    except (OSError, ValueError):  # a failure of power may leave it empty
        return None
    lost = [max(0, count - now) for count, now in zip(counts, _rows(engine), strict=False)]
    if len(lost) != len(COUNTED) or not any(lost):
        return None
    text = "its write-ahead log was damaged, cut or removed: {} turns, {} attempts and {} replies of judges, hosts and "
    text = text.format(*lost) + "users that were acknowledged are lost"
    with contextlib.suppress(OSError):
        note.write_text(f"{text}\n")
        mark.unlink()
    return text


def _rows(engine: sa.Engine) -> list[int]:
    """The number of the last row that was added to each of COUNTED; 0 where there is none."""
    there = sa.inspect(engine).get_table_names()
    counts = [f"SELECT max(rowid) FROM {table.name}" if table.name in there else "SELECT 0" for table in COUNTED]
    with engine.connect() as connection:
        return [connection.exec_driver_sql(count).scalar() or 0 for count in counts]


def check_whole(engine: sa.Engine, run: str, table: str | None = None) -> None:
    """Raises StoreError where rows of a SQLite store are lost, or it is damaged; with `table`, that one alone."""
    where = f"the store of run {run!r} ({file_of(engine)})"
    if found := damage(engine, table):
        raise StoreError(f"{where} is damaged: {'; '.join(found)}; {RESTORE}")
    if (lost := losses(engine, run)) is not None:
        fix = f"restore it from a copy, or, to go on and pay for them again, delete {_beside(engine, 'lost')}"
        raise StoreError(f"{where}: {lost}; {fix}")


def check_before_resume(engine: sa.Engine, run: str, state: str) -> None:
    """`check_whole` where the run's state or files show that its last client was killed.

    After a clean end only the rows of trials and their indexes are checked, which decide what is played: a quarter of a
    second of CPU for 100,000 trials. Raises StoreError.
    """
    killed = state == "running" or any(_beside(engine, name).exists() for name in (f"{run}.open", "lost"))
    check_whole(engine, run, None if killed else trial_table.name)


def damage(engine: sa.Engine, table: str | None = None) -> list[str]:
    """What SQLite finds damaged in a file, or in a table and its indexes, one line each; nothing in a server's store.

    `PRAGMA quick_check`, three fifths of the CPU, does not see that an index lacks rows of its table.
    """
    if file_of(engine) is None:
        return []
    try:
        with engine.connect() as connection:
            rows = connection.exec_driver_sql(f"PRAGMA integrity_check({table or NAMED})").scalars()
            return [text for text in rows if text != "ok"][:NAMED]
    except sa.exc.DatabaseError as error:
        if not is_damage(error):
            raise
        return [str(error.orig)]
