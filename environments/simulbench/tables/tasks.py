"""Pure: the simulation tasks of runs, ranked from the easiest to the hardest."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from environments.simulbench.tables.paper import played
from proctor.plugins import FinishedTrial, RecordedPair
from proctor.summary import mean
from proctor.tables.table import Figure, ResultTable, TableColumn, TableRow, title_with_behind

HOW = "Mean: of the agents' mean ratings, with the number of scripts. Lowest, Highest: of the agents' means."
COLUMNS = (
    TableColumn("Task", left=True),
    TableColumn("Type", left=True),
    TableColumn("Rank"),
    TableColumn("Mean", parts=("samples",)),
    TableColumn("Lowest"),
    TableColumn("Highest"),
)


class _TaskRatings(NamedTuple):
    """The ratings of one simulation task."""

    kind: str
    scripts: set[str]
    means: list[float]
    """The mean rating of each agent."""


def tasks_table(trials: Sequence[FinishedTrial], pairs: Sequence[RecordedPair], count: int) -> ResultTable:
    """The `count` easiest and the `count` hardest tasks, by the mean over agents; without rows if no script is rated.

    A task is its `act`. Every agent weighs the same, however many of its trials were faults.
    """
    tasks: dict[str, _TaskRatings] = {}
    counts: list[tuple[int, int]] = []
    for pair, of_pair in played("script", trials, pairs):
        counts.append((sum("rating" in trial.finish.metrics for trial in of_pair), pair.planned))
        given: defaultdict[str, list[float]] = defaultdict(list)
        for trial in of_pair:
            if "rating" in trial.finish.metrics:
                act, kind = (str(trial.finish.detail.get(name)) for name in ("act", "type"))
                tasks.setdefault(act, _TaskRatings(kind, set(), [])).scripts.add(trial.sample)
                given[act].append(trial.finish.metrics["rating"])
        for act, of_act in given.items():
            tasks[act].means.append(mean(of_act))
    ranked = sorted(tasks, key=lambda act: (-mean(tasks[act].means), act))
    rows = [_row(rank, act, tasks[act]) for rank, act in enumerate(ranked, 1)]
    if 2 * count < len(rows):
        rows = [*rows[:count], rows[-count]._replace(rule=True), *rows[len(rows) - count + 1 :]]
    title = title_with_behind(f"SimulBench: easiest and hardest of {len(ranked)} tasks", counts)
    return ResultTable(title, COLUMNS, tuple(rows), (HOW,))


def _row(rank: int, act: str, task: _TaskRatings) -> TableRow:
    low, high = Figure(min(task.means), ".2f"), Figure(max(task.means), ".2f")
    return TableRow((act, task.kind, rank, Figure(mean(task.means), ".2f", samples=len(task.scripts)), low, high))
