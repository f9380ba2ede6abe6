"""Pure: the paper's tables 3 (language level) and 4 (action level), for runs (arXiv 2404.05337)."""

from collections.abc import Sequence

from environments.stss.summary import DRIVERS, OWN_WORLD, PRIMARY, summarize
from proctor.plugins import FinishedTrial, RecordedPair
from proctor.tables.table import Figure, ResultTable, TableColumn, TableRow, row_names, title_with_behind

ARCHITECTURES = {"ga": "GA", "tdp": "GA + TDP"}
"""The paper's word for each value of the field `planning`."""
RATES = {(of, rate): f"{rate}_{of}".lower() for of in ("Conversation", "Summary") for rate in ("SR", "GCSR")}
CATEGORIES = {
    "Public activity": "public",
    "Appointment": "appointment",
    "Inviting companions": "companions",
    "Online activity": "online",
    "Asking for help": "help",
}

Metrics = dict[str, float]
Shown = tuple[TableColumn, str, str]
"""A column, the metric in it, and the metric with its number of tasks."""
Row = tuple[RecordedPair, str, Metrics, tuple[str, ...]]
"""A pair, its architecture, its metrics, and what a reader must know of them."""


def paper_tables(trials: Sequence[FinishedTrial], pairs: Sequence[RecordedPair]) -> list[ResultTable]:
    """Those of the paper's tables that have a row."""
    return [made for made in (language_table(trials, pairs), action_table(trials, pairs)) if made.rows]


def language_table(trials: Sequence[FinishedTrial], pairs: Sequence[RecordedPair]) -> ResultTable:
    """Table 3, in percent: a row for each agent and architecture. Without rows if nothing of the level was played."""
    shown = [
        (TableColumn(title, name=name, group=group, parts=("samples", "coverage")), name, "tasks")
        for (group, title), name in RATES.items()
    ]
    how = "SR: success rate, GCSR: goal condition success rate; means over tasks, with the number of tasks."
    return _table("STSS: language level, in percent (table 3)", shown, _rows("language", trials, pairs), how)


def action_table(trials: Sequence[FinishedTrial], pairs: Sequence[RecordedPair]) -> ResultTable:
    """Table 4: a row for each agent and architecture. Without rows if nothing of the level was played."""
    shown = [
        (TableColumn(title, parts=("samples",)), f"{PRIMARY}_{name}", f"tasks_{name}")
        for title, name in CATEGORIES.items()
    ]
    shown.append((TableColumn("Average", parts=("samples", "coverage")), PRIMARY, "tasks"))
    how = "Mean task scores from 0 to 1, with the number of tasks; Average: over all tasks."
    return _table("STSS: action level (table 4)", shown, _rows("action", trials, pairs), how)


def _rows(level: str, trials: Sequence[FinishedTrial], pairs: Sequence[RecordedPair]) -> list[Row]:
    """The pairs of the tasks at a level, each with its metrics; a fault alone does not tell its level."""
    told = {
        (trial.run, trial.task): trial.finish.detail.get("planning")
        for trial in trials
        if trial.finish.detail.get("level") == level
    }
    rows: list[Row] = []
    for pair in pairs:
        if (pair.run, pair.task) in told:
            key = (pair.run, pair.task, pair.agent)
            summary = summarize([trial.finish for trial in trials if (trial.run, trial.task, trial.agent) == key])
            notes = (OWN_WORLD, *(note for note in summary.notes if note in DRIVERS.values()))
            rows.append((pair, ARCHITECTURES.get(str(told[pair.run, pair.task]), "-"), summary.metrics, notes))
    return rows


def _table(title: str, shown: Sequence[Shown], found: Sequence[Row], how: str) -> ResultTable:
    names = [(pair.agent, architecture, pair.task, pair.run) for pair, architecture, _, _ in found]
    name_columns, cells = row_names(names, ("Model", "Architecture", "Task", "Run"), always=2)
    rows = tuple(
        TableRow((*name, *(_figure(each, pair, metrics) for each in shown)), notes=notes)
        for name, (pair, _, metrics, notes) in zip(cells, found, strict=True)
    )
    title = title_with_behind(title, ((metrics["tasks"], pair.planned) for pair, _, metrics, _ in found))
    return ResultTable(title, (*name_columns, *(column for column, _, _ in shown)), rows, (how,))


def _figure(shown: Shown, pair: RecordedPair, metrics: Metrics) -> Figure:
    column, name, counted = shown
    value, count, percent = metrics.get(name), metrics.get(counted), name in RATES.values()
    return Figure(
        100 * value if value is not None and percent else value,
        ".1f" if percent else ".3f",
        samples=None if count is None else int(count),
        coverage=metrics["tasks"] / pair.planned if "coverage" in column.parts else None,
    )
