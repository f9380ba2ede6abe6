"""The trials that a shard holds: claimed in small batches ahead of need, given back where it does not play them."""

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from eval_client.core.flow import Pair
from eval_client.store.records import Trial
from eval_client.store.shards import hold_live
from eval_client.store.tables import FREE, SETTLED, trial_table

_COLUMNS = [trial_table.c[name] for name in Trial.model_fields]
GIVEN_UP_BATCH = 2000


def _pending(run: str, *holder: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    return sa.and_(trial_table.c.run == run, trial_table.c.score.is_(None), *holder)


def batch(room: int, free: int, shards: int) -> int:
    """How many trials of a pair a shard should hold unbegun: twice what it can play at once, fewer towards the end.

    `room` is how many trials the shard may play at once, `free` how many no shard holds.
    """
    return min(2 * room, -(-free // (2 * shards)))


def free(engine: sa.Engine, run: str) -> dict[Pair, int]:
    """(agent, task) -> number of unclaimed trials; pairs without any are left out."""
    t = trial_table.c
    query = sa.select(t.agent, t.task, sa.func.count()).where(_pending(run, t.holder == FREE)).group_by(t.agent, t.task)
    with engine.connect() as connection:
        return {(agent, task): int(count) for agent, task, count in connection.execute(query)}


def pairs_pending(engine: sa.Engine, run: str) -> set[tuple[str, str]]:
    """The pairs with trials still to be played since the run's last start or resume: free, or held by any shard."""
    pair = sa.select(trial_table.c.agent, trial_table.c.task)
    query = pair.where(_pending(run, trial_table.c.holder != SETTLED)).distinct()
    with engine.connect() as connection:
        return {(agent, task) for agent, task in connection.execute(query)}


def held(engine: sa.Engine, run: str, shard: int) -> list[Trial]:
    """The trials without a final row that a shard holds, in the run's order. Raises Fenced."""
    with engine.begin() as connection:
        hold_live(connection, run, shard)
        rows = connection.execute(sa.select(*_COLUMNS).where(_pending(run, trial_table.c.holder == shard)))
        return sorted((Trial.model_construct(**row._mapping) for row in rows), key=lambda trial: trial.id)


def pair_counts(engine: sa.Engine, run: str) -> dict[Pair, tuple[int, float, int]]:
    """(agent, task) -> (scored trials, sum of their scores, trials left unscored since the last start or resume)."""
    t = trial_table.c
    unscored = sa.func.sum(sa.case((sa.and_(t.score.is_(None), t.holder == SETTLED), 1), else_=0))
    columns = (t.agent, t.task, sa.func.count(t.score), sa.func.sum(t.score), unscored)
    query = sa.select(*columns).where(t.run == run).group_by(t.agent, t.task)
    with engine.connect() as connection:
        return {
            (a, b): (int(scored), float(total or 0), int(left))
            for a, b, scored, total, left in connection.execute(query)
        }


def claim(engine: sa.Engine, run: str, shard: int, wanted: Mapping[Pair, int]) -> list[Trial]:
    """Claim up to the wanted number of trials of each pair for this shard. Raises Fenced.

    Trials with more attempts come first, then those with smaller ids.
    """
    claimed: list[Trial] = []
    with engine.begin() as connection:
        hold_live(connection, run, shard)
        for pair, count in wanted.items():
            rows = connection.execute(_claiming(run, shard, pair, count))
            claimed += [Trial.model_construct(**row._mapping) for row in rows]
    return sorted(claimed, key=lambda trial: (-trial.attempts, trial.id))


def _claiming(run: str, shard: int, pair: Pair, count: int) -> sa.Executable:
    t = trial_table.c
    waiting = sa.select(t.id).where(_pending(run, t.holder == FREE), t.agent == pair[0], t.task == pair[1])
    picked = waiting.order_by(t.attempts.desc(), t.id).limit(count).with_for_update(skip_locked=True).cte("picked")
    mine = trial_table.update().where(t.run == run, t.id.in_(sa.select(picked.c.id)))
    return mine.values(holder=shard).returning(*_COLUMNS)


def give_back(engine: sa.Engine, run: str, shard: int, trials: Sequence[Trial]) -> None:
    """Release trials of this shard for others to claim. Raises Fenced."""
    ids = [trial.id for trial in trials]
    with engine.begin() as connection:
        hold_live(connection, run, shard)
        mine = _pending(run, trial_table.c.holder == shard, trial_table.c.id.in_(ids))
        connection.execute(trial_table.update().where(mine).values(holder=FREE))
