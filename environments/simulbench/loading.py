"""Reads the files of all stages: JSON lines, with errors that name file, line, field and fix."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from environments.simulbench.records import Dialogue, Id, Pair, Place, Script, Task

MAX_BYTES = 256 << 20
Record = TypeVar("Record", Task, Dialogue, Script, Pair)


def load(path: Path, kind: type[Record]) -> tuple[Record, ...]:
    """All records of a file, in its order. Raises ValueError."""
    records: dict[str, Record] = {}
    for number, line in _lines(path):
        record = _record(f"{path}:{number}", line, kind)
        if record.id in records:
            raise ValueError(f"{path}:{number}: id: {record.id!r} stands twice; give each record its own")
        records[record.id] = record
    if not records:
        raise ValueError(f"{path}: holds no {kind.__name__.lower()}; write one JSON object a line")
    return tuple(records.values())


def places(scripts: Sequence[Script], path: Path | None = None) -> dict[str, Place]:
    """Which of the three types each script has, by its id.

    By a file (JSON: script id to type) where one is given; else by rule: `turn_num` 0 is lastonly, the smallest of
    a dialogue is firstchan, the others are subseqchan. Raises ValueError where the file doesn't name every script.
    """
    if path is not None:
        named = _types(path)
        missing = [script.id for script in scripts if script.id not in named]
        if missing:
            raise ValueError(f"{path}: {missing[0]}: no type for this script; add it, or leave `types` out")
        return {script.id: named[script.id] for script in scripts}
    first: dict[tuple[str, str], int] = {}
    for script in scripts:
        if script.turn_num:
            group = script.source_id, script.source_file_name
            first[group] = min(first.get(group, script.turn_num), script.turn_num)
    return {script.id: _place(script, first) for script in scripts}


def _place(script: Script, first: Mapping[tuple[str, str], int]) -> Place:
    if not script.turn_num:
        return "lastonly"
    return "firstchan" if script.turn_num == first[script.source_id, script.source_file_name] else "subseqchan"


def _types(path: Path) -> dict[str, Place]:
    try:
        return TypeAdapter(dict[Id, Place]).validate_json(_read(path))
    except ValidationError as error:
        raise ValueError(f"{path}: {_explain(error, 'write one JSON object, from id to type')}") from error


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(_read(path).split("\n"), 1):
        if line.strip():
            yield number, line


def _record(place: str, line: str, kind: type[Record]) -> Record:
    try:
        return kind.model_validate_json(line)
    except ValidationError as error:
        raise ValueError(f"{place}: {_explain(error)}") from error


def _explain(error: ValidationError, form: str = "write one JSON object a line") -> str:
    problem = error.errors()[0]
    field = ".".join(str(part) for part in problem["loc"]) or "the record"
    fix = {
        "missing": "add this field",
        "extra_forbidden": "remove it or correct its spelling",
        "json_invalid": form,
    }
    return f"{field}: {problem['msg']}; {fix.get(problem['type'], 'correct it')}"


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"{path}: larger than {MAX_BYTES} bytes; this can't be the file you mean")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: can't be read: {error}; check the path and that it is UTF-8 text") from error
