"""Tests ask what a caller sees and read no source; the list of planted bugs keeps up with code and tests."""

import ast
import functools
import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.faults.planted import BUGS, Bug
from tests.simulation.mutants import MUTANTS, Mutant
from tests.support import ROOT
from tests.unit.house.planting import changed

FLOORS = ("agent_server", "environments", "eval_client", "packages", "proctor", "task_server")
NOBODYS = {"_asdict", "_fields", "_make", "_replace", "_exit", "_getframe", "_"}
"""Names that only look private: of named tuples, `os` and `sys`."""
BY_NAME = ("getattr", "setattr", "delattr", "object", "patch")


def test_no_test_reads_the_source_of_the_product() -> None:
    assert {file.name for file in files() if file.reads_source} == set()


def test_no_test_uses_what_is_private_elsewhere() -> None:
    homes = defaultdict[str, set[str]](set)
    for floor in FLOORS:
        for path in (ROOT / floor).rglob("*.py"):
            for name in defined(ast.parse(path.read_text(encoding="utf-8"))):
                homes[name].add(re.sub(r"^packages/\w+/proctor_", "", str(path.relative_to(ROOT).parent)))
    assert {file.name for file in files() if private(file, homes)} == set()


class FileOfTests(NamedTuple):
    """A file of tests, and the names that it uses without defining them."""

    name: str
    reads_source: bool
    used: set[str]


@functools.cache
def files() -> list[FileOfTests]:
    found = []
    for path in (ROOT / "tests").rglob("*.py"):
        name = str(path.relative_to(ROOT))
        if not name.startswith("tests/unit/house/"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            nodes = list(ast.walk(tree))
            used = {name for node in nodes for name in uses(node)} - defined(tree)
            found.append(FileOfTests(name, any(map(reads_source, nodes)), used))
    return found


def reads_source(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="glob" | "rglob"), args=[ast.Constant(value=pattern)]):
            return str(pattern).endswith("*.py")
        case ast.Attribute(attr="getsource" | "getsourcelines" | "getsourcefile"):
            return True
        case ast.BinOp(op=ast.Div(), right=ast.Constant(value=str(file))):
            return file.endswith(".py") and ast.unparse(node).startswith(tuple(f"ROOT / '{floor}'" for floor in FLOORS))
    return False


def defined(tree: ast.Module) -> set[str]:
    """The private names that a file gives to something."""
    stored = [node for node in ast.walk(tree) if isinstance(getattr(node, "ctx", None), ast.Store)]
    names = {
        *(
            node.name
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        ),
        *(node.id for node in stored if isinstance(node, ast.Name)),
        *(node.attr for node in stored if isinstance(node, ast.Attribute)),
    }
    return {name for name in names if name.startswith("_") and not name.startswith("__")} - NOBODYS


def private(file: FileOfTests, homes: dict[str, set[str]]) -> set[str]:
    """The product's private names that a file of tests uses, but for those of the package whose units it tests."""
    own = str(Path(file.name).parent).removeprefix("tests/unit/")
    return {name for name in file.used if name in homes and not any(f"{home}/".startswith(own) for home in homes[name])}


def uses(node: ast.AST) -> list[str]:
    match node:
        case ast.Attribute(attr=name):
            return [name]
        case ast.ImportFrom(names=names):
            return [each.name for each in names]
        case ast.Call(func=ast.Name(id=call) | ast.Attribute(attr=call), args=args) if call in BY_NAME:
            return [str(arg.value).rpartition(".")[2] for arg in args if isinstance(arg, ast.Constant)]
    return []


FAULTS = ROOT / "tests" / "faults"


@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_what_a_bug_replaces_stands_once_where_it_says(bug: Bug) -> None:
    assert changed(bug.change)
    assert (ROOT / "tests" / bug.test.partition("::")[0]).is_file()


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.bug for mutant in MUTANTS])
def test_so_does_what_a_bug_of_the_simulation_replaces(mutant: Mutant) -> None:
    assert changed(mutant.change)


@pytest.mark.parametrize("file", sorted(FAULTS.rglob("test_*.py")), ids=lambda file: str(file.stem))
def test_every_test_of_the_fault_suite_has_a_bug_to_notice(file: object) -> None:
    assert isinstance(file, Path)
    name = str(file.relative_to(FAULTS))
    tests = re.findall(r"^def test_(\w+)", (FAULTS / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    words = [bug.test.partition("::")[2].split(" and ")[0] for bug in BUGS if bug.test.startswith(f"faults/{name}")]
    unguarded = [test for test in tests if len(tests) > 1 and not any(word in test for word in words)]
    assert words
    assert unguarded == []
