"""Reads what the report shows of single trials: numbers, and never what was said."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from eval_client.core.flow import Pair
from eval_client.core.spend import Price, Tokens
from eval_client.core.statistics.missing import mean_bounds
from eval_client.core.statistics.samples import Interval, Scores
from eval_client.report.plots.learning import EndedTrial
from eval_client.store.migration import existing_columns
from eval_client.store.store import Store
from eval_client.store.tables import trial_table


class TrialFacts(NamedTuple):
    """The figures of one trial."""

    id: int
    sample: str
    epoch: int
    cluster: str
    reason: str | None
    """None while it is under way."""
    score: float | None
    turns: int
    tokens: Tokens
    ended_at: str
    """Empty in runs of schema 2."""


def trial_facts(store: Store, task: str | None = None) -> dict[Pair, list[TrialFacts]]:
    """(agent, task) -> its trials, in the run's order: of all tasks, or of one. Raises SQLAlchemyError."""
    existing = {column.name for column in existing_columns(store.engine, trial_table)}
    columns = [trial_table.c[name] if name in existing else sa.null() for name in _COLUMNS]
    query = sa.select(*columns).where(trial_table.c.run == store.run).order_by(trial_table.c.id)
    if task is not None:
        query = query.where(trial_table.c.task == task)
    found: dict[Pair, list[TrialFacts]] = {}
    with store.engine.connect() as connection:
        for rows in connection.execute(query).partitions(ROWS):
            for row in rows:
                found.setdefault((row[0], row[1]), []).append(_facts(row))
    return found


ROWS = 1_000
"""So many rows are read at once."""
_COLUMNS = (
    *("agent", "task", "id", "sample", "epoch", "cluster", "reason", "score", "turns", "ended_at"),
    *(f"{name}_tokens" for name in Tokens._fields),
)


def _facts(row: sa.Row[Any]) -> TrialFacts:
    """The facts in a row; columns that an earlier schema lacks are None."""
    _, _, trial, sample, epoch, cluster, reason, score, turns, ended_at, *tokens = tuple(row)
    spent = Tokens(*[count or 0 for count in tokens])
    return TrialFacts(trial, sample, epoch, cluster or sample, reason, score, turns or 0, spent, ended_at or "")


def sample_scores(trials: Sequence[TrialFacts]) -> dict[str, Scores]:
    """sample -> the scores of its epochs, and how many are missing."""
    held: dict[str, list[float | None]] = {}
    for trial in trials:
        held.setdefault(trial.sample, []).append(trial.score)
    return {
        sample: Scores(tuple([score for score in scores if score is not None]), scores.count(None))
        for sample, scores in held.items()
    }


def score_bounds(trials: Sequence[TrialFacts]) -> Interval | None:
    """The mean score with all missing ones 0, and with all 1; None where none is missing."""
    if all(trial.score is not None for trial in trials):
        return None
    return mean_bounds(list(sample_scores(trials).values()))


def ended_trials(trials: Sequence[TrialFacts], resumed_at: Sequence[str]) -> list[EndedTrial]:
    """The scored trials in the order of their ending; those that ended in one second, in the run's order."""
    scored = sorted(
        (trial for trial in trials if trial.score is not None), key=lambda trial: (trial.ended_at, trial.id)
    )
    return [
        EndedTrial(
            trial.sample, trial.cluster, trial.score or 0.0, sum(moment <= trial.ended_at for moment in resumed_at)
        )
        for trial in scored
    ]


def costs(trials: Sequence[TrialFacts], price: Price | None) -> list[float]:
    """What each trial that is over cost: money where there is a price, else tokens."""
    over = [trial.tokens for trial in trials if trial.reason is not None]
    return [float(tokens.total) if price is None else price.of(tokens) for tokens in over]
