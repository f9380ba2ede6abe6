"""The paper's table: mean ratings by subset, one row per agent."""

from collections.abc import Sequence

from environments.simulbench.summary import ratings
from proctor.plugins import FinishedTrial

COLUMNS = {
    "All": "",
    "Hard": "_hard",
    "LastOnly": "_lastonly",
    "FirstChan": "_firstchan",
    "SubseqChan": "_subseqchan",
    "Stateless": "_firstchan_stateless",
    "Stateful": "_firstchan_stateful",
}
"""Metric suffix by column title. As in the paper's table 4, Stateless and Stateful cover FirstChan only."""
WIDTH = 13


def table(trials: Sequence[FinishedTrial]) -> list[str]:
    """The lines of the table, best agent first; empty if no trial is of the mode `script`.

    A cell is a mean rating with its number of scripts; the last cell of a row is the coverage.
    """
    ours = [trial for trial in trials if trial.finish.detail.get("simulbench") == "script"]
    tasks = {(trial.run, trial.task) for trial in ours}
    names = dict.fromkeys((trial.run, trial.agent, trial.task) for trial in trials if (trial.run, trial.task) in tasks)
    rows = []
    for name in names:
        finishes = [trial.finish for trial in trials if (trial.run, trial.agent, trial.task) == name]
        metrics = ratings(finishes, "").metrics
        cells = [_cell(metrics.get(f"mean{suffix}"), metrics.get(f"n{suffix}", 0.0)) for suffix in COLUMNS.values()]
        rows.append((-metrics.get("mean", 0.0), [*cells, f"{metrics['coverage']:.0%}"], name))
    if not rows:
        return []
    rows.sort()
    titles = [" / ".join(name) for *_, name in rows]
    width = max(len("run / agent / task"), *map(len, titles))
    lines = [(cells, title) for (_, cells, _), title in zip(rows, titles, strict=True)]
    head = ([*COLUMNS, "coverage"], "run / agent / task")
    return [f"{title:<{width}}" + "".join(f"{cell:>{WIDTH}}" for cell in cells) for cells, title in (head, *lines)]


def _cell(mean: float | None, count: float) -> str:
    return f"{mean:.2f} ({count:.0f})" if mean is not None and count else "-"
