"""Finds and opens the data files: plain ones, and ones packed with xz (.xz)."""

import lzma
import mmap
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

SPLIT = r"^[A-Za-z0-9_]+$"
"""Pattern of a split's name."""


def opened(path: Path) -> BinaryIO:
    """Opens a file for reading, unpacked if its name ends in .xz; offsets count unpacked bytes.

    Raises OSError, and ValueError with the path if the file can't be unpacked.
    """
    if path.suffix != ".xz":
        return path.open("rb")
    state = path.stat()
    return BytesIO(_unpacked(path, state.st_size, state.st_mtime_ns))


@lru_cache(maxsize=4)
def _unpacked(path: Path, size: int, changed_ns: int) -> bytes:
    """The unpacked bytes; the last four files stay in memory, since packed files are small."""
    try:
        return lzma.decompress(path.read_bytes())
    except lzma.LZMAError as error:
        raise ValueError(f"{path}: can't be unpacked: {error}; pack it with xz again") from error


@contextmanager
def mapped(path: Path) -> Iterator[bytes | mmap.mmap]:
    """All bytes of a file. A plain file is mapped into memory, so its bytes are read on access."""
    with opened(path) as file:
        if isinstance(file, BytesIO) or not path.stat().st_size:
            yield file.read()
        else:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                yield content


def split_of(path: Path) -> str:
    """The split in a file's name: `train` for train_10.json."""
    return re.sub(r"_\d+$", "", path.name.removesuffix(".xz").removesuffix(".json"))


def task_files(data: Path, split: str | None) -> tuple[Path, ...]:
    """The files of a split below the folder `data`, in order of their numbers; `data` itself if it is a file.

    Raises ValueError with the fix if there are none.
    """
    if data.is_file():
        return (data,)
    if split is None:
        raise ValueError(f"{data}: name the `split` (train, test_task, ...), or give one JSON file of tasks as `data`")
    found = [path for pattern in (f"{split}_*.json", f"{split}_*.json.xz") for path in data.rglob(pattern)]
    if not found:
        raise ValueError(f"{data}: no {split}_*.json in it; check `data` and `split`")
    return tuple(sorted(found, key=lambda path: [int(n) for n in re.findall(r"\d+", path.name)]))
