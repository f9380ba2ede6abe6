"""The trials that a client takes in batches: a shard claims and gives back, a client that plays alone reads."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import sqlalchemy as sa

from eval_client.core.flow import Pair
from eval_client.store.connection import hold_live
from eval_client.store.records import Trial
from eval_client.store.tables import FREE, SETTLED, trial_table
from proctor.types import FinishReason

_COLUMNS = [trial_table.c[name] for name in Trial.model_fields]
GIVEN_UP_BATCH = 2000


def _pending(run: str | sa.BindParameter[str], *holder: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    return sa.and_(trial_table.c.run == run, trial_table.c.score.is_(None), *holder)


_OF_RUN: sa.BindParameter[str] = sa.bindparam("b_run")
_OF_SHARD: sa.BindParameter[int] = sa.bindparam("b_shard")
_PAIR = (trial_table.c.agent, trial_table.c.task)
# What every client executes every few seconds is built once: building a statement costs more than executing it.
_FREE = sa.select(*_PAIR, sa.func.count()).where(_pending(_OF_RUN, trial_table.c.holder == FREE)).group_by(*_PAIR)
_PAIRS_PENDING = sa.select(*_PAIR).where(_pending(_OF_RUN, trial_table.c.holder != SETTLED)).distinct()
_HELD = sa.select(*_COLUMNS).where(_pending(_OF_RUN, trial_table.c.holder == _OF_SHARD))
_UNSCORED = sa.and_(trial_table.c.score.is_(None), trial_table.c.holder == SETTLED)
_COUNTS = (sa.func.count(trial_table.c.score), sa.func.sum(trial_table.c.score))
_PAIR_COUNTS = (
    sa.select(*_PAIR, *_COUNTS, sa.func.sum(sa.case((_UNSCORED, 1), else_=0)))
    .where(trial_table.c.run == _OF_RUN)
    .group_by(*_PAIR)
)


def batch(room: int, free: int, shards: int) -> int:
    """How many trials of a pair a shard should hold unbegun: twice what it can play at once, fewer towards the end.

    `room` is how many trials the shard may play at once, `free` how many no shard holds.
    """
    return min(2 * room, -(-free // (2 * shards)))


def free(engine: sa.Engine, run: str) -> dict[Pair, int]:
    """(agent, task) -> number of unclaimed trials; pairs without any are left out."""
    with engine.connect() as connection:
        return {(agent, task): int(count) for agent, task, count in connection.execute(_FREE, {"b_run": run})}


def pairs_pending(engine: sa.Engine, run: str) -> set[tuple[str, str]]:
    """The pairs with trials still to be played since the run's last start or resume: free, or held by any shard."""
    with engine.connect() as connection:
        return {(agent, task) for agent, task in connection.execute(_PAIRS_PENDING, {"b_run": run})}


def held(engine: sa.Engine, run: str, shard: int) -> list[Trial]:
    """The trials without a final row that a shard holds, in the run's order. Raises Fenced."""
    with engine.begin() as connection:
        hold_live(connection, run, shard)
        rows = connection.execute(_HELD, {"b_run": run, "b_shard": shard})
        return sorted((Trial.model_construct(**row._mapping) for row in rows), key=lambda trial: trial.id)


def pair_counts(engine: sa.Engine, run: str) -> dict[Pair, tuple[int, float, int]]:
    """(agent, task) -> (scored trials, sum of their scores, trials left unscored since the last start or resume)."""
    with engine.connect() as connection:
        return {
            (a, b): (int(scored), float(total or 0), int(left))
            for a, b, scored, total, left in connection.execute(_PAIR_COUNTS, {"b_run": run})
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


KINDS = BEGUN, NEW, REJECTED = "begun", "new", "rejected"
"""Trials with attempts, those without, and those whose agent's endpoint failed: in the order they are played in."""


class _Part(NamedTuple):
    """What is left to read of a pair's trials of one kind: ids above `after`, up to `last`."""

    kind: str
    after: int
    last: int


class Unread:
    """The free trials of a run that a client which plays it alone has not read yet."""

    def __init__(self, engine: sa.Engine, run: str) -> None:
        self._engine, self._run = engine, run
        self._parts: dict[Pair, list[_Part]] = {}

    def count(self) -> dict[Pair, int]:
        """(agent, task) -> number of free trials; first pairs with trials that have attempts, then in the run's order.

        To be called once, before anything is read or played.
        """
        t = trial_table.c
        counts = (sa.func.count().label("free"), (sa.func.max(t.attempts) > 0).label("begun"))
        ids = (sa.func.min(t.id).label("first"), sa.func.max(t.id).label("last"))
        query = sa.select(t.agent, t.task, *counts, *ids).where(_pending(self._run, t.holder == FREE))
        with self._engine.connect() as connection:
            rows = connection.execute(query.group_by(t.agent, t.task)).all()
        rows = sorted(rows, key=lambda row: (not row.begun, row.first))
        for row in rows:
            kinds = KINDS if row.begun else (NEW,)
            self._parts[row.agent, row.task] = [_Part(kind, row.first - 1, row.last) for kind in kinds]
        return {(row.agent, row.task): int(row.free) for row in rows}

    def read(self, wanted: Mapping[Pair, int]) -> list[Trial]:
        """Up to the wanted number of trials of each pair, each trial once: by kind, then by id.

        A read that raises has read nothing.
        """
        found: list[tuple[int, Trial]] = []
        parts = {pair: list(self._parts[pair]) for pair in wanted}
        with self._engine.connect() as connection:
            for pair, count in wanted.items():
                found += self._next(connection, pair, parts[pair], count)
        self._parts |= parts
        return [trial for _, trial in sorted(found, key=lambda each: (each[0], each[1].id))]

    def _next(self, connection: sa.Connection, pair: Pair, parts: list[_Part], count: int) -> list[tuple[int, Trial]]:
        """Up to so many trials of a pair, with the places of their kinds; what is left of its parts stays there."""
        found: list[tuple[int, Trial]] = []
        while parts and len(found) < count:
            part, left = parts.pop(0), count - len(found)
            values = {"b_run": self._run, "agent": pair[0], "task": pair[1], "after": part.after, "last": part.last}
            rows = connection.execute(_reading(part.kind), {**values, "most": left}).all()
            found += [(KINDS.index(part.kind), Trial.model_construct(**row._mapping)) for row in rows]
            if len(rows) == left:
                parts.insert(0, part._replace(after=rows[-1].id))
        return found


@cache
def _reading(kind: str) -> sa.Executable:
    t = trial_table.c
    failed = sa.func.coalesce(t.reason, "") == FinishReason.AGENT_ERROR.value
    of_kind = {BEGUN: sa.and_(t.attempts > 0, sa.not_(failed)), NEW: t.attempts == 0, REJECTED: failed}
    free = _pending(_OF_RUN, t.holder == FREE, of_kind[kind])
    # `coalesce` keeps SQLite from its index by agent and task, which would sort all trials of the pair each time.
    agent, task = (sa.func.coalesce(column, "") == sa.bindparam(column.name) for column in (t.agent, t.task))
    rows = sa.select(*_COLUMNS).where(free, agent, task, t.id > sa.bindparam("after"), t.id <= sa.bindparam("last"))
    return rows.order_by(t.id).limit(sa.bindparam("most"))


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
