"""Reads a YAML file into a pydantic model, with errors that name file, line, field and fix."""

import contextlib
import copy
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from proctor.config.model_fields import Location
from proctor.config.problems import FieldProblem, Model, validated, value_at
from proctor.config.wording import MISSING, SECRET_FIELDS, nearest
from proctor.observability.redaction import HIDDEN, looks_secret
from proctor.registry import is_own

FLOAT = "tag:yaml.org,2002:float"
MAX_BYTES = 1 << 20
MAX_DEPTH = 50
MAX_VALUES = 200_000
"""Values that a file may hold once its aliases are expanded."""
SYNTAX = (
    ("character '\\t'", "a tab stands where only spaces may; indent with spaces"),
    ("quoted scalar", "a quote is opened here and never closed"),
    ("flow sequence", "a `[` is opened here and never closed, or a comma is missing"),
    ("flow mapping", "a `{` is opened here and never closed, or a comma is missing"),
    ("mapping values are not allowed", "a second `:`, or wrong indentation; put quotes around a text that holds `: `"),
    ("could not find expected ':'", "no `:` after the field's name"),
    ("block", "the indentation does not fit the lines above"),
    ("another document", "a second document begins after `---`; keep one to a file"),
    ("undefined alias", "a `*` refers to a name that no `&` gives; put quotes around a text that begins with `*`"),
    ("cannot start any token", "this character begins no value; put quotes around the text"),
)
"""(words of the YAML parser, what they mean)"""
LOOKALIKES = {
    "\u00a0": "a no-break space stands where a plain one must (U+00A0)",
    "\u3000": "a wide space stands where a plain one must (U+3000)",
    "\uff1a": "a wide colon stands where a plain one must (U+FF1A)",
    "\u201c": "curly quotes stand where plain ones must (U+201C)",
    "\u201d": "curly quotes stand where plain ones must (U+201D)",
}
"""Characters that look like those of YAML, and what to say of them."""
HALF = "an escape from \\ud800 to \\udfff is half a character; write both halves, or the character itself"


class FileError(ValueError):
    """A user's file can't be used; the message names file, line, field and fix."""


class FieldErrors(FileError):
    """Fields are wrong; where they stand in a file is told by `Document.located`."""

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


class _Loader(yaml.SafeLoader):
    """Reads a pair of escapes such as `\\ud83d\\ude00` as the one character that it is in JSON."""

    def compose_scalar_node(self, anchor: dict[str, Node]) -> ScalarNode:
        node: ScalarNode = super().compose_scalar_node(anchor)
        try:
            node.value = node.value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError as error:
            raise yaml.MarkedYAMLError(problem=HALF, problem_mark=node.start_mark) from error
        return node


_Loader.add_implicit_resolver(FLOAT, re.compile(r"[-+]?\d+[eE][-+]\d+$"), list("-+0123456789"))
"""Numbers such as 1e-05, as JSON writes them and people do: YAML 1.1 takes them for texts without a point."""


class Document:
    """A YAML text that holds fields, after `a.b.c=value` overrides, and the line of each of them."""

    def __init__(self, text: str, name: str, overrides: Sequence[str] = ()) -> None:
        """Raises FileError, which names the file `name`."""
        self._name = name
        self._root, data = _read(text, name)
        if data is None:
            raise FileError(f"{name}:1: is empty; write its fields as `name: value` lines")
        if not isinstance(data, dict):
            kind = "a list" if isinstance(data, list) else "a single value"
            raise FileError(f"{name}:1: holds {kind}, but must hold fields: begin with `name: value` lines")
        self.data: dict[str, object] = data
        self._overridden = {_override(data, override): override for override in overrides}

    def read(self, model: type[Model], check: Callable[[Model], Model] = lambda value: value) -> Model:
        """The model that the text describes, as `check`, which raises FieldErrors, returns it. Raises FileError."""
        with self.located():
            value, problems = validated(self.data, model)
            if value is None:
                raise FieldErrors([*problems, *self._further(problems, model, check)])
            return check(value)

    def _further(
        self, problems: Sequence[FieldProblem], model: type[Model], check: Callable[[Model], Model]
    ) -> Iterator[FieldProblem]:
        """What is found in other items once the wrong fields are left out, but for what follows from that."""
        data, wrong = copy.deepcopy(self.data), {self._resolved(each.location)[1][:2] for each in problems}
        for each in problems:
            holder: object = data
            for part in each.location[:-1]:
                holder = value_at(holder, part)
            if not each.location or not isinstance(holder, dict):
                return
            holder.pop(each.location[-1], None)
        value, found = validated(data, model)
        try:
            if value is not None:
                check(value)
        except FieldErrors as error:
            found = list(error.problems)
        except (ValueError, ImportError, OSError):
            return
        for each in found:
            follows = any(
                f"`{one.location[-1]}`" in each.text
                or (each.text == MISSING and one.location[:-1] == each.location[:-1])  # it may be that one
                for one in problems
            )
            if not follows and self._resolved(each.location)[1][:2] not in wrong:
                yield each

    def admit(self, folder: Path) -> None:
        """Let the user's files of worlds that the text names, meant from a folder, be loaded; name their tasks.

        Nothing that a store holds may come here. Raises FileError.
        """
        tasks = self.data.get("tasks")
        for index, task in enumerate(tasks if isinstance(tasks, list) else ()):
            named = task.get("environment") if isinstance(task, dict) else None
            if isinstance(named, str) and is_own(named):
                from proctor.own_files import loading  # 35 ms that other plans do without

                try:
                    task["environment"] = loading.admit_world(named, folder)
                except loading.OwnFileError as error:
                    with self.located():
                        raise FieldErrors([FieldProblem(("tasks", index, "environment"), str(error))]) from error
                task.setdefault("name", loading.task_name(task["environment"]))

    @contextlib.contextmanager
    def located(self) -> Iterator[None]:
        """Turn FieldErrors into a FileError that names file and lines."""
        try:
            yield
        except FieldErrors as error:
            raise FileError("\n".join(map(self._located, error.problems))) from error

    def _located(self, problem: FieldProblem) -> str:
        location, names = self._resolved(problem.location)
        for path, override in self._overridden.items():
            if location[: len(path)] == path:
                return f"--set {_safe(override)}: {problem._replace(location=names)}"
        return f"{self._name}:{_line(self._root, location)}: {problem._replace(location=names)}"

    def _resolved(self, location: Location) -> tuple[Location, Location]:
        """A location with positions of items, and with their names where they have one."""
        value: object = self.data
        positions: list[int | str] = []
        names: list[int | str] = []
        for part in location:
            items = enumerate(value) if isinstance(value, list) else ()
            position = next((n for n, each in items if isinstance(each, dict) and each.get("name") == part), part)
            positions.append(position)
            value = value_at(value, position)
            name = value.get("name") if isinstance(value, dict) and isinstance(position, int) else None
            names.append(name if isinstance(name, str) and name else part)
        return tuple(positions), tuple(names)


def parse(text: str, name: str, model: type[Model], overrides: Sequence[str] = (), folder: Path | None = None) -> Model:
    """The model a YAML text describes, after `a.b.c=value` overrides. Raises FileError, which names the file `name`.

    A text of the user's own has a folder that its files are meant from: see `Document.admit`.
    """
    document = Document(text, name, overrides)
    if folder is not None:
        document.admit(folder)
    return document.read(model)


def parse_value(text: str, name: str) -> object:
    """The plain value a YAML text describes. Raises FileError, which names the text `name`."""
    return _read(text, name)[1]


def load(path: Path, model: type[Model], overrides: Sequence[str] = ()) -> Model:
    """The model a YAML file describes. Raises FileError."""
    return parse(read_text(path), str(path), model, overrides, path.resolve().parent)


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
        loader = _Loader(text)
        root = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, name, text) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        character = chr(error.character) if isinstance(error.character, int) else str(error.character)
        raise FileError(f"{name}:{line}: not YAML: holds the character {character!r}; remove it") from error
    except RecursionError as error:
        raise FileError(f"{name}: nested more than {MAX_DEPTH} deep; nest less deeply") from error
    if root is None:
        return None, None
    _measure(root, name, {})
    try:
        return root, loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, name, text) from error
    except ValueError as error:
        raise FileError(f"{name}: no valid number or date: {error}; put quotes around a value meant as text") from error


def _measure(node: Node, name: str, measured: dict[Node, tuple[int, int]]) -> tuple[int, int]:
    """The number of values in a node and their depth, with aliases expanded.

    Raises FileError where either exceeds its limit, a key stands twice, or a number is not finite, as none is in JSON.
    """
    if node in measured:
        return measured[node]
    if node.tag == FLOAT and node.value.lstrip("+-").lower() in (".inf", ".nan"):
        raise FileError(f"{name}:{_at(node)}: {node.value}: is no finite number; for no limit leave the field out")
    measured[node] = MAX_VALUES, MAX_DEPTH  # an alias of a node inside itself never ends
    if isinstance(node, MappingNode):
        _refuse_keys(node, name)
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


def _refuse_keys(node: MappingNode, name: str) -> None:
    seen: dict[tuple[str, str], int] = {}
    for key, _ in node.value:
        if not isinstance(key, ScalarNode):
            continue
        if key.tag == "tag:yaml.org,2002:bool":
            raise FileError(f"{name}:{_at(key)}: {key.value}: YAML reads this as true or false; put quotes around it")
        what = key.tag, key.value
        if what in seen:
            raise FileError(f"{name}:{_at(key)}: {key.value}: is already in line {seen[what]}; remove one of them")
        seen[what] = _at(key)


def _at(node: Node) -> int:
    """The line a node starts in, from 1."""
    return node.start_mark.line + 1


def _override(data: dict[str, object], override: str) -> Location:
    """Set one dotted field and return its location. List items are named by their position or their field `name`.

    `+` is a new item at the end of a list.
    """
    path, equals, value = override.partition("=")
    if not equals or not all(path.split(".")):
        raise FileError(f"--set {override}: write it as field.field=value")
    target: object = data
    location: Location = ()
    *parents, last = path.split(".")
    for part in parents:
        key, target = _step_into(target, part, override)
        location = (*location, key)
    if last == "+" and isinstance(target, list):
        target.append(parse_value(value, f"--set {override}"))
        return (*location, len(target) - 1)
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
    items = target if isinstance(target, list) else []
    for index, item in enumerate(items):
        if part == str(index) or (isinstance(item, dict) and item.get("name") == part):
            return index, item
    names = [str(item["name"]) for item in items if isinstance(item, dict) and "name" in item]
    close = nearest(part, names)
    fix = f"did you mean {close}?" if close else f"there are: {', '.join(names)}" if names else "check the path"
    raise FileError(f"--set {override}: no field or item {part!r}; {fix}")


def _safe(override: str) -> str:
    """An override without a value that may be a key."""
    path, equals, value = override.partition("=")
    hidden = path.rpartition(".")[2] in SECRET_FIELDS or looks_secret(value)
    return f"{path}{equals}{HIDDEN}" if hidden else override


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


def _syntax_error(error: yaml.MarkedYAMLError, name: str, text: str) -> FileError:
    told = f"{error.context or ''} {error.problem or ''}"
    words = next((meaning for parsed, meaning in SYNTAX if parsed in told), f"{error.problem or error.context}")
    marks = (
        (error.context_mark, error.problem_mark)
        if "opened here" in words or "simple key" in told
        else (error.problem_mark, error.context_mark)
    )
    line = next((mark.line for mark in marks if mark), 0)
    lines = text.splitlines()
    if "mapping values" in told and line and not _names_a_field(lines[line - 1]):
        line, words = line - 1, "no `:` after the field's name"
    near = [n for n in range(max(0, line - 2), min(len(lines), line + 2)) if any(c in lines[n] for c in LOOKALIKES)]
    if near:
        line = near[0]
        words = "; ".join(meaning for character, meaning in LOOKALIKES.items() if character in lines[line])
    where = "" if near else "; fix it on or just before this line"
    return FileError(f"{name}:{line + 1}: not YAML: {words}{where}")


def _names_a_field(line: str) -> bool:
    return ":" in line or not line.strip() or line.lstrip().startswith(("-", "#"))
