"""Pure: the paper's tables 3 (language level) and 4 (action level), for runs (arXiv 2404.05337)."""

from collections.abc import Callable, Iterator, Sequence

from environments.stss.summary import DRIVERS, OWN_WORLD, PRIMARY, summarize
from proctor.plugins import FinishedTrial, RecordedPair
from proctor.tables.table import Figure, ResultTable, TableColumn, TableRow, row_names

ARCHITECTURES = {"ga": "GA", "tdp": "GA + TDP"}
"""The paper's word for each value of the field `planning`."""
RATES = {
    ("Conversation", "SR"): "sr_conversation",
    ("Conversation", "GCSR"): "gcsr_conversation",
    ("Summary", "SR"): "sr_summary",
    ("Summary", "GCSR"): "gcsr_summary",
}
CATEGORIES = {
    "Public activity": "public",
    "Appointment": "appointment",
    "Inviting companions": "companions",
    "Online activity": "online",
    "Asking for help": "help",
}
WHO = ("Model", "Architecture", "Task", "Run")
"""What names a row."""
LANGUAGE = "SR: success rate, GCSR: goal condition success rate; means over tasks, with the number of tasks."
ACTION = "Mean task scores from 0 to 1, with the number of tasks; Average: over all tasks."

Metrics = dict[str, float]
Row = tuple[RecordedPair, str, Metrics, tuple[str, ...]]
"""A pair, its architecture, its metrics, and what a reader must know of them."""


def language_table(trials: Sequence[FinishedTrial], pairs: Sequence[RecordedPair]) -> ResultTable:
    """Table 3, in percent: a row for each agent and architecture. Without rows if nothing of the level was played."""
    columns = tuple(
        TableColumn(title, name=name, group=group, parts=("samples", "coverage"))
        for (group, title), name in RATES.items()
    )

    def figures(pair: RecordedPair, metrics: Metrics) -> Iterator[Figure]:
        for name in RATES.values():
            rate = metrics.get(name)
            yield _figure(None if rate is None else 100 * rate, ".1f", metrics.get("tasks"), pair, metrics)

    title = "STSS: language level, in percent (table 3)"
    return _table(title, columns, list(_rows("language", trials, pairs)), figures, LANGUAGE)


def action_table(trials: Sequence[FinishedTrial], pairs: Sequence[RecordedPair]) -> ResultTable:
    """Table 4: a row for each agent and architecture. Without rows if nothing of the level was played."""
    columns = tuple(TableColumn(title, parts=("samples",)) for title in CATEGORIES)
    columns += (TableColumn("Average", parts=("samples", "coverage")),)

    def figures(pair: RecordedPair, metrics: Metrics) -> Iterator[Figure]:
        for name in CATEGORIES.values():
            count = metrics.get(f"tasks_{name}")
            yield Figure(metrics.get(f"{PRIMARY}_{name}"), samples=None if count is None else int(count))
        yield _figure(metrics.get(PRIMARY), ".3f", metrics.get("tasks"), pair, metrics)

    return _table("STSS: action level (table 4)", columns, list(_rows("action", trials, pairs)), figures, ACTION)


def played(
    level: str, trials: Sequence[FinishedTrial], pairs: Sequence[RecordedPair]
) -> Iterator[tuple[RecordedPair, str, list[FinishedTrial]]]:
    """The pairs of the tasks at a level, with architecture and trials; a fault alone does not tell its level."""
    told = {
        (trial.run, trial.task): trial.finish.detail.get("planning")
        for trial in trials
        if trial.finish.detail.get("level") == level
    }
    for pair in pairs:
        if (pair.run, pair.task) in told:
            key = (pair.run, pair.task, pair.agent)
            architecture = ARCHITECTURES.get(str(told[pair.run, pair.task]), "-")
            yield pair, architecture, [trial for trial in trials if (trial.run, trial.task, trial.agent) == key]


def notes_of(trials: Sequence[FinishedTrial]) -> tuple[str, ...]:
    """What a reader must know of any figure of these trials."""
    summary = summarize([trial.finish for trial in trials])
    return (OWN_WORLD, *(note for note in summary.notes if note in DRIVERS.values()))


def _rows(level: str, trials: Sequence[FinishedTrial], pairs: Sequence[RecordedPair]) -> Iterator[Row]:
    """The pairs of the tasks at a level, each with its metrics."""
    for pair, architecture, of_pair in played(level, trials, pairs):
        metrics = summarize([trial.finish for trial in of_pair]).metrics
        yield pair, architecture, metrics, notes_of(of_pair)


def _table(
    title: str,
    columns: tuple[TableColumn, ...],
    found: Sequence[Row],
    figures: Callable[[RecordedPair, Metrics], Iterator[Figure]],
    how: str,
) -> ResultTable:
    names = [(pair.agent, architecture, pair.task, pair.run) for pair, architecture, _, _ in found]
    name_columns, cells = row_names(names, WHO, always=2)
    rows = tuple(
        TableRow((*name, *figures(pair, metrics)), notes=notes)
        for name, (pair, _, metrics, notes) in zip(cells, found, strict=True)
    )
    return ResultTable(title, name_columns + columns, rows, (how,))


def _figure(value: float | None, form: str, count: float | None, pair: RecordedPair, metrics: Metrics) -> Figure:
    return Figure(value, form, samples=None if count is None else int(count), coverage=metrics["tasks"] / pair.planned)
