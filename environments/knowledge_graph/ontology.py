"""The schema that tool calls are checked against: vocabulary, relations' types, types' parents, inverses.

Source: AgentBench's `ontology` folder, which was made from Freebase: four files, see
docs/reference/environments/kg.md.
"""

import functools
import logging
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ValidationError

FILES = ("vocab.json", "fb_roles", "fb_types", "reverse_properties")
_SHOWN = 200

_log = logging.getLogger(__name__)


class Vocabulary(BaseModel):
    """`vocab.json`: the names that the tools may list."""

    relations: frozenset[str]
    attributes: frozenset[str]
    classes: frozenset[str]


@dataclass(frozen=True)
class Ontology:
    """The schema of relations and types."""

    vocabulary: Vocabulary
    roles: Mapping[str, tuple[str, str]]
    """(domain type, range type) of a relation or attribute."""
    parents: Mapping[str, frozenset[str]]
    """The direct parent types of a type."""
    inverses: Mapping[str, str]
    lines: Mapping[str, int]
    """How many lines each list has, by file name."""
    skipped: tuple[str, ...] = field(default=())
    """The lines that could not be read, with file name and line number."""

    def range_of(self, relation: str) -> str | None:
        """The type of a relation's objects; None for an unknown relation."""
        roles = self.roles.get(relation)
        return roles and roles[1]

    def is_a(self, kind: str, ancestor: str) -> bool:
        """Whether a type is another one, or its descendant at any depth."""
        seen: set[str] = set()
        level = {kind}
        while level:
            seen |= level
            level = {parent for each in level for parent in self.parents.get(each, ())} - seen
        return ancestor in seen

    def record(self) -> object:
        """All that the schema says, as plain data in a fixed order."""
        words = [sorted(getattr(self.vocabulary, name)) for name in Vocabulary.model_fields]
        parents = {kind: sorted(above) for kind, above in self.parents.items()}
        return [words, self.roles, parents, self.inverses]


def load_ontology(folder: Path) -> Ontology:
    """The ontology of a folder, read once while its files stay the same. Corrupt lines are skipped and logged.

    Raises ValueError for an unreadable file.
    """
    with _READING:  # tasks of a worker start at the same time
        ontology = _read(folder, tuple(_state(folder / name) for name in FILES))
    for line in ontology.skipped:
        _log.warning("%s; this line is skipped", line)
    return ontology


_READING = threading.Lock()


def _state(path: Path) -> tuple[int, ...] | None:
    """What changes when a file does; None for one that can't be looked at."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@functools.lru_cache(maxsize=2)
def _read(folder: Path, state: tuple[tuple[int, ...] | None, ...]) -> Ontology:
    vocabulary = _vocabulary(folder / "vocab.json")
    skipped: list[str] = []
    roles = list(_fields(folder / "fb_roles", 3, skipped))
    types = list(_fields(folder / "fb_types", 3, skipped))
    inverses = list(_fields(folder / "reverse_properties", 2, skipped))
    parents: dict[str, set[str]] = {}
    for kind, _, parent in (line for line in types if line):
        parents.setdefault(kind, set()).add(parent)
    return Ontology(
        vocabulary=vocabulary,
        roles={line[1]: (line[0], line[2]) for line in roles if line},
        parents={kind: frozenset(above) for kind, above in parents.items()},
        inverses={line[0]: line[1] for line in inverses if line},
        lines={"fb_roles": len(roles), "fb_types": len(types), "reverse_properties": len(inverses)},
        skipped=tuple(skipped),
    )


def _vocabulary(path: Path) -> Vocabulary:
    try:
        return Vocabulary.model_validate_json(_text(path))
    except ValidationError as error:
        first = error.errors()[0]
        field = "".join(f"{part}: " for part in first["loc"])
        lists = ", ".join(Vocabulary.model_fields)
        raise ValueError(f"{path}: {field}{first['msg']}; write an object with the lists {lists}") from error


def _fields(path: Path, count: int, skipped: list[str]) -> Iterator[list[str] | None]:
    """The fields of each line that is not blank; None for a corrupt one, which is added to `skipped`.

    A lone full stop at the end of a line is not counted as a field.
    """
    for number, line in enumerate(_text(path).split("\n"), 1):
        fields = line.split()
        if not fields:
            continue
        if fields[-1] == ".":
            fields.pop()
        if len(fields) == count:
            yield fields
        else:
            skipped.append(f"{path.name}:{number}: {len(fields)} fields instead of {count}: {line[:_SHOWN]}")
            yield None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        names = ", ".join(FILES)
        raise ValueError(f"{path}: can't be read: {error}; the ontology folder holds {names}") from error
