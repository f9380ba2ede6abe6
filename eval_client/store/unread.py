"""The trials of a run that its client has not read yet, which it takes in batches."""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import sqlalchemy as sa

from eval_client.core.flow import Pair
from eval_client.store.records import Trial
from eval_client.store.tables import FREE, trial_table
from proctor.types import FinishReason

_COLUMNS = [trial_table.c[name] for name in Trial.model_fields]


def _free(run: str | sa.BindParameter[str], *more: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """The trials of a run that are to be played."""
    return sa.and_(trial_table.c.run == run, trial_table.c.score.is_(None), trial_table.c.holder == FREE, *more)


KINDS = BEGUN, NEW, REJECTED = "begun", "new", "rejected"
"""Trials with attempts, those without, and those whose agent's endpoint failed: in the order they are played in."""


class _Part(NamedTuple):
    """What is left to read of a pair's trials of one kind: ids above `after`, up to `last`."""

    kind: str
    after: int
    last: int


class Unread:
    """The trials of a run that are to be played and were not read yet."""

    def __init__(self, engine: sa.Engine, run: str) -> None:
        self._engine, self._run = engine, run
        self._parts: dict[Pair, list[_Part]] = {}

    def count(self) -> dict[Pair, int]:
        """(agent, task) -> number of trials to be played; pairs with trials that have attempts first, then by the ids.

        To be called once, before anything is read or played.
        """
        t = trial_table.c
        counts = (sa.func.count().label("free"), (sa.func.max(t.attempts) > 0).label("begun"))
        ids = (sa.func.min(t.id).label("first"), sa.func.max(t.id).label("last"))
        query = sa.select(t.agent, t.task, *counts, *ids).where(_free(self._run))
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
    free = _free(sa.bindparam("b_run"), of_kind[kind])
    # `coalesce` keeps SQLite from its index by agent and task, which would sort all trials of the pair each time.
    agent, task = (sa.func.coalesce(column, "") == sa.bindparam(column.name) for column in (t.agent, t.task))
    rows = sa.select(*_COLUMNS).where(free, agent, task, t.id > sa.bindparam("after"), t.id <= sa.bindparam("last"))
    return rows.order_by(t.id).limit(sa.bindparam("most"))
