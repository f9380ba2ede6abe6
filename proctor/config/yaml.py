"""Reads a YAML file into a pydantic model, with errors that name file, line, field and fix."""

import reprlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from proctor.observability.redaction import HIDDEN, looks_secret, redacted

Model = TypeVar("Model", bound=BaseModel)
Location = tuple[int | str, ...]
MAX_BYTES = 1 << 20
SECRET_FIELDS = ("api_key_env", "token_env", "api_key", "key", "token")
"""Fields whose values are hidden in messages: a key may be pasted there by mistake."""
MAX_DEPTH = 50
MAX_VALUES = 200_000
"""Values that a file may hold once its aliases are expanded."""


class FileError(ValueError):
    """A user's file can't be used; the message names file, line, field and fix."""


def parse(text: str, name: str, model: type[Model], overrides: Sequence[str] = ()) -> Model:
    """The model a YAML text describes, after `a.b.c=value` overrides. Raises FileError, which names the file `name`."""
    root, data = _read(text, name)
    if not isinstance(data, dict):
        raise FileError(f"{name}:1: holds no mapping of fields; start it with `key: value` lines")
    overridden = {_override(data, override): override for override in overrides}
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problems = (_explain(name, root, overridden, problem) for problem in error.errors())
        raise FileError("\n".join(problems)) from error


def parse_value(text: str, name: str) -> object:
    """The plain value a YAML text describes. Raises FileError, which names the text `name`."""
    return _read(text, name)[1]


def load(path: Path, model: type[Model], overrides: Sequence[str] = ()) -> Model:
    """The model a YAML file describes. Raises FileError."""
    return parse(read_text(path), str(path), model, overrides)


def read_text(path: Path) -> str:
    """The text of a small file. Raises FileError when it is missing, too large or not UTF-8."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise FileError(f"{path}: larger than {MAX_BYTES} bytes; this can't be the file you mean")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{path}: can't be read: {error}; check the path and that it is UTF-8 text") from error


def _read(text: str, name: str) -> tuple[Node | None, object]:
    """A YAML text as nodes, which have line numbers, and as plain values."""
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        raise _syntax(error, name) from error
    except yaml.YAMLError as error:
        raise FileError(f"{name}: not YAML: {error}; save the file as UTF-8 text") from error
    except RecursionError as error:
        raise FileError(f"{name}: nested more than {MAX_DEPTH} deep; nest less deeply") from error
    if root is None:
        return None, None
    _measure(root, name, {})
    try:
        return root, loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        raise _syntax(error, name) from error
    except ValueError as error:
        raise FileError(f"{name}: no valid number or date: {error}; put quotes around a value meant as text") from error


def _syntax(error: yaml.MarkedYAMLError, name: str) -> FileError:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    problem = error.problem or error.context
    return FileError(f"{name}:{line}: not YAML: {problem}; fix the syntax on or just before this line")


def _measure(node: Node, name: str, measured: dict[Node, tuple[int, int]]) -> tuple[int, int]:
    """The number of values in a node and their depth, with aliases expanded.

    Raises FileError where either exceeds its limit, or a mapping has a key twice.
    """
    if node in measured:
        return measured[node]
    measured[node] = MAX_VALUES, MAX_DEPTH  # an alias of a node inside itself never ends
    if isinstance(node, MappingNode):
        _refuse_duplicates(node, name)
        parts = [part for pair in node.value for part in pair]
    else:
        parts = node.value if isinstance(node, SequenceNode) else []
    values, depth = 1, 1
    for part in parts:
        part_values, part_depth = _measure(part, name, measured)
        values, depth = values + part_values, max(depth, 1 + part_depth)
    if values > MAX_VALUES or depth > MAX_DEPTH:
        limits = f"{MAX_VALUES} values, {MAX_DEPTH} deep"
        raise FileError(f"{name}:{_at(node)}: holds more than {limits}; nest less deeply, with fewer aliases (*x)")
    measured[node] = values, depth
    return values, depth


def _refuse_duplicates(node: MappingNode, name: str) -> None:
    seen: dict[tuple[str, str], int] = {}
    for key, _ in node.value:
        if not isinstance(key, ScalarNode):
            continue
        what = key.tag, key.value
        if what in seen:
            raise FileError(f"{name}:{_at(key)}: {key.value}: is already in line {seen[what]}; remove one of them")
        seen[what] = _at(key)


def _at(node: Node) -> int:
    """The line a node starts in, from 1."""
    return node.start_mark.line + 1


def _override(data: dict[str, object], override: str) -> Location:
    """Set one dotted field and return its location. List items are named by their position or their field `name`."""
    path, equals, value = override.partition("=")
    if not equals or not path:
        raise FileError(f"--set {override}: write it as field.field=value")
    target: object = data
    location: Location = ()
    *parents, last = path.split(".")
    for part in parents:
        key, target = _step_into(target, part, override)
        location = (*location, key)
    if not isinstance(target, dict):
        raise FileError(f"--set {override}: {'.'.join(parents)} holds no fields; name a field that does")
    target[last] = parse_value(value, f"--set {override}")
    return (*location, last)


def _step_into(target: object, part: str, override: str) -> tuple[int | str, object]:
    """The key or position that a part of a path names, and the value there."""
    if isinstance(target, dict):
        if target.get(part) is None:
            target[part] = {}
        return part, target[part]
    if isinstance(target, list):
        for index, item in enumerate(target):
            if part == str(index) or (isinstance(item, dict) and item.get("name") == part):
                return index, item
    raise FileError(f"--set {override}: no field or item {part!r}; check the path against the file")


def _explain(name: str, root: Node | None, overridden: dict[Location, str], problem: ErrorDetails) -> str:
    location = problem["loc"]
    field = ".".join(str(part) for part in location) or "the file"
    fix = "remove it or correct its spelling" if problem["type"] == "extra_forbidden" else "correct this value"
    if problem["type"] == "missing":
        fix = "add this field"
    secret = bool(location) and location[-1] in SECRET_FIELDS
    hide_value = secret or problem["type"] in ("missing", "extra_forbidden")
    given = "" if hide_value else f" (got {_short(problem.get('input'))})"
    place = next(
        (f"--set {_safe(override)}" for path, override in overridden.items() if location[: len(path)] == path),
        f"{name}:{_line(root, location)}",
    )
    return f"{place}: {field}: {problem['msg']}{given}; {fix}"


def _safe(override: str) -> str:
    """An override without a value that may be a key."""
    path, equals, value = override.partition("=")
    hidden = path.rpartition(".")[2] in SECRET_FIELDS or looks_secret(value)
    return f"{path}{equals}{HIDDEN}" if hidden else override


def _short(value: object) -> str:
    text = reprlib.repr(_shown(value))
    return text if len(text) <= 60 else text[:57] + "..."


def _shown(value: object) -> object:
    """A value without what may be a key."""
    if isinstance(value, str):
        return HIDDEN if looks_secret(value) else redacted(value)
    if isinstance(value, dict):
        return {key: HIDDEN if key in SECRET_FIELDS else _shown(each) for key, each in value.items()}
    return list(map(_shown, value)) if isinstance(value, list) else value


def _line(node: Node | None, location: Location) -> int:
    """The line (from 1) of the deepest node that the location reaches."""
    line = _at(node) if node is not None else 1
    for part in location:
        if isinstance(node, MappingNode):
            match = next(((key, value) for key, value in node.value if key.value == str(part)), None)
            if match is None:
                continue
            line, node = _at(match[0]), match[1]
        elif isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = _at(node)
    return line
