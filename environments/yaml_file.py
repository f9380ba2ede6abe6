"""Reads a YAML file into a pydantic model, with errors that name file, line, field and fix."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from yaml.nodes import MappingNode, Node, SequenceNode

Model = TypeVar("Model", bound=BaseModel)
MAX_BYTES = 1 << 20


class FileError(ValueError):
    """A file the user wrote can't be used; the message names file, line, field and fix."""


def parse(text: str, name: str, model: type[Model], overrides: Sequence[str] = ()) -> Model:
    """The model a YAML text describes, after `a.b.c=value` overrides. Raises FileError, which says `name`."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise FileError(
            f"{name}:{line}: not YAML: {error.problem}; fix the syntax on or just before this line"
        ) from error
    except yaml.YAMLError as error:
        raise FileError(f"{name}: not YAML: {error}; save the file as UTF-8 text") from error
    if not isinstance(data, dict):
        raise FileError(f"{name}:1: holds no mapping of fields; start it with `key: value` lines")
    for override in overrides:
        _override(data, override)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise FileError("\n".join(_explain(name, root, problem) for problem in error.errors())) from error


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


def _override(data: dict[str, object], override: str) -> None:
    """Set one dotted field. List items are named by their position or by the `name` they hold."""
    path, equals, value = override.partition("=")
    if not equals or not path:
        raise FileError(f"--set {override}: write it as field.field=value")
    target: object = data
    *parents, last = path.split(".")
    for part in parents:
        target = _step_into(target, part, override)
    if isinstance(target, dict):
        target[last] = yaml.safe_load(value)
    else:
        raise FileError(f"--set {override}: {'.'.join(parents)} holds no fields; name a field that does")


def _step_into(target: object, part: str, override: str) -> object:
    if isinstance(target, dict):
        return target.setdefault(part, {})
    if isinstance(target, list):
        for index, item in enumerate(target):
            if part == str(index) or (isinstance(item, dict) and item.get("name") == part):
                return item
    raise FileError(f"--set {override}: no field or item {part!r}; check the path against the file")


def _explain(name: str, root: Node | None, problem: object) -> str:
    assert isinstance(problem, dict)
    location: tuple[int | str, ...] = problem["loc"]
    line = _line(root, location)
    field = ".".join(str(part) for part in location) or "the file"
    fix = "remove it or correct its spelling" if problem["type"] == "extra_forbidden" else "correct this value"
    if problem["type"] == "missing":
        fix = "add this field"
    given = "" if problem["type"] in ("missing", "extra_forbidden") else f" (got {_short(problem.get('input'))})"
    return f"{name}:{line}: {field}: {problem['msg']}{given}; {fix}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _line(node: Node | None, location: Sequence[int | str]) -> int:
    """The line (from 1) of the deepest node that the location reaches."""
    line = node.start_mark.line + 1 if node is not None else 1
    for part in location:
        if isinstance(node, MappingNode):
            match = next(((key, value) for key, value in node.value if key.value == str(part)), None)
            if match is None:
                continue
            line, node = match[0].start_mark.line + 1, match[1]
        elif isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
    return line
