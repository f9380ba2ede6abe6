"""Reads the published files of WebShop: products, their attributes, and people's instructions for them.

A folder holds `items_shuffle.json` and `items_ins_v2.json` (1.18 million products), or both with `_1000` before the
ending, and `items_human_ins.json`. Each may be compressed (`.json.gz`). Files are read entry by entry.
"""

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple

INVENTED = "INVENTED.txt"
"""File that marks a folder of generated files."""
CHUNK = 1 << 20
MAX_ENTRY = 1 << 26
"""Limit in characters; a longer entry is broken."""
_BLANK = re.compile(r"\s*")


class Files(NamedTuple):
    """The three files from which a catalogue is made."""

    products: Path
    attributes: Path
    goals: Path
    invented: bool
    """Whether the files are generated."""

    def paths(self) -> tuple[Path, Path, Path]:
        """The paths of the three files."""
        return self.products, self.attributes, self.goals


def files_in(folder: Path) -> Files:
    """The published files of a folder, preferably the full set. Raises ValueError with the name of a missing file."""
    for ending in ("", "_1000"):
        products = _existing(folder, f"items_shuffle{ending}.json")
        if products is not None:
            attributes, goals = (
                _needed(folder, f"{name}.json") for name in (f"items_ins_v2{ending}", "items_human_ins")
            )
            return Files(products, attributes, goals, (folder / INVENTED).is_file())
    raise ValueError(f"{folder}: no items_shuffle.json or items_shuffle_1000.json in it; give WebShop's folder `data`")


def _existing(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def _needed(folder: Path, name: str) -> Path:
    path = _existing(folder, name)
    if path is None:
        raise ValueError(f"{folder}: {name} is missing; it belongs beside the products, get it from the same source")
    return path


def records(path: Path) -> Iterator[Mapping[str, object]]:
    """The objects of a file that is one JSON array, in order. Raises ValueError with file, line, entry and fix."""
    with _Reader(path) as reader:
        reader.expect("[")
        while reader.goes_on("]"):
            yield reader.record()
        reader.end()


def members(path: Path) -> Iterator[tuple[str, object]]:
    """The members of a file that is one JSON object, in order. Raises ValueError as `records` does."""
    with _Reader(path) as reader:
        reader.expect("{")
        while reader.goes_on("}"):
            name = reader.value()
            reader.expect(":")
            yield str(name), reader.value()
        reader.end()


class _Reader:
    """Reads the values of a JSON text one after the other; only the current value is in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._decoder = json.JSONDecoder()
        self._text = ""
        self._at = 0
        self._ended = False
        self._entry = 0
        self._lines = 0

    def __enter__(self) -> "_Reader":
        self._file: IO[str] = (
            gzip.open(self._path, "rt", encoding="utf-8")
            if self._path.suffix == ".gz"
            else self._path.open(encoding="utf-8")
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def goes_on(self, end: str) -> bool:
        """Whether another entry follows; moves past the comma before it, or past the closing bracket."""
        found = self._next()
        if self._entry and found == ",":
            self._at += 1
            found = self._next()
        elif self._entry and found != end:
            raise self._broken(f"',' or '{end}' expected")
        if found == end:
            self._at += 1
            return False
        self._entry += 1
        return True

    def expect(self, mark: str) -> None:
        if self._next() != mark:
            raise self._broken(f"'{mark}' expected")
        self._at += 1

    def end(self) -> None:
        if self._next():
            raise self._broken("more after the end")

    def record(self) -> Mapping[str, object]:
        value = self.value()
        if not isinstance(value, dict):
            raise self._broken("an object expected")
        return value

    def value(self) -> object:
        self._next()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                if self._ended or len(self._text) - self._at > MAX_ENTRY:
                    raise self._broken(getattr(error, "msg", str(error)), getattr(error, "pos", self._at)) from error
            else:
                if end < len(self._text) or self._ended:  # else the value may be the first part of a number
                    self._at = end
                    return value
            self._fill()

    def _next(self) -> str:
        """The next non-blank character; empty at the end of the file."""
        while True:
            match = _BLANK.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._fill()

    def _fill(self) -> None:
        try:
            more = self._file.read(max(CHUNK, len(self._text) - self._at))
        except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
            raise self._broken(str(error)) from error
        self._lines += self._text.count("\n", 0, self._at)
        self._text = self._text[self._at :] + more
        self._at = 0
        self._ended = not more

    def _broken(self, why: str, at: int | None = None) -> ValueError:
        line = 1 + self._lines + self._text.count("\n", 0, self._at if at is None else at)
        where = f"{self._path}: line {line}, entry {self._entry}"
        return ValueError(f"{where}: {why}; get the file anew, it is not the published JSON")
