"""Bugs planted in the product: a function is found by its name, what a bug replaces in it by its syntax tree.

So a bug stays where it is when code moves to another file, is laid out otherwise or gets a comment.
"""

import ast
import copy
import functools
import importlib
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from tests.support import ROOT

FLOORS = ("agent_server", "environments", "eval_client", "packages", "proctor", "task_server")
DEFINITION = re.compile(r"^ *(?:(?:async )?def |class )(\w+)|^ *(\w+)(?::| =)", re.MULTILINE)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Change(NamedTuple):
    """What is replaced in the function, class or constant `where`, once.

    `where` has as much of the dotted name as tells it from others: `Worker.summarize`. `old` and `new` are an
    expression, statements, or an `except` clause; `...` in `old` stands for any expression or any statements, and in
    `new` for what that was. `old` is a definition's whole body where it is `...` alone.
    """

    where: str
    old: str
    new: str


def changed(change: Change, root: Path = ROOT) -> tuple[Path, str, ast.Module]:
    """The file with what is replaced, the dotted name of its definition there, and the file's tree with the change.

    Raises LookupError unless the product has it once.
    """
    found, count = [], 0
    *within, last = change.where.split(".")
    by_name, classes = _files(root), [name for name in within if name[0].isupper()]
    for file in (file for file in by_name[last] if all(file in by_name[each] for each in classes)):
        tree = ast.parse(file.read_text("utf-8"))
        for name, definition in _defined(tree):
            is_named = f".{_module(file, root)}.{name}".endswith(f".{change.where}")
            if is_named and (times := _replace(definition, change)):
                found.append((file, name, ast.fix_missing_locations(tree)))
                count += times
    if count != 1:
        raise LookupError(f"{change.where} has {count} times: {change.old}")
    return found[0]


@contextmanager
def planted_here(change: Change) -> Iterator[None]:
    """The change, made in this process in a function: whoever has imported it has the changed one."""
    file, name, tree = changed(change)
    code = compile(tree, str(file), "exec", dont_inherit=True)
    owner: Any = importlib.import_module(_module(file, ROOT))
    for part in name.split("."):
        owner = inspect.getattr_static(owner, part)
    function = owner.fget if isinstance(owner, property) else inspect.unwrap(getattr(owner, "__func__", owner))
    assert isinstance(function, FunctionType)
    sound = function.__code__
    (function.__code__,) = _codes(code, name)
    try:
        yield
    finally:
        function.__code__ = sound


@functools.cache
def _files(root: Path) -> dict[str, list[Path]]:
    """The product's files by the names that they may define."""
    by_name = defaultdict[str, list[Path]](list)
    for file in (file for floor in FLOORS for file in sorted((root / floor).rglob("*.py"))):
        for name in {each for found in DEFINITION.findall(file.read_text("utf-8")) for each in found if each}:
            by_name[name].append(file)
    return by_name


def _module(file: Path, root: Path) -> str:
    return ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def _defined(node: ast.AST, within: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Functions, classes and the constants of modules and classes, by dotted name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _DEFINITIONS):
            yield within + child.name, child
            yield from _defined(child, f"{within}{child.name}.")
        elif isinstance(child, ast.Assign | ast.AnnAssign) and isinstance(node, ast.Module | ast.ClassDef):
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            yield from ((within + target.id, child) for target in targets if isinstance(target, ast.Name))
        elif not isinstance(child, ast.expr):
            yield from _defined(child, within)


def _codes(code: CodeType, name: str) -> list[CodeType]:
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return [code] if code.co_qualname == name else [found for each in inner for found in _codes(each, name)]


def _replace(definition: ast.AST, change: Change) -> int:
    """Replace what matches; how often it did."""
    if change.old == "...":
        assert isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
        definition.body = _filled(ast.parse(change.new).body, [definition.body])
        return 1
    if change.old.startswith("except "):
        return _replace_in(definition, _clause(change.old), _clause(change.new))
    old, new = (ast.parse(text).body for text in change[1:])
    if isinstance(old[0], ast.Expr) and isinstance(new[0], ast.Expr) and len(old) == len(new) == 1:
        return _replace_in(definition, old[0].value, new[0].value)
    return _replace_statements(definition, old, new)


def _clause(text: str) -> ast.ExceptHandler:
    (holder,) = ast.parse(f"try: pass\n{text}").body
    assert isinstance(holder, ast.Try)
    return holder.handlers[0]


def _replace_in(node: ast.AST, old: ast.AST, new: ast.AST) -> int:
    count = 0
    for name, value in ast.iter_fields(node):
        children = value if isinstance(value, list) else [value]
        for at, child in enumerate(children):
            held: list[Any] = []
            if isinstance(child, ast.AST) and _matches(old, child, held):
                count += 1
                children[at : at + 1] = _filled([new], held)
            elif isinstance(child, ast.AST):
                count += _replace_in(child, old, new)
        setattr(node, name, children if isinstance(value, list) else children[0])
    return count


def _replace_statements(node: ast.AST, old: list[ast.stmt], new: list[ast.stmt]) -> int:
    count = 0
    for child in list(ast.walk(node)):
        for body in (value for _, value in ast.iter_fields(child) if isinstance(value, list)):
            for at in reversed(range(len(body) - len(old) + 1)):
                held: list[Any] = []
                if _matches_all(old, body[at : at + len(old)], held):
                    count += 1
                    body[at : at + len(old)] = _filled(new, held)
    return count


def _is_hole(node: Any) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def _matches(old: Any, there: Any, held: list[Any]) -> bool:
    if _is_hole(old) and isinstance(there, ast.expr):
        held.append(there)
        return True
    if isinstance(old, list):
        return isinstance(there, list) and _matches_all(old, there, held)
    if not isinstance(old, ast.AST):
        return type(old) is type(there) and bool(old == there)
    return type(old) is type(there) and all(
        _matches(value, getattr(there, name), held) for name, value in ast.iter_fields(old)
    )


def _matches_all(old: Sequence[Any], there: Sequence[Any], held: list[Any]) -> bool:
    """Whether lists match; a statement `...` in `old` stands for any number of statements."""
    holes = [at for at, each in enumerate(old) if isinstance(each, ast.Expr) and _is_hole(each.value)]
    if not holes:
        return len(old) == len(there) and all(map(_matches, old, there, [held] * len(old)))
    (at,) = holes
    after = len(old) - at - 1
    if len(there) < at + after or not _matches_all(old[:at], there[:at], held):
        return False
    held.append(list(there[at : len(there) - after]))
    return _matches_all(old[at + 1 :], there[len(there) - after :], held)


class _Fill(ast.NodeTransformer):
    """Puts what each `...` stood for in its place, in turn."""

    def __init__(self, held: list[Any]) -> None:
        self._held = iter(held)

    def visit_Expr(self, node: ast.Expr) -> Any:
        return next(self._held) if _is_hole(node.value) else self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> Any:
        return next(self._held) if _is_hole(node) else node


def _filled(new: Sequence[ast.AST], held: list[Any]) -> list[Any]:
    fill = _Fill(held)
    filled = [fill.visit(copy.deepcopy(each)) for each in new]
    return [each for item in filled for each in (item if isinstance(item, list) else [item])]
