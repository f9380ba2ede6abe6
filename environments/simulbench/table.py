"""Pure: the paper's tables 1 (one model against another) and 4 (ratings by subset), for runs (arXiv 2409.07641)."""

from collections.abc import Iterator, Sequence

from environments.simulbench.records import Mode
from environments.simulbench.summary import FULL_COVERAGE, ratings, verdicts
from proctor.plugins import FinishedTrial, RecordedPair
from proctor.tables.table import DAGGER, Figure, ResultTable, TableColumn, TableRow, row_names
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
VERDICTS = "Percent of the pairs with a verdict, for the candidate; Difference: Win less Lose."
NOT_COMPARABLE = f"{DAGGER}: not comparable with the paper's table, for the reason in the note."


def ratings_table(trials: Sequence[FinishedTrial], pairs: Sequence[RecordedPair]) -> ResultTable:
    """Table 4: a row for each agent that played scripts, the best first. Without rows if none did."""
    found = [(pair, ratings(finishes, "").metrics) for pair, finishes in _played("script", trials, pairs)]
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
    return ResultTable("SimulBench: ratings (table 4)", columns, rows, _explained(found, RATINGS))


def verdicts_table(trials: Sequence[FinishedTrial], pairs: Sequence[RecordedPair]) -> ResultTable:
    """Table 1: a row for each candidate against each reference model. Without rows if no agent compared any."""
    found = []
    for pair, finishes in _played("compare", trials, pairs):
        decided = [finish for finish in finishes if "win" in finish.metrics]
        coverage = len(decided) / pair.planned
        for models in dict.fromkeys(map(_models, decided)):
            metrics = verdicts([finish for finish in decided if _models(finish) == models]).metrics
            found.append((models, pair, metrics | {"coverage": coverage}))
    names = [(*models, pair.agent, pair.task, pair.run) for models, pair, _ in found]
    columns, cells = row_names(names, ("Candidate", "Reference", "Judge", "Task", "Run"), always=3)
    columns += (*map(TableColumn, ("Win", "Tie", "Lose")), TableColumn("Difference", parts=("samples", "coverage")))
    rows = tuple(
        TableRow((*name, *(Figure(metrics[each], ".2f") for each in ("win", "tie", "lose")), _difference(metrics)))
        for name, (_, _, metrics) in zip(cells, found, strict=True)
    )
    return ResultTable("SimulBench: one model against another (table 1)", columns, rows, (VERDICTS,))


def _played(
    mode: Mode, trials: Sequence[FinishedTrial], pairs: Sequence[RecordedPair]
) -> Iterator[tuple[RecordedPair, list[Finish]]]:
    """Each pair of the tasks of a mode, with its finishes; a fault alone does not tell its mode."""
    tasks = {(trial.run, trial.task) for trial in trials if trial.finish.detail.get("simulbench") == mode}
    for pair in pairs:
        if (pair.run, pair.task) in tasks:
            key = (pair.run, pair.task, pair.agent)
            yield pair, [trial.finish for trial in trials if (trial.run, trial.task, trial.agent) == key]


def _ratings(pair: RecordedPair, metrics: dict[str, float]) -> Iterator[Figure]:
    for title, suffix in SUBSETS.items():
        count = metrics.get(f"n{suffix}")
        figure = Figure(metrics.get(f"mean{suffix}"), ".2f", samples=None if count is None else int(count))
        if title == "All":
            figure = figure._replace(coverage=_coverage(pair, metrics), mark=DAGGER if pair.comparable else "")
        yield figure


def _coverage(pair: RecordedPair, metrics: dict[str, float]) -> float:
    return metrics["n"] / pair.planned


def _notes(pair: RecordedPair, metrics: dict[str, float]) -> tuple[str, ...]:
    notes = [f"{DAGGER} {pair.task}: {pair.comparable}."] if pair.comparable else []
    if _coverage(pair, metrics) < FULL_COVERAGE:
        notes.append(f"{pair.agent} has ratings of {metrics['n']:.0f} of {pair.planned:,} scripts of {pair.task}.")
    return tuple(notes)


def _explained(found: Sequence[tuple[RecordedPair, dict[str, float]]], how: str) -> tuple[str, ...]:
    return (*([NOT_COMPARABLE] if any(pair.comparable for pair, _ in found) else []), how)


def _models(finish: Finish) -> tuple[str, str]:
    """The candidate and the reference model of a pair of responses."""
    return str(finish.detail.get("candidate")), str(finish.detail.get("reference"))


def _difference(metrics: dict[str, float]) -> Figure:
    return Figure(metrics["difference"], ".2f", samples=int(metrics["n"]), coverage=metrics["coverage"])
