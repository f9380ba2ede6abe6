"""The trials that a plan has: with their ids, and as rows of a new run."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

import sqlalchemy as sa

from eval_client.core import Pair
from eval_client.plan.plan import Plan
from eval_client.store.records import Trial
from eval_client.store.tables import trial_table

ROWS_AT_ONCE = 2_000
"""Trials that are read or written by one statement."""


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
