"""Reads the scores and figures of all trials of a run, without their finishes and what was said."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from eval_client.core import Pair
from eval_client.core.statistics.samples import Scores
from eval_client.store.store import Store
from eval_client.store.tables import trial_table
from proctor.types import Usage

_COLUMNS = (
    *("agent", "task", "id", "sample", "epoch", "cluster", "reason", "score", "turns"),
    *Usage._fields,
)


PairScores = dict[str, Scores]
"""sample -> its scores, in the task's order; without clusters in runs of schema 2"""


def planned_scores(store: Store, agents: Sequence[str]) -> dict[tuple[str, str], PairScores]:
    """(agent, task) -> scores of all planned samples, for the given agents, in one query. Raises DatabaseError."""
    t = store.table(trial_table).c
    query = sa.select(t.agent, t.task, t.sample, t.cluster, t.score)
    query = query.where(t.run == store.run, t.agent.in_(agents)).order_by(t.id)
    found: dict[tuple[str, str], PairScores] = {}
    with store.engine.connect() as connection:
        for agent, task, sample, cluster, score in connection.execute(query):
            pair = found.setdefault((agent, task), {})
            scores, missing, first = pair.get(sample, ((), 0, cluster))
            scored = () if score is None else (score,)
            pair[sample] = Scores((*scores, *scored), missing + (score is None), first)
    places = {task: store.places(task) for task in {task for _, task in found}}
    return {
        (agent, task): dict(sorted(pair.items(), key=lambda each: places[task][each[0]])) if places[task] else pair
        for (agent, task), pair in found.items()
    }


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
    tokens: Usage


def trial_facts(store: Store, task: str | None = None) -> dict[Pair, list[TrialFacts]]:
    """(agent, task) -> its trials, in the run's order: of all tasks, or of one. Raises DatabaseError."""
    t = store.table(trial_table).c
    query = sa.select(*(t[name] for name in _COLUMNS)).where(t.run == store.run).order_by(t.id)
    if task is not None:
        query = query.where(t.task == task)
    found: dict[Pair, list[TrialFacts]] = {}
    with store.engine.connect() as connection:
        for agent, of, trial, sample, epoch, cluster, reason, score, turns, *tokens in connection.execute(query):
            spent = Usage(*(count or 0 for count in tokens))  # an earlier schema lacks some
            facts = TrialFacts(trial, sample, epoch, cluster or sample, reason, score, turns or 0, spent)
            found.setdefault((agent, of), []).append(facts)
    return found
