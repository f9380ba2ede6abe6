"""The other trials of a trial's sample: of other agents, and of other epochs."""

from typing import NamedTuple

import sqlalchemy as sa

from eval_client.report.trajectory import Trajectory
from eval_client.store.store import Store
from eval_client.store.tables import trial_table

MOST = 12
"""Trials that a page names; the rest are a link away."""


class SameSample(NamedTuple):
    """A trial of the same sample."""

    id: int
    agent: str
    epoch: int
    score: float | None
    outcome: str
    """The finish reason of a trial without a score, or that it is not over yet; empty for one with a score."""
    name: str
    """The agent, with the epoch where that is another one."""


class SameSamples(NamedTuple):
    """The trials that a page names."""

    shown: list[SameSample]
    more: int
    """How many there are beyond them."""


def same_sample(store: Store, trial: Trajectory, agents: list[str]) -> SameSamples:
    """The other trials of a trial's sample: its own agent's first, then those of `agents` in their order.

    The trial's epoch comes first within an agent. `agents` lets the database read its index on (run, agent, task).
    """
    t = trial_table.c
    query = sa.select(t.id, t.agent, t.epoch, t.score, t.reason).where(
        t.run == store.run, t.agent.in_(agents), t.task == trial.task, t.sample == trial.sample, t.id != trial.trial
    )
    with store.engine.connect() as connection:
        found = [
            SameSample(number, agent, epoch, score, _outcome(score, reason), _name(trial, agent, epoch))
            for number, agent, epoch, score, reason in connection.execute(query)
        ]
    found.sort(
        key=lambda each: (each.agent != trial.agent, agents.index(each.agent), each.epoch != trial.epoch, each.epoch)
    )
    return SameSamples(found[:MOST], max(0, len(found) - MOST))


def _outcome(score: float | None, reason: str | None) -> str:
    return "" if score is not None else reason or "not over yet"


def _name(trial: Trajectory, agent: str, epoch: int) -> str:
    return agent if epoch == trial.epoch else f"{agent}#{epoch}"
