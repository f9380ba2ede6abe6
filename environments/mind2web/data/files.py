"""Opens what users and we put into data folders: plain files, and compressed ones (.xz)."""

import lzma
import mmap
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

SPLIT = r"^[A-Za-z0-9_]+$"
"""What a split may be called."""


def opened(path: Path) -> BinaryIO:
    """A file for reading, unpacked where its name ends in .xz; places in it count unpacked bytes.

    Raises OSError, and ValueError naming the file where it can't be unpacked.
    """
    if path.suffix != ".xz":
        return path.open("rb")
    state = path.stat()
    return BytesIO(_unpacked(path, state.st_size, state.st_mtime_ns))


@lru_cache(maxsize=4)
def _unpacked(path: Path, size: int, changed_ns: int) -> bytes:
    """Packed files are small ones, so some are kept whole."""
    try:
        return lzma.decompress(path.read_bytes())
    except lzma.LZMAError as error:
        raise ValueError(f"{path}: can't be unpacked: {error}; pack it with xz again") from error


@contextmanager
def mapped(path: Path) -> Iterator[bytes | mmap.mmap]:
    """All bytes of a file; those of a plain one are read as they are looked at."""
    with opened(path) as file:
        if isinstance(file, BytesIO) or not path.stat().st_size:
            yield file.read()
        else:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                yield content


def split_of(path: Path) -> str:
    """The split that a file's name tells: `train` of train_10.json."""
    return re.sub(r"_\d+$", "", path.name.removesuffix(".xz").removesuffix(".json"))


def task_files(data: Path, split: str | None) -> tuple[Path, ...]:
    """The files of a split below a folder, by their numbers; a file stands for itself.

    Raises ValueError, naming fix, where there are none.
    """
    if data.is_file():
        return (data,)
    if split is None:
        raise ValueError(f"{data}: name the `split` (train, test_task, ...), or give one JSON file of tasks as `data`")
    found = [path for pattern in (f"{split}_*.json", f"{split}_*.json.xz") for path in data.rglob(pattern)]
    if not found:
        raise ValueError(f"{data}: no {split}_*.json in it; check `data` and `split`")
    return tuple(sorted(found, key=lambda path: [int(n) for n in re.findall(r"\d+", path.name)]))


def default_cache() -> Path:
    """Where indexes are kept unless a task says otherwise: the user's folder for caches."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "proctor" / "mind2web"
