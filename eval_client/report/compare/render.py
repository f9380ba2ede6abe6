"""Prints comparisons as tables on a terminal."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from eval_client.report.compare.texts import interval_text, level_text, p_text, plain, signed
from eval_client.report.compare.values import ComparedAgent, Comparison, Comparisons, TaskComparison

WIDE = 100
"""Columns from which on the table has what could be detected and what is missing; the notes have both at any width."""
UNLIKE = "≠ "
"""Before a row whose two sides are not alike."""
APART = "*"
"""After a difference that a test shows."""
LONGEST_NAME = 24
"""Longer names take several lines."""


def report_console() -> Console:
    """The console for comparisons: the terminal, or 120 columns wide where standard output is none."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=120)


def show_comparison(found: Comparison, console: Console) -> None:
    """Print one comparison: what is not alike, the table, then each task's notes, and the gates that fail."""
    _print_unlike([found], console)
    table = _table(_title(found.a, found.b), ("task",))
    for name in ("n", "A", "B", *_columns(found, console)):
        table.add_column(name, justify="right", no_wrap=True)
    for row in found.tasks:
        means = (plain(row.mean[0]), plain(row.mean[1]))
        table.add_row(_named(row.name, row), f"{row.samples:,}", *means, *_cells(row, found, console))
    console.print(table)
    _print_level(found, console)
    _print_lines([(row.name, row.notes, row.warnings) for row in found.tasks], console)
    for line in found.gates:
        console.print(f"FAILED {escape(line)}", style="bold red", soft_wrap=True)


def show_comparisons(found: Comparisons, console: Console) -> None:
    """Print all pairs of agents, task by task: a table, the letters, and what lessens the trust in a row."""
    _print_unlike(found.comparisons, console)
    first = found.comparisons[0]
    for task in dict.fromkeys(row.task for each in found.comparisons for row in each.tasks):
        rows = [(each, row) for each in found.comparisons for row in each.tasks if row.task == task]
        table = _table(f"{task}, run {first.a.run}", ("A", "B"))
        for name in ("n", *_columns(first, console)):
            table.add_column(name, justify="right", no_wrap=True)
        for each, row in rows:
            agents = (_named(each.a.agent, row), escape(each.b.agent))
            table.add_row(*agents, f"{row.samples:,}", *_cells(row, first, console))
        console.print(table)
        if task in found.letters:
            letters = ", ".join(f"{agent} {letter}" for agent, letter in found.letters[task].items())
            _print_indented(Text(f"{letters} (agents with a common letter are not told apart)"), console)
        _print_lines([(f"{each.a.agent}, {each.b.agent}", (), row.warnings) for each, row in rows], console)
        console.print()
    _print_level(first, console)


def _title(a: ComparedAgent, b: ComparedAgent) -> str:
    if a.run == b.run:
        return f"A {a.agent} against B {b.agent}, run {a.run}"
    return f"A {a.agent} ({a.run}) against B {b.agent} ({b.run})"


def _named(name: str, row: TaskComparison) -> str:
    return escape((UNLIKE if row.unlike else "") + name)


def _table(title: str, names: Sequence[str]) -> Table:
    table = Table(
        title=escape(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, collapse_padding=True
    )
    for name in names:
        table.add_column(name, overflow="fold", max_width=LONGEST_NAME)
    return table


def _columns(found: Comparison, console: Console) -> tuple[str, ...]:
    """The columns of the difference."""
    narrow = ("A-B ", level_text(found.alpha), "p", "p Holm")
    return (*narrow, "detectable", "missing") if console.width >= WIDE else narrow


def _cells(row: TaskComparison, found: Comparison, console: Console) -> tuple[str, ...]:
    apart = APART if row.p_holm < found.alpha else " "
    interval = "-" if row.interval is None else interval_text(row.interval)
    narrow = (signed(row.difference) + apart, interval, p_text(row.p), p_text(row.p_holm))
    if console.width < WIDE:
        return narrow
    bounds = interval_text(row.bounds) if row.missing.a + row.missing.b else "none"
    return (*narrow, "-" if row.detectable is None else plain(row.detectable), bounds)


def _print_unlike(found: Sequence[Comparison], console: Console) -> None:
    texts = dict.fromkeys(text for each in found for text in each.alike)
    if texts:
        console.print(f"NOT ALIKE: {escape('; '.join(texts))}", style="bold red", soft_wrap=True)


def _print_level(found: Comparison, console: Console) -> None:
    tests = f"Holm over {found.tests} tests" if found.tests > 1 else "one test"
    line = f"{tests}, alpha {found.alpha:g}. {APART} told apart by the adjusted p. n: samples that both have scored."
    if console.width >= WIDE:
        line += " missing: lowest .. highest A-B that the missing scores allow."
    _print_indented(Text(line, style="dim"), console)


def _print_lines(rows: Sequence[tuple[str, Sequence[str], Sequence[str]]], console: Console) -> None:
    """Print notes, then warnings, beside the name of what they are about."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(overflow="fold", max_width=LONGEST_NAME)
    grid.add_column()
    for name, notes, warnings in rows:
        label = Text(name, style="bold")
        for line in [*((note, "") for note in notes), *((warning, "yellow") for warning in warnings)]:
            grid.add_row(label, Text(*line))
            label = Text()
    if grid.row_count:
        _print_indented(grid, console)


def _print_indented(printed: Text | Table, console: Console) -> None:
    console.print(Padding(printed, (0, 0, 0, 2)))
