"""The hash that shows whether a table was changed as asked (AgentBench v0.2, dbbench), in SQL and in Python."""

import hashlib
from collections.abc import Iterable, Sequence

from proctor.types import Value


class TableHash(Value):
    """The hash computed in both ways; None where the table is missing, empty, or (in Python) too large."""

    sql: str | None = None
    python: str | None = None


def query(table: str, columns: Sequence[str]) -> str:
    """The statement for the table's hash, its only value. Needs a `group_concat_max_len` of 6 bytes for each row."""
    names = ",".join(map(quoted, columns))
    rows = f"SELECT SUBSTRING(MD5(CONCAT_WS(',', {names})), 1, 5) AS rowhash FROM {quoted(table)}"
    return f"SELECT MD5(GROUP_CONCAT(rowhash ORDER BY rowhash)) FROM ({rows}) AS hashed"


def of_rows(rows: Iterable[Sequence[object]]) -> str | None:
    """The hash of rows from a client library, where NULL is None; None for no rows."""
    hashes = sorted(map(_row_hash, rows))
    return hashlib.md5(",".join(hashes).encode()).hexdigest() if hashes else None


def quoted(name: str) -> str:
    """A name as a MySQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def _row_hash(row: Sequence[object]) -> str:
    cells = (cell if isinstance(cell, bytes) else str(cell).encode() for cell in row if cell is not None)
    return hashlib.md5(b",".join(cells)).hexdigest()[:5]
