"""Counts the lines of the product, all of them: with blank ones, comments and docstrings, as `wc -l` does.

The budgets are for the spine and the worlds without the rooms that were added since; those are counted beside them.
Needs nothing but the standard library. The exit code is 1 where a budget is exceeded.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path, PurePath
from statistics import median

PARTS = {"spine": ("proctor", "task_server", "agent_server", "eval_client"), "worlds": ("environments",)}
"""The folders of each part."""
BUDGETS = {"spine": 15_000, "worlds": 19_500}
ADDED = {
    "view": ("eval_client/view/*",),
    "statistics": ("eval_client/core/statistics/*",),
    "gateway": ("task_server/gateway/*",),
    "foreign": ("environments/foreign/*",),
    "functions": ("proctor/tools/*", "environments/*/functions.py", "environments/*/tools.py"),
    "exports": ("eval_client/report/exports/*", "*/export.py"),
    "mcp": ("eval_client/mcp/*",),
    "command trials": ("eval_client/trial/command*.py",),
}
"""The rooms added since, and the patterns of their files."""


@dataclass
class Size:
    """The sizes of some files."""

    files: dict[str, int] = field(default_factory=dict)
    """Path -> lines."""
    functions: list[int] = field(default_factory=list)
    """Lines of each function and method, without its decorators."""

    def add(self, path: PurePath, text: str) -> None:
        """Count a file too."""
        self.files[path.as_posix()] = text.count("\n")
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
        self.functions += [(node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes]

    @property
    def lines(self) -> int:
        """The lines of all files."""
        return sum(self.files.values())

    def row(self) -> tuple[str, ...]:
        """Files, lines, median and 90th percentile of the functions' lengths, and the longest file."""
        lengths = sorted(self.functions) or [0]
        longest = max(self.files, key=lambda path: self.files[path], default="")
        ninetieth = lengths[len(lengths) * 9 // 10]
        return (
            str(len(self.files)),
            f"{self.lines:,}",
            f"{median(lengths):g}",
            str(ninetieth),
            f"{self.files.get(longest, 0)} {longest}",
        )


def part_of(path: PurePath) -> str:
    """The room added since, or else the part, that a file belongs to."""
    name = path.as_posix()
    added = (room for room, patterns in ADDED.items() if any(fnmatch(name, each) for each in patterns))
    return next(added, None) or next(part for part, folders in PARTS.items() if path.parts[0] in folders)


def measured(root: Path) -> dict[str, Size]:
    """The size of each part and each added room of the checkout at `root`."""
    sizes = {name: Size() for name in PARTS | ADDED}
    folders = (root / folder for part in PARTS.values() for folder in part)
    for path in (path for folder in folders for path in sorted(folder.rglob("*.py"))):
        place = path.relative_to(root)
        sizes[part_of(place)].add(place, path.read_text(encoding="utf-8"))
    return sizes


def over_budget(sizes: dict[str, Size]) -> list[str]:
    """A line for each part that has more lines than it may."""
    return [
        f"{part}: {sizes[part].lines - most:,} lines over its budget of {most:,}"
        for part, most in BUDGETS.items()
        if sizes[part].lines > most
    ]


def table(sizes: dict[str, Size]) -> Iterator[str]:
    """The lines of the table."""
    whole = Size(
        {path: lines for size in sizes.values() for path, lines in size.files.items()},
        [lines for size in sizes.values() for lines in size.functions],
    )
    rows: list[tuple[str, ...]] = [("", "files", "lines", "median", "p90", "longest file")]
    rows += [(name, *size.row()) for name, size in [*sizes.items(), ("all", whole)]]
    for name, *cells, longest in rows:
        yield f"{name:<15}{''.join(f'{cell:>8}' for cell in cells)}  {longest}".rstrip()


def main() -> None:
    """Print the table of this checkout, and the parts over their budgets."""
    sizes = measured(Path(__file__).parents[1])
    exceeded = over_budget(sizes)
    print(*table(sizes), *exceeded, sep="\n")
    sys.exit(bool(exceeded))


if __name__ == "__main__":
    main()
