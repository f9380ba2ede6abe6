"""Loads puzzles in AgentBench's published format (xlsx, arXiv 2308.03688, Appendix F), or in ours (YAML)."""

import re
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Literal
from xml.etree.ElementTree import ParseError
from zipfile import BadZipFile

from pydantic import Field

from proctor.config import yaml
from proctor.types import Value

Language = Literal["en", "zh"]
COLUMNS = ("story", "answer", "story keys", "answer keys")
MAX_BYTES = 16 << 20
_MARK = re.compile(r"^(?:\d+\.(?!\d)|-(?!\d))")
"""A leading number with its dot, or a dash; not the beginning of `1.5 metres` or `-5 degrees`."""


class Puzzle(Value):
    """One story with its truth."""

    id: str
    language: Language
    """The language of prompts, hints and answers; detected from the letters of the story."""
    story: str
    truth: str
    story_keys: tuple[str, ...] = Field(min_length=1)
    """The facts of the story; a question that repeats one is not answered."""
    keys: tuple[str, ...] = Field(min_length=1)
    """The key points of the truth."""
    key_lines: int
    """Lines of the published cell from the first key to the last, with blank ones: the published code's count."""


class _Written(Value):
    story: str = Field(min_length=1)
    truth: str = Field(min_length=1)
    story_keys: tuple[str, ...] = Field(min_length=1)
    keys: tuple[str, ...] = Field(min_length=1)


class _PuzzleFile(Value):
    puzzles: tuple[_Written, ...] = Field(min_length=1)


def load(data: Path) -> tuple[Puzzle, ...]:
    """All puzzles of a file, or of a folder and the folders below it, in order of their names.

    Ids are `<file stem>-<5-digit index>`; for a file in a folder below `data`, the names of the folders come first,
    joined by `-`. Raises ValueError naming file, row, column and fix.
    """
    if not data.is_dir():
        return tuple(_puzzles(data, data.stem))
    found = sorted(path for kind in ("*.xlsx", "*.yaml") for path in data.rglob(kind) if path.name[0] not in "~.")
    if not found:
        raise ValueError(f"{data}: no *.xlsx or *.yaml file in it; give a puzzle file or a folder of them")
    return tuple(
        puzzle for path in found for puzzle in _puzzles(path, "-".join(path.relative_to(data).with_suffix("").parts))
    )


def _puzzles(path: Path, name: str) -> Iterator[Puzzle]:
    cells = _written(path) if path.suffix == ".yaml" else _published(path)
    index = -1
    for index, (place, row) in enumerate(cells):
        yield _puzzle(place, f"{name}-{index:05d}", row)
    if index < 0:
        raise ValueError(f"{path}: holds no puzzle below the header; add a row")


def _puzzle(place: str, sample: str, row: Sequence[str]) -> Puzzle:
    story, truth, story_keys, keys = row
    filled = (story.strip(), truth.strip(), key_points(story_keys), key_points(keys))
    for number, (column, content) in enumerate(zip(COLUMNS, filled, strict=True), 1):
        if not content:
            raise ValueError(f"{place}: column {number} ({column}) is empty; fill it")
    return Puzzle(
        id=sample,
        language=language_of(story),
        story=filled[0],
        truth=filled[1],
        story_keys=filled[2],
        keys=filled[3],
        key_lines=len(lines(keys.strip())),
    )


def key_points(cell: str) -> tuple[str, ...]:
    """The key points of a cell, one for each line that is not blank, stripped, without leading number or dash."""
    return tuple(point for line in lines(cell) if (point := _MARK.sub("", line.strip(), count=1).strip()))


def lines(cell: str) -> list[str]:
    """All lines of a cell, with blank ones, as the published code counts them."""
    return cell.split("\n")


def language_of(text: str) -> Language:
    """`zh` where Chinese characters are at least a quarter of the letters, since one is worth several Latin letters."""
    letters = [character for character in text if character.isalpha()]
    chinese = sum("\u4e00" <= character <= "\u9fff" for character in letters)
    return "zh" if chinese * 4 > len(letters) else "en"


def _written(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    for number, puzzle in enumerate(yaml.load(path, _PuzzleFile).puzzles, 1):
        keys = ("\n".join(puzzle.story_keys), "\n".join(puzzle.keys))
        yield f"{path}: puzzle {number}", (puzzle.story, puzzle.truth, *keys)


def _published(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The rows below the header of the first sheet that are not empty, with their places in the file."""
    for number, cells in enumerate(_sheet(path), 1):
        row = tuple(map(_text, (*cells, None, None, None, None)[: len(COLUMNS)]))
        if number > 1 and any(cell.strip() for cell in row):
            yield f"{path}: row {number}", row


def _sheet(path: Path) -> list[tuple[object, ...]]:
    try:
        from openpyxl import load_workbook
    except ModuleNotFoundError as error:
        raise ValueError(f"{path}: {error}; xlsx files need it: pip install 'proctor[ltp]'") from error
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"{path}: larger than {MAX_BYTES} bytes; this can't be a puzzle file")
        book = load_workbook(BytesIO(path.read_bytes()), data_only=True)
    except (OSError, BadZipFile, KeyError, ParseError) as error:
        raise ValueError(f"{path}: can't be read as xlsx: {error}; give a puzzle file or a folder of them") from error
    if not book.worksheets:
        raise ValueError(f"{path}: holds no worksheet; give a puzzle file or a folder of them")
    return list(book.worksheets[0].iter_rows(values_only=True))


def _text(cell: object) -> str:
    if cell is None:
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
