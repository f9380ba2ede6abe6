"""What became of a SQLite store's write-ahead log after a kill.

SQLite keeps the newest commits in the log (`-wal`), and an index of it in shared memory (`-shm`); a clean end leaves
neither. Of a damaged log SQLite reads what comes before the damage, says nothing, and deletes it. But a kill leaves the
index as it was, and the index has the number of frames (pages) that were committed.
"""

import fcntl
import sqlite3
import struct
from pathlib import Path

FIRST_CONNECTION = 128
"""The byte of the index that whoever has the store open holds a lock on (`UNIX_SHM_DMS` in SQLite's source)."""
MAGIC = (0x377F0682, 0x377F0683)
LOG_HEADER, FRAME_HEADER = 32, 24

_looked_at: dict[str, bool] = {}


def stands(path: str) -> bool:
    """Whether a store has a log with anything in it."""
    log = Path(f"{path}-wal")
    return log.exists() and log.stat().st_size > 0


def stood(path: str) -> bool:
    """Whether it had when this process first opened it."""
    return _looked_at.get(path, False)


def losses_note(path: str) -> Path:
    """Where it stands that acknowledged commits are lost, until somebody deletes it."""
    return Path(f"{path}.lost")


def losses(path: str) -> str | None:
    """Which acknowledged commits are lost, None where none are known to be."""
    note = losses_note(path)
    return note.read_text().strip() if note.exists() else None


def acknowledged_frames(path: str) -> int:
    """How many frames of the log were committed, by the index of a killed client; 0 where there is none, or no kill.

    To be asked before the store is opened; of each store only the first answer of a process is of use, since to open
    and close the index of a store that is open would end the locks of this process.
    """
    if path in _looked_at:
        return 0
    _looked_at[path] = stands(path)
    try:
        with open(f"{path}-shm", "r+b") as index:
            fcntl.lockf(index, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, FIRST_CONNECTION)
            header = index.read(100)
    except OSError:  # there is none, or somebody has the store open
        return 0
    if len(header) < 100 or header[:48] != header[48:96] or not header[12]:
        return 0
    frames, backfilled = struct.unpack_from("=I", header, 16)[0], struct.unpack_from("=I", header, 96)[0]
    return 0 if backfilled >= frames or _is_later(path, header[32:40]) else frames


def _is_later(path: str, salts: bytes) -> bool:
    """Whether the log is of a later time than the index: a power failure may leave an old index."""
    head = _read(path, 0, LOG_HEADER)
    return len(head) == LOG_HEADER and struct.unpack_from(">I", head)[0] in MAGIC and head[16:24] != salts


def note_losses(connection: sqlite3.Connection, path: str, acknowledged: int) -> None:
    """Write down which commits are lost, before SQLite deletes the log that shows it."""
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
