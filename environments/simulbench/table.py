"""Pure: the paper's tables 1 (one model against another) and 4 (ratings by subset), for runs (arXiv 2409.07641)."""

from collections.abc import Iterator, Sequence

from environments.simulbench.records import Mode
from environments.simulbench.summary import FULL_COVERAGE, ratings, verdicts
from proctor.plugins import FinishedTrial, RecordedPair
from proctor.tables.table import DAGGER, Figure, ResultTable, TableColumn, TableRow, row_names, title_with_behind
from proctor.types import Finish

SUBSETS = {
    "Last Only": "_lastonly",
    "First Chan": "_firstchan",
    "Subseq Chan": "_subseqchan",
    "Stateless": "_firstchan_stateless",
    "Stateful": "_firstchan_stateful",
    "Hard": "_hard",
    "All": "",
}
"""Suffix of a metric, by column title. As in the paper's table 4, Stateless and Stateful cover FirstChan only."""
RATINGS = "Mean ratings from 1 to 10, with the number of scripts. Stateless and Stateful are over First Chan alone."
VERDICTS = (
    "Percent of the pairs with a verdict, for the candidate; Difference: Win less Lose, with the number of pairs."
)
CONTEST = ("Candidate", "Reference", "Judge", "Task", "Run")
"""What names a row of verdicts."""
Names = tuple[str, ...]
Metrics = dict[str, float]
NOT_COMPARABLE = f"{DAGGER}: not comparable with the paper's table, for the reason in the note."


def paper_tables(trials: Sequence[FinishedTrial], pairs: Sequence[RecordedPair]) -> list[ResultTable]:
    """Those of the paper's tables that have a row."""
    return [made for made in (ratings_table(trials, pairs), verdicts_table(trials, pairs)) if made.rows]


def ratings_table(trials: Sequence[FinishedTrial], pairs: Sequence[RecordedPair]) -> ResultTable:
    """Table 4: a row for each agent that played scripts, the best first. Without rows if none did."""
    found = [
        (pair, ratings([trial.finish for trial in of_pair], "").metrics)
        for pair, of_pair in _played("script", trials, pairs)
    ]
    found.sort(key=lambda item: -item[1].get("mean", 0.0))
    columns, names = row_names([(pair.agent, pair.task, pair.run) for pair, _ in found], ("Model", "Task", "Run"))
    columns += tuple(
        TableColumn(title, parts=("samples", "coverage", "mark") if title == "All" else ("samples",))
        for title in SUBSETS
    )
    rows = tuple(
        TableRow((*name, *_ratings(pair, metrics)), notes=_notes(pair, metrics))
        for name, (pair, metrics) in zip(names, found, strict=True)
    )
    title = title_with_behind(
        "SimulBench: ratings (table 4)", ((metrics["n"], pair.planned) for pair, metrics in found)
    )
    daggers = [NOT_COMPARABLE] if any(pair.comparable for pair, _ in found) else []
    return ResultTable(title, columns, rows, (*daggers, RATINGS))


def verdicts_table(trials: Sequence[FinishedTrial], pairs: Sequence[RecordedPair]) -> ResultTable:
    """Table 1: a row for each candidate against each reference model. Without rows if no agent compared any."""
    found = list(_compared(trials, pairs))
    columns, cells = row_names([names for names, _ in found], CONTEST, always=3)
    columns += (*map(TableColumn, ("Win", "Tie", "Lose")), TableColumn("Difference", parts=("samples", "coverage")))
    rows = tuple(TableRow((*name, *_verdicts(metrics))) for name, (_, metrics) in zip(cells, found, strict=True))
    behind = ((len(_decided(of_pair)), pair.planned) for pair, of_pair in _played("compare", trials, pairs))
    title = title_with_behind("SimulBench: one model against another (table 1)", behind)
    return ResultTable(title, columns, rows, (VERDICTS,))


def _played(
    mode: Mode, trials: Sequence[FinishedTrial], pairs: Sequence[RecordedPair]
) -> Iterator[tuple[RecordedPair, list[FinishedTrial]]]:
    """Each pair of the tasks of a mode, with its trials; a fault alone does not tell its mode."""
    tasks = {(trial.run, trial.task) for trial in trials if trial.finish.detail.get("simulbench") == mode}
    for pair in pairs:
        if (pair.run, pair.task) in tasks:
            key = (pair.run, pair.task, pair.agent)
            yield pair, [trial for trial in trials if (trial.run, trial.task, trial.agent) == key]


def _decided(trials: Sequence[FinishedTrial]) -> list[Finish]:
    return [trial.finish for trial in trials if "win" in trial.finish.metrics]


def _compared(trials: Sequence[FinishedTrial], pairs: Sequence[RecordedPair]) -> Iterator[tuple[Names, Metrics]]:
    """The names in CONTEST and the metrics of each candidate against each reference model, by each judge."""
    for pair, of_pair in _played("compare", trials, pairs):
        decided = _decided(of_pair)
        coverage = len(decided) / pair.planned
        for models in dict.fromkeys(map(_models, decided)):
            metrics = verdicts([finish for finish in decided if _models(finish) == models]).metrics
            yield (*models, pair.agent, pair.task, pair.run), metrics | {"coverage": coverage}


def _ratings(pair: RecordedPair, metrics: Metrics) -> Iterator[Figure]:
    for title, suffix in SUBSETS.items():
        count = metrics.get(f"n{suffix}")
        figure = Figure(metrics.get(f"mean{suffix}"), ".2f", samples=None if count is None else int(count))
        if title == "All":
            figure = figure._replace(coverage=_coverage(pair, metrics), mark=DAGGER if pair.comparable else "")
        yield figure


def _coverage(pair: RecordedPair, metrics: Metrics) -> float:
    return metrics["n"] / pair.planned


def _notes(pair: RecordedPair, metrics: Metrics) -> tuple[str, ...]:
    notes = [f"{DAGGER} {pair.task}: {pair.comparable}."] if pair.comparable else []
    if _coverage(pair, metrics) < FULL_COVERAGE:
        notes.append(f"{pair.agent} has ratings of {metrics['n']:.0f} of {pair.planned:,} scripts of {pair.task}.")
    return tuple(notes)


def _models(finish: Finish) -> tuple[str, str]:
    """The candidate and the reference model of a pair of responses."""
    return str(finish.detail.get("candidate")), str(finish.detail.get("reference"))


def _verdicts(metrics: Metrics) -> Iterator[Figure]:
    for name in ("win", "tie", "lose"):
        yield Figure(metrics[name], ".2f")
    yield Figure(metrics["difference"], ".2f", samples=int(metrics["n"]), coverage=metrics["coverage"])
