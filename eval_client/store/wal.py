"""Detects commits of a SQLite store that are lost because its write-ahead log was damaged.

SQLite keeps the newest commits in the log (`-wal`) and an index of the log in shared memory (`-shm`). A clean shutdown
removes both files. From a damaged log SQLite silently recovers only the part before the damage, and then deletes the
log. A kill leaves the index, which holds the number of committed frames (pages).
"""

import fcntl
import sqlite3
import struct
from pathlib import Path

FIRST_CONNECTION = 128
"""The byte of the index that every process with the store open holds a lock on (`UNIX_SHM_DMS` in SQLite's source)."""
MAGIC = (0x377F0682, 0x377F0683)
LOG_HEADER, FRAME_HEADER = 32, 24

_had_log: dict[str, bool] = {}


def has_log(path: str) -> bool:
    """Whether a store has a log that is not empty."""
    log = Path(f"{path}-wal")
    return log.exists() and log.stat().st_size > 0


def had_log(path: str) -> bool:
    """Whether a store had a non-empty log when this process first opened it."""
    return _had_log.get(path, False)


def losses_note(path: str) -> Path:
    """The file that records lost acknowledged commits; it stays until somebody deletes it."""
    return Path(f"{path}.lost")


def losses(path: str) -> str | None:
    """The recorded loss of acknowledged commits; None where none is recorded."""
    note = losses_note(path)
    return note.read_text().strip() if note.exists() else None


def acknowledged_frames(path: str) -> int:
    """Number of committed frames according to the index that a killed client left; 0 where there is no such index.

    Call this before the store is opened. Later calls of a process for the same store return 0: closing the index file
    would release this process's locks on the open store.
    """
    if path in _had_log:
        return 0
    _had_log[path] = has_log(path)
    try:
        with open(f"{path}-shm", "r+b") as index:
            fcntl.lockf(index, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, FIRST_CONNECTION)
            header = index.read(100)
    except OSError:  # there is no index, or another process has the store open
        return 0
    if len(header) < 100 or header[:48] != header[48:96] or not header[12]:
        return 0
    frames, backfilled = struct.unpack_from("=I", header, 16)[0], struct.unpack_from("=I", header, 96)[0]
    return 0 if backfilled >= frames or _is_later(path, header[32:40]) else frames


def _is_later(path: str, salts: bytes) -> bool:
    """Whether the log is newer than the index, as a power failure may leave them."""
    head = _read(path, 0, LOG_HEADER)
    return len(head) == LOG_HEADER and struct.unpack_from(">I", head)[0] in MAGIC and head[16:24] != salts


def note_losses(connection: sqlite3.Connection, path: str, acknowledged: int) -> None:
    """Record lost commits in `losses_note`, before SQLite deletes the log."""
    readable = max(0, connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1])
    if readable >= acknowledged:
        return
    frame = FRAME_HEADER + connection.execute("PRAGMA page_size").fetchone()[0]
    headers = (_read(path, LOG_HEADER + n * frame, 8) for n in range(readable, acknowledged))
    commits = sum(header[4:] not in (b"", b"\0\0\0\0") for header in headers)
    losses_note(path).write_text(
        f"its write-ahead log was damaged: of {acknowledged} committed pages only the first {readable} could be read; "
        f"at least the last {max(1, commits)} commits (turns, attempts, results that were acknowledged) are lost\n"
    )


def _read(path: str, at: int, count: int) -> bytes:
    try:
        with open(f"{path}-wal", "rb") as file:
            file.seek(at)
            return file.read(count)
    except FileNotFoundError:
        return b""
