"""The comparisons of a run's agents, for its report."""

from typing import NamedTuple

from eval_client.core.statistics.samples import Interval
from eval_client.report.compare.compare import compare_run
from eval_client.report.compare.measure import Settings
from eval_client.report.compare.sides import find_pairs
from eval_client.report.compare.values import Comparison, Comparisons, TaskComparison
from eval_client.report.html.scrub import publishable
from eval_client.report.reference import CompareError, Reference
from eval_client.store.store import Store
from proctor.tables.table import MISSING, Figure, ResultTable, TableColumn, TableRow


class Compared(NamedTuple):
    """All pairs of a run's agents, or why there are none."""

    found: Comparisons | None
    why_not: str = ""


def compared(store: Store) -> Compared:
    """What `proctor compare RUN` finds. Raises SQLAlchemyError."""
    try:
        pairs = find_pairs(Reference(store.run, None, None, None), None, lambda _: store)
        return Compared(compare_run(pairs, Settings(), lettered=True))
    except CompareError as error:
        return Compared(None, publishable(str(error)))


def comparison_table(found: Comparison) -> ResultTable:
    """One pair of agents, a row for each task."""
    a, b = found.a.agent, found.b.agent
    level = f"{100 * (1 - found.alpha):g} % interval"
    titles = ("n", a, b, "difference", level, "p", "p Holm", "detectable", "missing: lowest .. highest")
    columns = (TableColumn("task", left=True), *map(TableColumn, titles))
    rows = tuple(
        TableRow(
            (row.name, *_cells(row)),
            notes=tuple(f"{row.name}: {publishable(note)}" for note in (*row.warnings, *row.notes)),
        )
        for row in found.tasks
    )
    tests = f"Holm over {found.tests} tests" if found.tests > 1 else "one test"
    level_note = (
        f"A is {a}, B is {b}. {tests}, alpha {found.alpha:g}; power of the detectable difference {found.power:g}."
    )
    return ResultTable(f"{a} less {b}", columns, rows, (level_note.replace(". one", ". One"),))


def _cells(row: TaskComparison) -> tuple[str | int | Figure, ...]:
    return (
        row.samples,
        *map(Figure, row.mean),
        Figure(row.difference, "+.3f"),
        _range(row.interval),
        _p(row.p),
        _p(row.p_holm),
        Figure(row.detectable),
        _range(row.bounds) if row.missing.a + row.missing.b else "none missing",
    )


def _range(ends: Interval | None) -> str:
    return MISSING if ends is None else f"{ends[0]:+.3f} .. {ends[1]:+.3f}"


def _p(p: float) -> Figure:
    return Figure(None, instead="<0.0001") if p < 0.0001 else Figure(p, ".4f")
