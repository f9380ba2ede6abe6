"""Opens stores for reading alone: no row is written, no table is made, and no connection to a file outlasts a query."""

import contextlib
import os
import sqlite3
from functools import partial
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from eval_client.store import wal
from eval_client.store.connection import StoreError, connect, is_writable

READ_ONLY = {
    "postgresql": "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    "mysql": "SET SESSION TRANSACTION READ ONLY",
    "mariadb": "SET SESSION TRANSACTION READ ONLY",
}
"""dialect -> the statement after which a session can't write"""


def connect_read_only(url: str) -> sa.Engine:
    """An engine that can only read a store. Raises StoreError for an invalid URL."""
    engine = connect(url)
    if engine.dialect.name == "sqlite":
        engine = sa.create_engine(engine.url, poolclass=sa.pool.NullPool)
        sa.event.listen(engine, "do_connect", _open_file)
    else:
        sa.event.listen(engine, "connect", partial(_refuse_writes, READ_ONLY[engine.dialect.name]))
    return engine


def _open_file(_dialect: object, _record: object, arguments: list[str], options: dict[str, Any]) -> None:
    """Make a connection to a file read-only. Raises StoreError where the file is not there.

    Where a killed client has left a log, SQLite first brings the log into the file, so that losses are noticed.
    """
    path = arguments[0]
    if not os.path.isfile(path):
        raise StoreError(f"{path} is not there; was the run's folder moved or removed?")
    if acknowledged := wal.acknowledged_frames(path):
        with contextlib.closing(sqlite3.connect(path)) as connection:
            wal.note_losses(connection, path, acknowledged)
    immutable = not is_writable(path) and not wal.has_log(path)  # SQLite could not create its log there
    arguments[0], options["uri"] = f"file:{quote(path)}?{'immutable=1' if immutable else 'mode=ro'}", True


def _refuse_writes(statement: str, connection: Any, _record: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
    connection.commit()
