"""What `make size-of-code` counts, and how many commands there are."""

from collections.abc import Iterator
from pathlib import Path, PurePath

import click
import pytest

from benchmarks.size_of_code import Budgets, budgets, measured, over_budget, room_of, spine, table
from eval_client.cli.main import proctor
from proctor.registry import COMMANDS, SEPARATE
from tests.support import ROOT

FUNCTION = (
    '"""A docstring."""\n\n\n# a comment\ndef one() -> None:\n    def within() -> None:\n        pass\n\n    within()\n'
)
ROOMS = {"proctor": 18, "proctor/llm": 9, "tests": 9}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for place in ("proctor/a.py", "proctor/b/c.py", "proctor/llm/model.py", "tests/d.py"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(FUNCTION)
    (tmp_path / "spine.txt").write_text("proctor/a.py\nproctor/llm/model.py\n")
    return tmp_path


def over(root: Path, rooms: dict[str, int], product: int = 27, spine: int = 18) -> list[str]:
    most = Budgets(rooms=rooms, product=product, spine=spine, beside_spine=0, commands=0)
    return over_budget(root, most, measured(root, rooms))


def test_a_file_is_in_the_innermost_room() -> None:
    assert room_of(PurePath("proctor/llm/dialects/chat.py"), ROOMS) == "proctor/llm"
    assert room_of(PurePath("proctor/retry.py"), ROOMS) == "proctor"
    assert room_of(PurePath("eval_client/python/api.py"), ROOMS) is None


def test_every_line_and_every_function_counts(checkout: Path) -> None:
    sizes = measured(checkout, ROOMS)
    assert {name: size.lines for name, size in sizes.items()} == ROOMS
    assert sizes["proctor"].functions == [5, 2, 5, 2]
    assert sizes["proctor"].row() == ("2", "18", "3.5", "5", "9 proctor/a.py")
    assert list(table(sizes, ROOMS))[-1].split()[1:3] == ["3", "27"]


def test_what_has_more_lines_than_its_budget_is_named(checkout: Path) -> None:
    assert over(checkout, ROOMS) == []
    assert over(checkout, {**ROOMS, "tests": 7}) == ["tests: 2 lines over its budget of 7"]
    assert over(checkout, ROOMS, product=20) == ["product: 7 lines over its budget of 20"]
    assert over(checkout, ROOMS, spine=10) == ["spine: 8 lines over its budget of 10"]
    (checkout / "eval_client").mkdir()
    (checkout / "eval_client" / "new.py").write_text("\n")
    assert over(checkout, ROOMS, product=28) == ["eval_client: 1 lines over its budget of 0"]


def test_the_spine_is_files_that_there_are() -> None:
    assert len(set(spine())) == len(spine()) <= 45
    assert [path for path in spine() if not (ROOT / path).is_file()] == []


def commands(group: click.Group, context: click.Context) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, click.Context(command, parent=context))
        else:
            yield name


def test_there_are_no_more_commands_than_the_budget_allows() -> None:
    """Without those of packages of their own."""
    packages = {name for offered in SEPARATE.values() for name in offered.get(COMMANDS, ())}
    ours = [name for name in commands(proctor, click.Context(proctor)) if name not in packages]
    assert len(ours) <= budgets().commands
