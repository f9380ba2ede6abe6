"""Samples in the published JSON format of AgentBench's knowledge graph task (arXiv 2308.03688, Appendix D)."""

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from proctor.config.wording import first_problem
from proctor.types import Value


class QuestionEntry(Value):
    """One sample: a question, the entities it names, gold tool calls and gold answers."""

    id: str
    """The published `qid`."""
    source: str
    """The data set the question comes from."""
    question: str
    entities: dict[str, str]
    """Freebase ids by name, in the file's order."""
    actions: tuple[str, ...]
    """Gold tool calls with ids as arguments; ids may be missing among `entities`."""
    answers: tuple[tuple[str, str | None], ...]
    """Gold answers: an id without name space, or a literal's text; and the name, if there is one."""


class _Answer(BaseModel):
    answer_argument: str
    entity_name: str | None = None


class _Record(BaseModel):
    """An object of the file; fields that the evaluation does not use are ignored."""

    model_config = ConfigDict(frozen=True)

    qid: str = Field(pattern=r"^[A-Za-z0-9._~-]+$", description="part of the IRI of the sample's named graph")
    source: str = ""
    question: str
    entities: dict[str, str]
    actions: tuple[str, ...] = ()
    answer: tuple[_Answer, ...] = Field(min_length=1)


_RECORDS = TypeAdapter(tuple[_Record, ...])


def records(path: Path) -> list[JsonValue]:
    """The records of a file as they stand there. Raises ValueError naming the file."""
    try:
        found: JsonValue = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: can't be read: {error}; give a JSON file of samples") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: not JSON: {error}; write one list of objects") from error
    if not isinstance(found, list):
        raise ValueError(f"{path}: not a list; write one list of objects")
    return found


def load(path: Path) -> Mapping[str, QuestionEntry]:
    """The samples of a file by id, in file order. Raises ValueError naming file, record (from 0), field and fix."""
    try:
        found = _RECORDS.validate_python(records(path))
    except ValidationError as error:
        problem = first_problem(error)
        place = "record " * problem[0].isdigit() + problem
        raise ValueError(f"{path}: {place}; correct this as docs/reference/environments/kg.md describes it") from error
    entries: dict[str, QuestionEntry] = {}
    for number, record in enumerate(found):
        if record.qid in entries:
            raise ValueError(f"{path}: record {number}: qid: {record.qid!r} stands twice; give each record its own")
        entries[record.qid] = _entry(record)
    return entries


def _entry(record: _Record) -> QuestionEntry:
    return QuestionEntry(
        id=record.qid,
        source=record.source,
        question=record.question,
        entities=record.entities,
        actions=record.actions,
        answers=tuple((answer.answer_argument, answer.entity_name) for answer in record.answer),
    )
