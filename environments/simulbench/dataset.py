"""Reads the data files of all stages: JSON lines. Errors name file, line, field and fix."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from environments.simulbench.records import PUBLISHED_LICENCE, Id, Pair, Place, Script, Task, TaskConfig
from proctor.config.wording import first_problem

MAX_BYTES = 256 << 20
LONE: Mapping[str, Place] = {"154": "subseqchan"}
"""A published script that is a firstchan by the rule but a subseqchan in the paper, since its firstchan was dropped."""
Record = TypeVar("Record", Task, Script, Pair)


def load(path: Path, kind: type[Record]) -> tuple[Record, ...]:
    """All records of a file, in its order. Raises ValueError."""
    records: dict[str, Record] = {}
    for number, line in _lines(path):
        record = _record(f"{path}:{number}", line, kind)
        if record.id in records:
            raise ValueError(f"{path}:{number}: id: {record.id!r} appears twice; give each record its own")
        records[record.id] = record
    if not records:
        raise ValueError(f"{path}: holds no {kind.__name__.lower()}; write one JSON object a line")
    return tuple(records.values())


def places(scripts: Sequence[Script], path: Path | None = None) -> dict[str, Place]:
    """The type of each script, by its id. Raises ValueError if the file is broken.

    The type is that in the file `path` (JSON: script id to type), if it names the script. Else `turn_num` 0 is
    lastonly, the smallest `turn_num` of a dialogue is firstchan, and others are subseqchan; LONE lists exceptions.
    """
    named = {} if path is None else _types(path)
    first: dict[tuple[str, str], int] = {}
    for script in scripts:
        if script.turn_num:
            group = script.source_id, script.source_file_name
            first[group] = min(first.get(group, script.turn_num), script.turn_num)
    return {script.id: named.get(script.id) or _place(script, first) for script in scripts}


def configured(tasks: Sequence[Task], path: Path) -> list[Task]:
    """The tasks with the entries of a file (JSON: task id to TaskConfig). Raises ValueError if none is of a task.

    Numbers in ids don't count: the published file has those of an earlier list of tasks.
    """
    try:
        entries = TypeAdapter(dict[str, TaskConfig]).validate_json(read(path))
    except ValidationError as error:
        raise ValueError(f"{path}: {_explain(error, 'write one JSON object, from task id to an object')}") from error
    named: dict[str, TaskConfig] = {}
    for task_id, entry in entries.items():
        if named.setdefault(_name(task_id), entry) is not entry:
            raise ValueError(f"{path}: {task_id}: the task {_name(task_id)!r} appears twice; leave one out")
    if named.keys().isdisjoint(_name(task.id) for task in tasks):
        raise ValueError(f"{path}: has no task of the data; ids look like {tasks[0].id}")
    return [named.get(_name(task.id), TaskConfig()).applied(task) for task in tasks]


def _name(task_id: str) -> str:
    return task_id.rpartition("#")[2]


def _place(script: Script, first: Mapping[tuple[str, str], int]) -> Place:
    if not script.turn_num:
        return "lastonly"
    if script.turn_num != first[script.source_id, script.source_file_name]:
        return "subseqchan"
    return LONE.get(script.id, "firstchan") if script.licence == PUBLISHED_LICENCE else "firstchan"


def _types(path: Path) -> dict[str, Place]:
    try:
        return TypeAdapter(dict[Id, Place]).validate_json(read(path))
    except ValidationError as error:
        raise ValueError(f"{path}: {_explain(error, 'write one JSON object, from id to type')}") from error


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(read(path).split("\n"), 1):
        if line.strip():
            yield number, line


def _record(place: str, line: str, kind: type[Record]) -> Record:
    try:
        return kind.model_validate_json(line)
    except ValidationError as error:
        raise ValueError(f"{place}: {_explain(error)}") from error


def _explain(error: ValidationError, form: str = "write one JSON object a line") -> str:
    return (
        f"{first_problem(error, 'the record')}; {form if error.errors()[0]['type'] == 'json_invalid' else 'correct it'}"
    )


def read(path: Path) -> str:
    """The text of a file. Raises ValueError."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"{path}: larger than {MAX_BYTES} bytes; this can't be the file you mean")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: can't be read: {error}; check the path and that it is UTF-8 text") from error
