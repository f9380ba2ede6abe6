"""The comparisons of a run's agents, for its report."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from eval_client.report.compare.compare import compare_run
from eval_client.report.compare.measure import Settings
from eval_client.report.compare.sides import MOST_AGENTS, Side, TaskSide, agents_of, find_pairs
from eval_client.report.compare.texts import level_text, range_text
from eval_client.report.compare.values import Comparison, Comparisons, TaskComparison
from eval_client.report.html.scrub import publishable
from eval_client.report.reference import CompareError, Reference
from eval_client.store.store import Store
from proctor.tables.table import Figure, ResultTable, TableColumn, TableRow

TOO_MANY = (
    "Not compared: with {count} agents, all pairs are too many (at most {most} agents); `proctor compare` takes two, "
    "or one against all others."
)
UNMATCHED = "{a} and {b} are not compared on {task}: they have no scored sample in common."


class Compared(NamedTuple):
    """All pairs of a run's agents, as far as they can be compared, and what could not."""

    found: Comparisons | None
    left_out: tuple[str, ...] = ()
    """Sentences."""


def compared(store: Store) -> Compared:
    """What `proctor compare RUN` finds, without tasks on which two agents have no scored sample in common.

    Raises StoreError, SQLAlchemyError.
    """
    agents = agents_of(store.manifest())
    if len(agents) < 2:
        return Compared(None, ("Nothing to compare: the run has one agent.",))
    if len(agents) > MOST_AGENTS:
        return Compared(None, (TOO_MANY.format(count=len(agents), most=MOST_AGENTS),))
    pairs, left_out = [], []
    for a, b in find_pairs(Reference(store.run, None, None, None), None, lambda _: store):
        common = [task for task in a.tasks if task in b.tasks]
        matched = [task for task in common if _is_matched(a.tasks[task], b.tasks[task])]
        left_out += [UNMATCHED.format(a=a.agent, b=b.agent, task=task) for task in common if task not in matched]
        if matched:
            pairs.append((_only(a, matched), _only(b, matched)))
    if not pairs:
        return Compared(None, tuple(left_out) or ("Nothing to compare: no task has two agents.",))
    try:
        return Compared(compare_run(pairs, Settings(), lettered=True), tuple(left_out))
    except CompareError as error:
        return Compared(None, (publishable(f"Not compared: {error}."),))


def _is_matched(a: TaskSide, b: TaskSide) -> bool:
    """Whether both have scored a sample in common."""
    return any(mine.scores and sample in b.scores and b.scores[sample].scores for sample, mine in a.scores.items())


def _only(side: Side, tasks: Sequence[str]) -> Side:
    return dataclasses.replace(side, tasks={task: side.tasks[task] for task in tasks})


def comparison_table(found: Comparison) -> ResultTable:
    """One pair of agents, a row for each task."""
    a, b = found.a.agent, found.b.agent
    level = level_text(found.alpha)
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


def _cells(row: TaskComparison) -> tuple[str | int | Figure, ...]:
    return (
        row.samples,
        *map(Figure, row.mean),
        Figure(row.difference, "+.3f"),
        range_text(row.interval),
        _p(row.p),
        _p(row.p_holm),
        Figure(row.detectable),
        range_text(row.bounds) if row.missing.a + row.missing.b else "none missing",
    )


def _p(p: float) -> Figure:
    return Figure(None, instead="<0.0001") if p < 0.0001 else Figure(p, ".4f")
