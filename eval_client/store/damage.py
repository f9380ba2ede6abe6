"""Notices what is gone from a SQLite store, or damaged in it. Database servers see to theirs themselves.

SQLite keeps the newest commits in its log (`-wal`). From a log that is damaged or cut it silently recovers the part
before the damage, from one that is missing nothing, and then deletes it. So a client counts what it has made durable in
a file of its own beside the store; a clean end, with which the log goes into the store, takes that file away.
"""

import contextlib
import os
from pathlib import Path

import sqlalchemy as sa

from eval_client.store.sqlite_file import has_log
from eval_client.store.tables import attempt_table, reply_table, trial_table, turn_table
from eval_client.store.values import RESTORE, StoreError, is_damage

COUNTED = (turn_table, attempt_table, reply_table)
"""The tables whose rows are only added: what was asked and paid for."""
NAMED = 5
"""How many findings are listed."""
_open: dict[Path, str] = {}
"""The files of this process -> their stores."""


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
        self._counts = [count + more for count, more in zip(self._counts, (turns, attempts, replies), strict=True)]
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
