"""Pure: comparisons as tables, for the terminal and for pages."""

from collections.abc import Iterator

from eval_client.report.compare.values import Comparison, Comparisons, TaskComparison, level_text, range_text
from proctor.tables.table import Entry, Figure, ResultTable, TableColumn, TableRow

UNLIKE = "≠ "
"""Before a task whose two sides are not alike."""
APART = "*"
"""After a difference that a test shows."""


def comparison_tables(found: Comparison | Comparisons) -> list[ResultTable]:
    """A table for each pair of agents, and after them the letters where all pairs of a run were compared."""
    if isinstance(found, Comparison):
        return [comparison_table(found)]
    return [*map(comparison_table, found.comparisons), *letters_tables(found)]


def comparison_table(found: Comparison) -> ResultTable:
    """One pair of agents, a row for each task and below it the figures that have no test."""
    a, b = found.a.agent, found.b.agent
    titles = (a, b, "difference", level_text(found.alpha), "p", "p Holm", "detectable", "won / tied / lost", "missing")
    columns = (TableColumn("task", left=True), *map(TableColumn, ("n", *titles)))
    tests = f"Holm over {found.tests} tests" if found.tests > 1 else "one test"
    notes = (
        f"A is {a}, B is {b}; n: samples that both have scored; {APART} told apart by the adjusted p ({tests}, alpha "
        f"{found.alpha:g}); detectable: with power {found.power:g}.",
        "missing: the lowest and the highest difference that the missing scores allow.",
    )
    said: dict[str, list[str]] = {}
    for row in found.tasks:
        for warning in row.warnings:
            said.setdefault(warning, []).append(row.name)
    warnings = tuple(f"{', '.join(names)}: {warning}" for warning, names in said.items())
    missing = any(row.missing.a + row.missing.b for row in found.tasks)
    rows = tuple(row for task in found.tasks for row in _rows(task, found.alpha))
    return ResultTable(_title(found), columns, rows, (*warnings, *(notes if missing else notes[:1])))


def letters_tables(found: Comparisons) -> list[ResultTable]:
    """Which agents are told apart, in one table of agents by tasks; none where not all pairs were compared."""
    if not found.letters:
        return []
    agents = dict.fromkeys(agent for of_task in found.letters.values() for agent in of_task)
    columns = (TableColumn("agent", left=True), *(TableColumn(task, left=True) for task in found.letters))
    rows = tuple(TableRow((agent, *(of_task.get(agent) for of_task in found.letters.values()))) for agent in agents)
    level = f"{found.comparisons[0].alpha:g}"
    note = f"Agents with a common letter can't be told apart on that task at the level {level}, after Holm."
    return [ResultTable("Which agents differ", columns, rows, (note,))]


def _title(found: Comparison) -> str:
    a, b = found.a, found.b
    return (
        f"{a.agent} less {b.agent}: run {a.run}" if a.run == b.run else f"{a.agent} ({a.run}) less {b.agent} ({b.run})"
    )


def _rows(row: TaskComparison, alpha: float) -> Iterator[TableRow]:
    cells: tuple[Entry, ...] = (
        (UNLIKE if row.unlike else "") + row.name,
        row.samples,
        *map(Figure, row.mean),
        Figure(row.difference, "+.3f", mark=APART if row.p_holm < alpha else ""),
        range_text(row.interval),
        _p(row.p),
        _p(row.p_holm),
        Figure(row.detectable),
        f"{row.wins} / {row.ties} / {row.losses}",
        range_text(row.bounds) if row.missing.a + row.missing.b else "none",
    )
    yield TableRow(cells)
    if row.bootstrap is not None:
        yield TableRow(("bootstrap", *[None] * 4, range_text(row.bootstrap), *[None] * 5))
    primary = row.primary
    if primary is not None and not primary.is_mean_score:
        difference = Figure(primary.difference, "+.3f", standard_error=primary.standard_error)
        yield _untested(primary.name, Figure(primary.a), Figure(primary.b), difference)
    for each in row.passes:
        both = ((f"pass@{each.k}", each.pass_at), (f"pass^{each.k}", each.pass_hat))
        for name, (a, b) in both if each.k > 1 else both[:1]:
            yield _untested(name, Figure(a), Figure(b), Figure(a - b, "+.3f"))


def _untested(name: str, a: Figure, b: Figure, difference: Figure) -> TableRow:
    """Figures that no test is of."""
    cells: tuple[Entry, ...] = (name, None, a, b, difference, *[None] * 6)
    return TableRow(cells)


def _p(p: float) -> Figure:
    return Figure(None, instead="<0.0001") if p < 0.0001 else Figure(p, ".4f")
