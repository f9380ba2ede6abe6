"""The trials that a plan has: with their ids, as rows of a new run, and those that are left to play."""

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import sqlalchemy as sa

from eval_client.core import Pair
from eval_client.plan.plan import Plan
from eval_client.store.records import Trial
from eval_client.store.tables import FREE, trial_table
from proctor.types import FinishReason

ROWS_AT_ONCE = 2_000
"""Trials that are read or written by one statement."""
BEGUN, NEW, REJECTED = range(3)
"""Trials with attempts, those without, and those whose agent's endpoint failed: in the order they are played in."""


class PlannedTrials:
    """The trials of a new run, in the order of their ids: by pair, then epoch, then sample; made one by one."""

    def __init__(
        self,
        plan: Plan,
        samples: Mapping[str, Mapping[str, str]],
        plays: Callable[[str, str], bool] = lambda task, sample: True,
    ) -> None:
        """`samples` has the cluster of each by task and sample. Trials have the same ids whichever of them it plays."""
        self._epochs, self._samples, self._plays = plan.epochs, samples, plays
        self._ids: dict[Pair, range] = {}
        first = 0
        for agent, task in plan.pairs():
            self._ids[agent, task] = range(first, first + plan.epochs * len(samples[task]))
            first = self._ids[agent, task].stop

    def __iter__(self) -> Iterator[Trial]:
        for pair in self._ids:
            yield from self._of_pair(pair)

    def beyond(self, there: Mapping[Pair, Mapping[str, int]], first: int) -> Iterator[Trial]:
        """Those that a run does not have, numbered from `first`; `there` has how many epochs of each sample it has."""
        has = {pair: there.get(pair, {}) for pair in self._ids}
        missing = (t for t in self if t.epoch >= has[t.agent, t.task].get(t.sample, 0))
        for number, trial in enumerate(missing, first):
            yield trial.model_copy(update={"id": number})

    def insert(self, connection: sa.Connection, run: str) -> None:
        """Insert the trials of the first agent of each task, and copy them in the database for the other agents."""
        first: dict[str, range] = {}
        for pair, ids in self._ids.items():
            if (source := first.setdefault(pair[1], ids)) is ids:
                insert_trials(connection, run, self._of_pair(pair))
            else:
                connection.execute(_copied(run, source, pair[0], ids.start))

    def _of_pair(self, pair: Pair) -> Iterator[Trial]:
        agent, task = pair
        keys = ((epoch, each) for epoch in range(self._epochs) for each in self._samples[task].items())
        for number, (epoch, (sample, cluster)) in zip(self._ids[pair], keys, strict=True):
            if self._plays(task, sample):
                yield Trial(id=number, agent=agent, task=task, sample=sample, epoch=epoch, cluster=cluster)


def insert_trials(connection: sa.Connection, run: str, trials: Iterable[Trial]) -> None:
    """Insert trials.

    In PostgreSQL they are given as one JSON text, since its driver would send and execute every row by itself.
    """
    planned, columns = iter(trials), [sa.column(name, trial_table.c[name].type) for name in Trial.model_fields]
    text = sa.cast(sa.bindparam("trials", type_=sa.Text), sa.JSON)
    rows = sa.func.json_to_recordset(text).table_valued(*columns).render_derived(with_types=True)
    of_json = trial_table.insert().from_select(["run", *Trial.model_fields], sa.select(sa.literal(run), *rows.c))
    while batch := list(islice(planned, ROWS_AT_ONCE)):
        if connection.dialect.name == "postgresql":
            connection.execute(of_json, {"trials": f"[{','.join(trial.model_dump_json() for trial in batch)}]"})
        else:
            connection.execute(trial_table.insert(), [{"run": run, **vars(trial)} for trial in batch])


def _copied(run: str, source: range, agent: str, first: int) -> sa.Insert:
    """The trials of some ids once more, for another agent and with ids from `first` on."""
    t = trial_table.c
    same = (t.run, t.task, t.sample, t.epoch, t.attempts, t.cluster)
    changed = (t.id + (first - source.start)).label("id"), sa.literal(agent).label("agent")
    rows = sa.select(*same, *changed).where(t.run == run, t.id >= source.start, t.id < source.stop)
    return trial_table.insert().from_select([column.name for column in (*same, *changed)], rows)


def numbered(run: str, ids: Sequence[int]) -> sa.ColumnElement[bool]:
    """The trials of a run with these numbers, which ascend.

    By the numbers alone PostgreSQL finds nothing in its index, and reads the whole run. They stand in the statement:
    as values of it they would cost its driver more than the database.
    """
    t = trial_table.c
    written: sa.ColumnElement[object] = sa.literal_column(f"({', '.join(map(str, ids))})")
    return sa.and_(t.run == run, t.id.between(ids[0], ids[-1]), t.id.bool_op("IN")(written))


class Unread:
    """The trials of a run that are to be played and that its client has not read yet, which it takes in batches."""

    def __init__(self, engine: sa.Engine, run: str) -> None:
        self._engine, self._run = engine, run
        self._ids: dict[Pair, list[array[int]]] = defaultdict(lambda: [array("i") for _ in (BEGUN, NEW, REJECTED)])
        """pair -> the ids of its trials, in their order, by BEGUN, NEW, REJECTED"""

    def count(self) -> dict[Pair, int]:
        """(agent, task) -> number of trials to be played; pairs with trials that have attempts first, then by the ids.

        To be called once, before anything is read or played.
        """
        t = trial_table.c
        failed = sa.func.coalesce(t.reason, "") == FinishReason.AGENT_ERROR.value
        kind = sa.case((failed, REJECTED), (t.attempts > 0, BEGUN), else_=NEW)
        query = sa.select(t.agent, t.task, t.id, kind)
        query = query.where(t.run == self._run, t.score.is_(None), t.holder == FREE)
        self._ids.clear()
        with self._engine.connect() as connection:
            for agent, task, number, kind_of in connection.execution_options(stream_results=True).execute(query):
                self._ids[agent, task][kind_of].append(number)
        for pair, kinds in self._ids.items():  # here, since for the order SQLite would read whole rows
            self._ids[pair] = [array("i", sorted(ids)) for ids in kinds]
        begun_first = sorted(self._ids.items(), key=lambda each: (not each[1][BEGUN], min(filter(None, each[1]))[0]))
        return {pair: sum(map(len, kinds)) for pair, kinds in begun_first}

    def read(self, wanted: Mapping[Pair, int]) -> list[Trial]:
        """Up to the wanted trials of each pair, each once: by kind, then by id. A read that raises has read nothing."""
        taken = {pair: self._taken(pair, count) for pair, count in wanted.items()}
        kinds = [[number for each in taken.values() for number in each[kind]] for kind in (BEGUN, NEW, REJECTED)]
        ids, found = sorted(number for kind in kinds for number in kind), dict[int, Trial]()
        with self._engine.connect() as connection:
            for start in range(0, len(ids), ROWS_AT_ONCE):
                some = numbered(self._run, ids[start : start + ROWS_AT_ONCE])
                rows = connection.execute(sa.select(*(trial_table.c[name] for name in Trial.model_fields)).where(some))
                found |= {row.id: Trial.model_construct(**row._mapping) for row in rows}
        for pair, numbers in taken.items():
            for kind, each in enumerate(numbers):
                del self._ids[pair][kind][: len(each)]
        return [found[number] for kind in kinds for number in sorted(kind)]

    def _taken(self, pair: Pair, count: int) -> "list[array[int]]":
        """The ids of the next trials of a pair, by kind."""
        taken = []
        for left in self._ids[pair]:
            taken.append(left[:count])
            count -= len(taken[-1])
        return taken
