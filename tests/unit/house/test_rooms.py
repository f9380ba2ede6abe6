"""Rooms hold what they should, in no more lines than their budgets; the architecture page leaves none out."""

import ast
import functools
import re
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path, PurePath

import click
import networkx
import pytest

from benchmarks.size_of_code import Budgets, budgets, measured, over_budget, room_of, spine, table
from eval_client.cli.main import proctor
from proctor.registry import COMMANDS, SEPARATE
from tests.support import ROOT

PRODUCT = ("agent_server", "environments", "eval_client", "proctor", "task_server")
OURS = (*PRODUCT, "packages/bridges", "packages/ray", "packages/slurm")
MOST_FILES = 15
OTHER_WORDS = {"actions", "answers", "checks", "compat", "judging", "match", "protocol", "reading", "reward"}
"""Files of other names are `reply.py` and `scoring.py` in every world."""


def files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from (path for path in (ROOT / folder).rglob("*.py") if "samples" not in path.parts)


def test_no_folder_has_more_files_than_one_sees_at_a_glance() -> None:
    count = Counter(path.parent.relative_to(ROOT) for path in files(*OURS, "tests"))
    assert {str(folder): n for folder, n in count.items() if n > MOST_FILES} == {}


def test_what_reads_replies_and_what_scores_is_called_so() -> None:
    assert [str(path.relative_to(ROOT)) for path in files(*OURS) if path.stem in OTHER_WORDS] == []


def test_no_public_class_name_stands_twice() -> None:
    count = Counter(
        node.name
        for path in files(*OURS)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, n in count.items() if n > 1] == []


def test_sql_stands_in_the_store_alone() -> None:
    found = [str(path.relative_to(ROOT)) for path in files(*OURS) if "sqlalchemy" in imported(path)]
    assert [path for path in found if not path.startswith("eval_client/store/")] == []


def test_no_imports_go_in_a_circle_not_even_those_in_functions() -> None:
    known = {module(path): path for path in files(*OURS)}
    graph = networkx.DiGraph((name, each) for name, path in known.items() for each in imported(path) if each in known)
    circles = {tuple(sorted(each)) for each in networkx.strongly_connected_components(graph) if len(each) > 1}
    assert circles == set()


def module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[2:] if parts[0] == "packages" else parts).removesuffix(".__init__")


@functools.cache
def imported(path: Path) -> set[str]:
    """The modules that a file imports, and the names in them; not what types alone need."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    checks = [node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    typing = {id(node) for check in checks for node in ast.walk(check)}
    nodes = [node for node in ast.walk(tree) if id(node) not in typing]
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {str(node.module) for node in froms} | {f"{n.module}.{a.name}" for n in froms for a in n.names}


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


FUNCTION = (
    '"""A docstring."""\n\n\n# a comment\ndef one() -> None:\n    def within() -> None:\n        pass\n\n    within()\n'
)
ROOMS = {"proctor": 18, "proctor/llm": 9, "tests": 9}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    pages = {"docs/index.md": "# Three words\n", "docs/gallery/index.md": "printed by a run\n"}
    code = ("proctor/a.py", "proctor/b/c.py", "proctor/llm/model.py", "tests/d.py")
    for place, text in {**dict.fromkeys(code, FUNCTION), **pages}.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text)
    (tmp_path / "spine.txt").write_text("proctor/a.py\nproctor/llm/model.py\n")
    return tmp_path


def over(root: Path, rooms: dict[str, int], product: int = 27, spine: int = 18, words: int = 3) -> list[str]:
    most = Budgets(rooms=rooms, product=product, spine=spine, beside_spine=0, commands=0, docs_words=words)
    return over_budget(root, most, measured(root, rooms))


def test_a_file_is_in_the_innermost_room() -> None:
    assert room_of(PurePath("proctor/llm/dialects/chat.py"), ROOMS) == "proctor/llm"
    assert room_of(PurePath("proctor/retry.py"), ROOMS) == "proctor"
    assert room_of(PurePath("eval_client/python/api.py"), ROOMS) is None


def test_every_line_and_every_function_counts(checkout: Path) -> None:
    sizes = measured(checkout, ROOMS)
    assert {name: size.lines for name, size in sizes.items()} == {**ROOMS, "product": 27}
    assert sizes["proctor"].functions == [5, 2, 5, 2]
    assert sizes["proctor"].row() == ("2", "18", "3.5", "5", "9 proctor/a.py")
    assert list(table(sizes, ROOMS))[-1].split()[1:3] == ["3", "27"]


def test_what_has_more_lines_or_words_than_its_budget_is_named(checkout: Path) -> None:
    assert over(checkout, ROOMS) == []
    assert over(checkout, {**ROOMS, "tests": 7}) == ["tests: 2 over its budget of 7"]
    assert over(checkout, ROOMS, product=20) == ["product: 7 over its budget of 20"]
    assert over(checkout, ROOMS, spine=10) == ["spine: 8 over its budget of 10"]
    assert over(checkout, ROOMS, words=1) == ["docs_words: 2 over its budget of 1"]
    (checkout / "eval_client").mkdir()
    (checkout / "eval_client" / "new.py").write_text("\n")
    assert over(checkout, ROOMS, product=28) == ["eval_client: 1 over its budget of 0"]


def test_the_spine_is_files_that_there_are() -> None:
    assert len(set(spine())) == len(spine()) <= 45
    assert [path for path in spine() if not (ROOT / path).is_file()] == []


def commands(group: click.Group, context: click.Context, without: Collection[str] = ()) -> Iterator[str]:
    for name in group.list_commands(context):
        if name in without:
            continue
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, click.Context(command, parent=context))
        else:
            yield name


def test_there_are_no_more_commands_than_the_budget_allows() -> None:
    """Without those of packages of their own."""
    packages = {name for offered in SEPARATE.values() for name in offered.get(COMMANDS, ())}
    ours = list(commands(proctor, click.Context(proctor), packages))
    assert len(ours) <= budgets().commands
