"""Counts the lines of the product's rooms against `budgets.toml`: with blank ones, comments and docstrings, as `wc -l`.

A room is a folder, without the rooms in it. The words of docs/ count too. Needs nothing but the standard library. The
exit code is 1 where a budget is exceeded.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from statistics import median

ROOT = Path(__file__).parents[1]
PRODUCT = ("agent_server", "environments", "eval_client", "proctor", "task_server")


@dataclass(frozen=True)
class Budgets:
    """The most lines of each room, of the product, which is the rooms of PRODUCT, and of the files of `spine.txt`.

    `beside_spine` are the lines of all other files that one run enters, `commands` how many commands `proctor` has,
    `docs_words` the words of the pages of docs/ but those of the gallery, which runs print.
    """

    rooms: Mapping[str, int]
    product: int
    spine: int
    beside_spine: int
    commands: int
    docs_words: int


def budgets(root: Path = ROOT) -> Budgets:
    """What `budgets.toml` says."""
    return Budgets(**tomllib.loads((root / "budgets.toml").read_text(encoding="utf-8")))


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


def room_of(path: PurePath, rooms: Mapping[str, int]) -> str | None:
    """The room that a file is in, the innermost; None for none."""
    return next((str(folder) for folder in path.parents if str(folder) in rooms), None)


def measured(root: Path, rooms: Mapping[str, int]) -> dict[str, Size]:
    """The size of each room of the checkout at `root`, of what of the product is in no room, and of all the product."""
    sizes = {name: Size() for name in rooms}
    for folder in sorted({*(PurePath(name).parts[0] for name in rooms), *PRODUCT}):
        for path in sorted((root / folder).rglob("*.py")):
            place = path.relative_to(root)
            size = sizes.setdefault(room_of(place, rooms) or place.parts[0], Size())
            size.add(place, path.read_text(encoding="utf-8"))
    product = [size for name, size in sizes.items() if PurePath(name).parts[0] in PRODUCT]
    files = {path: lines for size in product for path, lines in size.files.items()}
    return {**sizes, "product": Size(files, [lines for size in product for lines in size.functions])}


def spine(root: Path = ROOT) -> list[str]:
    """The files that one reads to change how a run works."""
    return (root / "spine.txt").read_text(encoding="utf-8").split()


def over_budget(root: Path, most: Budgets, sizes: Mapping[str, Size]) -> list[str]:
    """A line for each room that has more lines than it may, for the product, for the spine and for docs/."""
    counts = {name: size.lines for name, size in sizes.items()}
    counts["spine"] = sum((root / path).read_text(encoding="utf-8").count("\n") for path in spine(root))
    pages = (page for page in (root / "docs").rglob("*.md") if page.parent.name != "gallery")
    counts["docs_words"] = sum(len(page.read_text(encoding="utf-8").split()) for page in pages)
    allowed = {**most.rooms, "product": most.product, "spine": most.spine, "docs_words": most.docs_words}
    return [
        f"{name}: {count - allowed.get(name, 0):,} over its budget of {allowed.get(name, 0):,}"
        for name, count in counts.items()
        if count > allowed.get(name, 0)
    ]


def table(sizes: Mapping[str, Size], rooms: Mapping[str, int]) -> Iterator[str]:
    """The lines of the table."""
    rows: list[tuple[str, ...]] = [("", "budget", "files", "lines", "median", "p90", "longest file")]
    rows += [(name, f"{rooms[name]:,}" if name in rooms else "", *size.row()) for name, size in sizes.items()]
    for name, *cells, longest in rows:
        yield f"{name:<33}{''.join(f'{cell:>8}' for cell in cells)}  {longest}".rstrip()


def main() -> None:
    """Print the table of this checkout, and the rooms over their budgets."""
    most = budgets()
    sizes = measured(ROOT, most.rooms)
    exceeded = over_budget(ROOT, most, sizes)
    print(*table(sizes, most.rooms), *exceeded, sep="\n")
    sys.exit(bool(exceeded))


if __name__ == "__main__":
    main()
