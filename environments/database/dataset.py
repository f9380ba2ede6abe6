"""Samples in the published JSON Lines format of AgentBench's dbbench (arXiv 2308.03688, Appendix C)."""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictFloat, StrictInt, StrictStr, ValidationError

from proctor.config.wording import first_problem
from proctor.published import records_of
from proctor.types import Value

SELECT_KINDS = (
    "other",
    "counting",
    "comparison",
    "ranking",
    "aggregation-SUM",
    "aggregation-MIN",
    "aggregation-MAX",
    "aggregation-AVG",
)
CATEGORIES = ("SELECT", "INSERT", "UPDATE")
Cell = StrictStr | StrictInt | StrictFloat | None
_ANSWER_HASH = re.compile(r"\[\('([0-9a-f]{32})',\)\]")


class Table(Value):
    """One table of text; None is NULL. Rows may be longer or shorter than the header, as in the public data."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]


class TableEntry(Value):
    """One sample: a question about its table, or a change to make to it."""

    id: str
    kind: str
    """The published type: one of SELECT_KINDS, `INSERT` or `UPDATE`."""
    description: str
    add_description: str
    table: Table
    label: tuple[str, ...]
    """SELECT: the published answer. INSERT and UPDATE: one statement that makes the change."""
    accept: tuple[tuple[str, ...], ...] = ()
    """Further answers that are as right as the label; set by the errata overlay alone."""
    table_hash: str | None
    """INSERT and UPDATE: the hash of the table after the change, see `table_hash.py`."""
    query: str | None
    """SELECT: the query that once produced the label, often not valid MySQL."""
    record: str
    """16 hex digits of the record's line in the file."""

    @property
    def category(self) -> Literal["SELECT", "INSERT", "UPDATE"]:
        """Which of the three accuracies the sample counts for."""
        return "INSERT" if self.kind == "INSERT" else "UPDATE" if self.kind == "UPDATE" else "SELECT"


class _Column(BaseModel):
    name: str


class _TableInfo(BaseModel):
    columns: tuple[_Column, ...] = Field(min_length=1)
    rows: tuple[tuple[Cell, ...], ...]


class _Table(BaseModel):
    table_name: str
    table_info: _TableInfo


class _Query(BaseModel):
    query: str


class _Record(BaseModel):
    """A line of the file; fields that the evaluation does not use are ignored."""

    model_config = ConfigDict(frozen=True)

    description: str
    add_description: str
    type: tuple[str] = Field(description="a list with one type")
    label: tuple[StrictStr | StrictInt | StrictFloat, ...] = Field(min_length=1)
    table: _Table
    answer_md5: str | None = None
    sql: _Query | None = None


def files(data: Path) -> list[Path]:
    """The JSON Lines files of a data path: itself, or those of the folder, sorted. Raises ValueError."""
    found = sorted(data.glob("*.jsonl")) if data.is_dir() else [data]
    if not found or not all(path.is_file() for path in found):
        raise ValueError(f"{data}: no such file or no *.jsonl file in it; give a dbbench file or a folder of them")
    return found


def load(data: Path) -> tuple[TableEntry, ...]:
    """All samples of a file or folder, in file order. Ids are `<file stem>-<5-digit index>`.

    Raises ValueError naming file, line (the record's number, from 1), field and fix.
    """
    return tuple(entry for path in files(data) for entry in _entries(path))


def records(data: Path) -> Iterator[JsonValue]:
    """The records of a file or folder that `load` reads, in file order, as they stand there. Raises ValueError."""
    return (record for path in files(data) for record in records_of(_text(path)))


def _entries(path: Path) -> Iterator[TableEntry]:
    index = 0
    for number, line in enumerate(_text(path).split("\n"), 1):
        if line.strip():
            yield _entry(f"{path}:{number}", f"{path.stem}-{index:05d}", line)
            index += 1


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: can't be read: {error}; save it as UTF-8 JSON Lines") from error


def _entry(place: str, sample: str, line: str) -> TableEntry:
    try:
        record = _Record.model_validate(json.loads(line))
    except json.JSONDecodeError as error:
        raise ValueError(f"{place}: not JSON: {error}; write one JSON object per line") from error
    except ValidationError as error:
        fix = "correct this field as docs/reference/environments/db.md describes it"
        raise ValueError(f"{place}: {first_problem(error, 'the record')}; {fix}") from error
    info = record.table.table_info
    return TableEntry(
        id=sample,
        kind=record.type[0],
        description=record.description,
        add_description=record.add_description,
        table=Table(
            name=record.table.table_name,
            columns=tuple(column.name for column in info.columns),
            rows=tuple(tuple(None if cell is None else str(cell) for cell in row) for row in info.rows),
        ),
        label=tuple(str(answer) for answer in record.label),
        table_hash=_table_hash(place, record),
        query=record.sql.query if record.sql else None,
        record=hashlib.blake2b(line.strip().encode(), digest_size=8).hexdigest(),
    )


def _table_hash(place: str, record: _Record) -> str | None:
    if record.type[0] not in ("INSERT", "UPDATE"):
        return None
    match = _ANSWER_HASH.fullmatch(record.answer_md5 or "")
    if match is None:
        raise ValueError(
            f"{place}: answer_md5: {record.type[0]} needs the hash of the changed table (got {record.answer_md5!r}); "
            "write it as \"[('<32 hex digits>',)]\""
        )
    return match[1]
