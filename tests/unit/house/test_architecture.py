"""The architecture page names what is there, and leaves no room out."""

import ast
import re
from collections.abc import Iterator

from tests.support import ROOT
from tests.unit.house.test_rooms import PRODUCT

PAGE = ROOT / "docs" / "explanation" / "architecture.md"
STEP = re.compile(r"`([a-z_]+/[a-z0-9_/]+\.py)`((?:,\s+`[A-Za-z_][\w.]*`)*)")
"""A file, and the functions, methods and classes of it that are named right after it."""


def steps() -> list[tuple[str, list[str]]]:
    text = PAGE.read_text(encoding="utf-8")
    return [(file, re.findall(r"`([\w.]+)`", names)) for file, names in STEP.findall(text)]


def defined(file: str) -> set[str]:
    return set(_names(ast.parse((ROOT / file).read_text(encoding="utf-8")).body, ""))


def _names(body: list[ast.stmt], within: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield within + node.name
        elif isinstance(node, ast.ClassDef):
            yield within + node.name
            yield from _names(node.body, f"{within}{node.name}.")


def test_every_file_on_the_page_exists() -> None:
    named = re.findall(r"`((?:[a-z0-9_]+/)+[a-z0-9_]*(?:\.[a-z]+)?)`", PAGE.read_text(encoding="utf-8"))
    assert len(named) > 100
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_function_on_the_page_is_defined_in_its_file() -> None:
    found = steps()
    assert sum(len(names) for _, names in found) > 60
    assert [f"{file}: {name}" for file, names in found for name in names if name not in defined(file)] == []


def test_every_room_has_its_line() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rooms = [
        f"{floor}/{path.name}/" if path.is_dir() else f"{floor}/{path.name}"
        for floor in PRODUCT
        for path in sorted((ROOT / floor).iterdir())
        if (path / "__init__.py").is_file() or (path.suffix == ".py" and path.name != "__init__.py")
    ]
    assert [room for room in rooms if f"\n| `{room}` |" not in text] == []
