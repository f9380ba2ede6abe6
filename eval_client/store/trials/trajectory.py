"""Reads one trial of a run: its row, its attempts, and the turns of one of its journals."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import sqlalchemy as sa
from pydantic import Field

from eval_client.store.connection import StoreError
from eval_client.store.migration import existing_columns
from eval_client.store.records import Turn, answers, turn_of
from eval_client.store.store import Store
from eval_client.store.tables import attempt_table, trial_table, turn_table
from eval_client.store.values import parsed
from proctor.types import Finish, Value

BATCH = 20
"""Trials that are read at once: few enough for memory, enough to spare queries."""
SHOWN_NAMES = 10
"""Names of agents, tasks or samples in an error."""


class AttemptRecord(Value):
    """One attempt at a trial. `outcome` is None while it is under way, and for ever where its client was killed."""

    number: int
    journal: int
    """The journal that the attempt replayed and went on with."""
    outcome: str | None
    cause: str | None
    worker: str | None
    started_at: str
    finish: Finish | None = None
    """The trial's earlier result, where `proctor resume --retry` took it from the trial."""
    ended_at: str | None = None
    """None where `outcome` is, and in runs of schema 2."""


class Trajectory(Value):
    """All that is stored about a trial."""

    run: str
    trial: int
    agent: str
    task: str
    sample: str
    epoch: int
    finish: Finish | None
    """None while the trial is not over."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    seconds: float = 0.0
    """While it was played, over all attempts that count."""
    ended_at: str | None = None
    """None while the trial is not over, and in runs of schema 2."""
    attempts: tuple[AttemptRecord, ...]
    journal: int
    """The number of the journal that `turns` are from."""
    journals: tuple[int, ...]
    """All journals with turns; a new one begins where a replay diverged, or a trial with a score was retried."""
    turns: tuple[Turn, ...] = Field(repr=False)

    @property
    def answers(self) -> int:
        """How many of the turns the agent answered."""
        return answers(self.turns)


def find_trial(store: Store, agent: str, task: str, sample: str, epoch: int) -> int:
    """The id of a trial. Raises StoreError, naming what there is, where the run has no such trial."""
    t, found = trial_table.c, sa.and_(trial_table.c.run == store.run)
    with store.engine.connect() as connection:
        for column, value in ((t.agent, agent), (t.task, task), (t.sample, sample), (t.epoch, epoch)):
            query = sa.select(column).where(found).group_by(column).order_by(sa.func.min(t.id))
            held = list(connection.execute(query).scalars())
            if value not in held:
                raise StoreError(f"run {store.run!r} has no {column.name} {value!r}; there are: {_some(held)}")
            found = sa.and_(found, column == value)
        return int(connection.execute(sa.select(t.id).where(found)).scalar_one())


def trial_to_read(store: Store) -> int | None:
    """The id of a trial worth reading: of those with the lowest score the one with the most turns; None without any."""
    t = trial_table.c
    query = sa.select(t.id).where(t.run == store.run, t.score.is_not(None), t.turns > 0)
    with store.engine.connect() as connection:
        return connection.execute(query.order_by(t.score, t.turns.desc(), t.id).limit(1)).scalar()


def read_trajectory(store: Store, trial: int, journal: int | None = None) -> Trajectory:
    """A trial with the turns of a journal, the newest one by default. Raises StoreError where there is none."""
    t, a, u = trial_table.c, attempt_table.c, turn_table.c
    mine = sa.and_(u.run == store.run, u.trial == trial)
    there = existing_columns(store.engine, attempt_table)
    attempts = [column for column in there if column.name in AttemptRecord.model_fields]
    whole, told = (existing_columns(store.engine, table) for table in (trial_table, turn_table))
    told = [column for column in told if column.name in Turn.model_fields]
    names = [column.name for column in told]
    with store.engine.connect() as connection:
        row = connection.execute(sa.select(*whole).where(t.run == store.run, t.id == trial)).mappings().first()
        if row is None:
            count = connection.execute(sa.select(sa.func.count()).where(t.run == store.run)).scalar_one()
            raise StoreError(f"run {store.run!r} has no trial {trial}; its trials are 0 to {count - 1}")
        tries = connection.execute(sa.select(*attempts).where(a.run == store.run, a.trial == trial).order_by(a.number))
        records = tuple(_attempt(dict(each._mapping)) for each in tries)
        journals = tuple(connection.execute(sa.select(u.journal).where(mine).distinct().order_by(u.journal)).scalars())
        chosen = journal if journal is not None else max(journals, default=0)
        if journal is not None and journal not in journals:
            raise StoreError(f"trial {trial} has no journal {journal}; it has: {_some(journals)}")
        rows = connection.execute(sa.select(*told).where(mine, u.journal == chosen).order_by(u.turn))
        turns = tuple(turn_of(dict(zip(names, row, strict=True))) for row in rows)
    return _trajectory(row, records, chosen, journals, turns)


def read_trajectories(store: Store, agent: str, task: str) -> Iterator[Trajectory]:
    """The trials of a pair that are over, in the run's order, each with the journal of its newest attempt.

    BATCH are in memory at once.
    """
    t = trial_table.c
    mine = (t.run == store.run, t.agent == agent, t.task == task, t.reason.is_not(None))
    with store.engine.connect() as connection:
        ids = list(connection.execute(sa.select(t.id).where(*mine).order_by(t.id)).scalars())
    for start in range(0, len(ids), BATCH):
        yield from _read_batch(store, ids[start : start + BATCH])


def _read_batch(store: Store, ids: Sequence[int]) -> list[Trajectory]:
    """Whole trials, in the order of their ids."""
    t, a, u = trial_table.c, attempt_table.c, turn_table.c
    newest = sa.select(sa.func.max(a.journal)).where(a.run == u.run, a.trial == u.trial)
    columns, tried, told = (existing_columns(store.engine, table) for table in (trial_table, attempt_table, turn_table))
    turns: dict[int, list[Turn]] = defaultdict(list)
    attempts: dict[int, list[AttemptRecord]] = defaultdict(list)
    with store.engine.connect() as connection:
        query = sa.select(*told).where(u.run == store.run, u.trial.in_(ids), u.journal == newest.scalar_subquery())
        for row in connection.execute(query.order_by(u.trial, u.turn)).mappings():
            turns[row["trial"]].append(turn_of({name: row[name] for name in row if name in Turn.model_fields}))
        query = sa.select(*tried).where(a.run == store.run, a.trial.in_(ids)).order_by(a.trial, a.number)
        for row in connection.execute(query).mappings():
            known = {name: row[name] for name in row if name in AttemptRecord.model_fields}
            attempts[row["trial"]].append(_attempt(known))
        rows = connection.execute(sa.select(*columns).where(t.run == store.run, t.id.in_(ids)).order_by(t.id))
        return [
            _trajectory(row, tries, max((each.journal for each in tries), default=0), (), turns[row["id"]])
            for row in rows.mappings()
            for tries in (attempts[row["id"]],)
        ]


def _trajectory(
    row: sa.RowMapping,
    attempts: Sequence[AttemptRecord],
    journal: int,
    journals: Sequence[int],
    turns: Sequence[Turn],
) -> Trajectory:
    counts = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens", "seconds")
    return Trajectory(
        run=row["run"],
        trial=row["id"],
        finish=None if row["finish"] is None else parsed(trial_table.c.finish, Finish.kept, row["finish"]),
        attempts=tuple(attempts),
        journal=journal,
        journals=tuple(journals),
        turns=tuple(turns),
        ended_at=row.get("ended_at"),
        **{name: row[name] for name in ("agent", "task", "sample", "epoch")},
        **{name: row.get(name) or 0 for name in counts},
    )


def _attempt(row: dict[str, object]) -> AttemptRecord:
    finish = row.get("finish")
    read = None if finish is None else parsed(attempt_table.c.finish, Finish.kept, finish)
    return AttemptRecord.model_validate({**row, "finish": read})


def _some(names: Sequence[object]) -> str:
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return (", ".join(map(str, names[:SHOWN_NAMES])) or "none") + more
