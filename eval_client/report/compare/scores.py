"""Reads the scores of a run for comparisons, without their finishes."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from eval_client.store.results import cluster_column
from eval_client.store.store import Store
from eval_client.store.tables import trial_table


class SampleScores(NamedTuple):
    """What one agent scored on one sample."""

    cluster: str | None
    """None in runs of schema 2, which has no clusters."""
    scores: tuple[float, ...]
    """Of the scored epochs, in the order of the epochs."""
    missing: int
    """Planned epochs without a score."""


PairScores = dict[str, SampleScores]
"""sample -> its scores, in the run's order"""


def planned_scores(store: Store, agents: Sequence[str]) -> dict[tuple[str, str], PairScores]:
    """(agent, task) -> scores of all planned samples, for the given agents, in one query. Raises SQLAlchemyError."""
    t = trial_table.c
    query = sa.select(t.agent, t.task, t.sample, cluster_column(store.engine), t.score)
    query = query.where(t.run == store.run, t.agent.in_(agents)).order_by(t.id)
    found: dict[tuple[str, str], PairScores] = {}
    with store.engine.connect() as connection:
        for agent, task, sample, cluster, score in connection.execute(query):
            pair = found.setdefault((agent, task), {})
            first, scores, missing = pair.get(sample, (cluster, (), 0))
            scored = () if score is None else (score,)
            pair[sample] = SampleScores(first, (*scores, *scored), missing + (score is None))
    return found
