"""What `make size-of-code` counts."""

from pathlib import Path, PurePath

import pytest

from benchmarks.size_of_code import BUDGETS, measured, over_budget, part_of, table

FUNCTION = (
    '"""A docstring."""\n\n\n# a comment\ndef one() -> None:\n    def within() -> None:\n        pass\n\n    within()\n'
)


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("eval_client/run/runner.py", "spine"),
        ("eval_client/view/app.py", "view"),
        ("eval_client/core/statistics/paired.py", "statistics"),
        ("eval_client/core/flow.py", "spine"),
        ("environments/webshop/functions.py", "functions"),
        ("environments/stss/scoring.py", "worlds"),
        ("environments/foreign/openenv/server.py", "foreign"),
        ("eval_client/cli/results/export.py", "exports"),
        ("eval_client/trial/command_process.py", "command trials"),
    ],
)
def test_rooms_added_since_are_counted_beside_the_parts(path: str, part: str) -> None:
    assert part_of(PurePath(path)) == part


def test_every_line_and_every_function_counts(tmp_path: Path) -> None:
    for place in ("proctor/a.py", "proctor/b.py", "environments/w/functions.py", "tests/c.py"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(FUNCTION)
    sizes = measured(tmp_path)
    assert {part: size.lines for part, size in sizes.items() if size.files} == {"spine": 18, "functions": 9}
    assert sizes["spine"].functions == [5, 2, 5, 2]
    assert sizes["spine"].row() == ("2", "18", "3.5", "5", "9 proctor/a.py")
    assert next(line for line in table(sizes) if line.startswith("all")).split()[1:3] == ["3", "27"]


def test_a_part_with_more_lines_than_its_budget_is_named(tmp_path: Path) -> None:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "long.py").write_text("\n" * BUDGETS["worlds"])
    assert over_budget(measured(tmp_path)) == []
    (tmp_path / "environments" / "more.py").write_text("\n\n")
    assert over_budget(measured(tmp_path)) == ["worlds: 2 lines over its budget of 19,500"]
