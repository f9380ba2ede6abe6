"""What a run has found, read from its rows: totals, costs, finishes, and all rows for exports.

No query about scores reads transcripts.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from pydantic import JsonValue
from pydantic_core import from_json

from eval_client.core import Pair
from eval_client.core.progress import grouped_causes
from eval_client.store.migration import existing_columns, stored
from eval_client.store.records import HelperCost, JournalledTools, Manifest, PairTotals, ReplicaCost, record
from eval_client.store.tables import (
    attempt_table,
    call_table,
    reply_table,
    run_table,
    summary_table,
    trial_table,
    turn_table,
)
from eval_client.store.values import Number, json_object, json_of, parsed
from proctor.types import JUDGEMENTS, NO_USAGE, Finish, FinishReason, Judgements, Summary, Usage
from task_server.wire.messages import cluster_numbers

FIRST = 20
"""So many scored trials show whether a controller's task has several judges."""
_TRIAL_KEYS = [trial_table.c[name] for name in ("agent", "task", "sample", "epoch")]
_SUMMED = ("score", "turns", *Usage._fields, "seconds", "cut_answers")
_FRACTIONS = ("score", "seconds", "billed_money")


class SampleMeans(NamedTuple):
    """The mean score of each sample of a pair that has a scored epoch."""

    means: list[float]
    clusters: list[str]
    """The cluster of each sample; empty where each is its own."""
    counts: list[tuple[int, int]]
    """(scored epochs, those with a score of 1) of each sample; empty where each has one epoch and its own cluster."""

    def plain(self) -> "SampleMeans":
        """Without clusters and counts where they tell nothing."""
        tied = len(set(self.clusters)) < len(self.clusters) or any(count > 1 for count, _ in self.counts)
        return self if tied else SampleMeans(self.means, [], [])


class Results:
    """Reads the results of one run, finished or not."""

    def __init__(self, engine: sa.Engine, run: str) -> None:
        self.engine = engine
        self.run = run

    def table(self, table: sa.Table) -> sa.FromClause:
        """A table to read as this store has it: NULL stands for columns that an earlier schema lacks."""
        return stored(self.engine, table)

    def places(self, task: str) -> dict[str, int]:
        """sample -> its place in the task's order; empty where the trials are in that order."""
        with self.engine.connect() as connection:
            text = connection.execute(sa.select(run_table.c.manifest).where(run_table.c.id == self.run)).scalar()
        manifest = parsed(run_table.c.manifest, Manifest.model_validate_json, text)
        return {sample: place for place, sample in enumerate(manifest.order.get(task, ()))}

    def spent(self, totals: Iterable[PairTotals]) -> dict[str, Usage]:
        """agent -> tokens paid so far: by final rows, as in the `totals` of all pairs, and by unfinished trials."""
        paid = [(pair.agent, pair.tokens()) for pair in totals if pair.reasons]
        spent: dict[str, Usage] = {}
        for agent, tokens in [*paid, *((agent, tokens) for (agent, _), tokens in self.spent_on_open().items())]:
            spent[agent] = spent.get(agent, NO_USAGE).plus(tokens)
        return spent

    def spent_on_open(self) -> dict[Pair, Usage]:
        """(agent, task) -> tokens paid for trials that have no final row, where there are some."""
        spent: dict[Pair, Usage] = {}
        t, turns, calls = self.table(trial_table), self.table(turn_table), self.table(call_table)
        ended = turns.alias("ended")
        unended = ~sa.exists().where(*(ended.c[name] == calls.c[name] for name in ("run", "trial", "journal", "turn")))
        for rows, counted in ((turns, sa.true()), (calls, unended)):
            sums = [  # one row per trial, by subqueries: for a join SQLite would scan every turn of the run
                sa.select(total.element).where(_same(t, rows), counted).correlate(t).scalar_subquery().label(total.name)
                for total in token_sums(rows)
            ]
            query = sa.select(t.c.agent, t.c.task, *sums)
            mine = (t.c.run == self.run, t.c.reason.is_(None), t.c.attempts > 0)
            for row in self.streamed(query.where(*mine)):
                pair, tokens = (row["agent"], row["task"]), tokens_of(row)
                if tokens != NO_USAGE:
                    spent[pair] = spent.get(pair, NO_USAGE).plus(tokens)
        return spent

    def helper_costs(self) -> list[HelperCost]:
        """Costs of models on the environment's side, by pair and model, in no order; empty for an older store."""
        t, replies = self.table(trial_table), self.table(reply_table)
        keys = (t.c.agent, t.c.task, replies.c.model)
        columns = (*keys, sa.func.sum(Number(replies.c.tries)).label("calls"), *token_sums(replies))
        query = sa.select(*columns).join_from(replies, t, _same(t, replies)).group_by(*keys)
        query = query.where(replies.c.run == self.run, replies.c.bought)
        return [record(HelperCost, row, tokens=tokens_of(row)) for row in self.streamed(query)]

    def replica_costs(self) -> list[ReplicaCost]:
        """What each server of an endpoint that has several answered, by agent and URL; empty for an older store."""
        t, turns, calls = self.table(trial_table), self.table(turn_table), self.table(call_table)
        made = sa.exists().where(*(calls.c[name] == turns.c[name] for name in ("run", "trial", "journal", "turn")))
        figures = ("prompt_tokens", "cached_tokens", "completion_tokens", "model_seconds")
        asked = []
        for rows, own in ((turns, ~made), (calls, sa.true())):  # a turn with calls has their sum
            told = sa.select(*(rows.c[name] for name in ("run", "trial", "replica", *figures)))
            asked.append(told.where(rows.c.run == self.run, rows.c.replica.is_not(None), own))
        each = sa.union_all(*asked).subquery()
        keys = (t.c.agent, each.c.replica)
        sums = (sa.func.sum(Number(each.c[name])).label(name.replace("model_", "")) for name in figures)
        query = sa.select(*keys, sa.func.count().label("calls"), *sums).join_from(each, t, _same(t, each))
        costs = (record(ReplicaCost, row) for row in self.streamed(query.group_by(*keys)))
        return sorted(costs, key=lambda cost: (cost.agent, cost.replica))

    def pair_totals(self) -> list[PairTotals]:
        """The progress of every pair, in the order of the run's plan."""
        t = self.table(trial_table).c
        sums = (sa.func.sum(Number(t[name])).label(name) for name in _SUMMED)
        counts = [sa.func.count().label("planned"), sa.func.count(t.score).label("scored")]
        counts += [sa.func.count(t.cut_answers).label("told_cuts"), sa.func.min(t.id).label("first")]
        counts += [sa.func.max(t.epoch).label("last_epoch")]
        keys = (t.agent, t.task, t.reason)
        query = sa.select(*keys, *counts, *sums)
        query = query.where(t.run == self.run).group_by(*keys)
        groups: dict[Pair, list[sa.RowMapping]] = {}
        with self.engine.connect() as connection:
            rows = connection.execute(query).mappings().all()
            for row in sorted(rows, key=lambda row: int(row["first"])):
                groups.setdefault((row["agent"], row["task"]), []).append(row)
            repeated = any(row["last_epoch"] for row in rows)
            means = self._means_of_samples(connection) if repeated else {}
        return [_pair_totals(pair, rows, means.get(pair)) for pair, rows in groups.items()]

    def _means_of_samples(self, connection: sa.Connection) -> dict[Pair, float]:
        """(agent, task) -> the mean over samples of the mean over their scored epochs."""
        t = trial_table.c
        of_sample = sa.select(t.agent, t.task, _mean(t.score).label("mean")).where(t.run == self.run)
        sample = of_sample.where(t.score.is_not(None)).group_by(t.agent, t.task, t.sample).subquery().c
        query = sa.select(sample.agent, sample.task, sa.func.avg(sample.mean)).group_by(sample.agent, sample.task)
        return {(agent, task): float(mean) for agent, task, mean in connection.execute(query)}

    def finishes(self, agent: str, task: str) -> Iterator[tuple[str, int, Finish]]:
        """(sample, epoch, finish) of the pair's final rows, faults included: by epoch, then in the task's order."""
        t, places = trial_table.c, self.places(task)
        query = sa.select(t.sample, t.epoch, t.finish).where(t.run == self.run, t.agent == agent, t.task == task)
        with self.engine.connect() as connection:
            rows: Iterable[Any] = connection.execute(query.where(t.finish.is_not(None)).order_by(t.id))
            for sample, epoch, finish in sorted(rows, key=lambda row: (row[1], places[row[0]])) if places else rows:
                yield sample, epoch, parsed(t.finish, Finish.kept, finish)

    def judgements(self, manifest: Manifest, agent: str, task: str) -> Iterator[Judgements]:
        """What several judges said in the pair's scored trials; none where the task has one judge or none.

        Of a controller's task the parameters are not known: its first FIRST scored trials decide.
        """
        parameters = manifest.parameters(task)
        if parameters is not None and not parameters.get("judges"):
            return
        found, scored = False, (finish for _, _, finish in self.finishes(agent, task) if finish.score is not None)
        for number, finish in enumerate(scored):
            if (told := finish.detail.get(JUDGEMENTS)) is not None:
                found = True
                yield parsed(trial_table.c.finish, Judgements.model_validate, told)
            elif parameters is None and not found and number == FIRST:
                return

    def clustered_finishes(self, agent: str, task: str) -> tuple[list[Finish], list[int], list[int]]:
        """The pair's final rows, and the numbers of the cluster and the sample of each, as summaries take them.

        Without numbers of samples where all have as many scored epochs: then each counts once anyhow.
        """
        rows, cluster_of = list(self.finishes(agent, task)), self.cluster_of(task)
        samples = [sample for sample, _, _ in rows]
        scored = Counter(sample for sample, _, finish in rows if finish.score is not None)
        uneven = cluster_numbers(samples) if len(set(scored.values())) > 1 else []
        return (
            [finish.for_world() for _, _, finish in rows],
            cluster_numbers(map(cluster_of.__getitem__, samples)),
            uneven,
        )

    def sample_means(self) -> dict[Pair, SampleMeans]:
        """(agent, task) -> the means of its samples, where it has a scored trial."""
        t = self.table(trial_table).c
        passed = sa.func.sum(sa.case((t.score >= 1, 1), else_=0))
        query = sa.select(t.agent, t.task, t.sample, _mean(t.score), sa.func.max(t.cluster), sa.func.count(), passed)
        query = query.where(t.run == self.run, t.score.is_not(None)).group_by(t.agent, t.task, t.sample)
        found: dict[Pair, SampleMeans] = {}
        with self.engine.connect() as connection:
            for agent, task, sample, mean, cluster, count, passes in connection.execute(query):
                pair = found.setdefault((agent, task), SampleMeans([], [], []))
                pair.means.append(float(mean))
                pair.clusters.append(str(cluster or sample))
                pair.counts.append((int(count), int(passes)))
        return {pair: means.plain() for pair, means in found.items()}

    def cluster_of(self, task: str) -> dict[str, str]:
        """sample -> its cluster; in a run of schema 2, which has no clusters, each sample is its own."""
        t = self.table(trial_table).c
        query = sa.select(t.sample, sa.func.max(t.cluster)).group_by(t.sample)
        with self.engine.connect() as connection:
            rows = connection.execute(query.where(t.run == self.run, t.task == task))
            return {str(sample): str(cluster or sample) for sample, cluster in rows}

    def causes(self) -> dict[Pair, dict[str, int]]:
        """(agent, task) -> cause -> number of the pair's faults, where it has any."""
        t = trial_table.c
        query = (
            sa.select(t.agent, t.task, t.cause, sa.func.count())
            .where(t.run == self.run, t.cause.is_not(None), t.reason != FinishReason.REFUSED.value)
            .group_by(t.agent, t.task, t.cause)
            .order_by(sa.func.min(t.id))
        )
        found: dict[Pair, list[tuple[str, int]]] = {}
        with self.engine.connect() as connection:
            for agent, task, cause, count in connection.execute(query):
                found.setdefault((agent, task), []).append((str(cause), int(count)))
        return {pair: grouped_causes(causes) for pair, causes in found.items()}

    def attempts_with(self, outcome: str) -> dict[Pair, tuple[int, int]]:
        """(agent, task) -> how many of the pair's attempts have an outcome, and in how many trials."""
        t, a = trial_table, attempt_table.c
        counts = sa.func.count(), sa.func.count(sa.distinct(a.trial))
        query = sa.select(t.c.agent, t.c.task, *counts).join_from(t, attempt_table, _same(t, attempt_table))
        query = query.where(a.run == self.run, a.outcome == outcome).group_by(t.c.agent, t.c.task)
        with self.engine.connect() as connection:
            return {(agent, task): (int(n), int(of)) for agent, task, n, of in connection.execute(query)}

    def summaries(self) -> dict[Pair, tuple[int, Summary]]:
        """(agent, task) -> (number of scored trials behind the summary, summary)."""
        s = summary_table.c
        with self.engine.connect() as connection:
            rows = connection.execute(sa.select(s.agent, s.task, s.scored, s.summary).where(s.run == self.run))
            return {
                (a, t): (scored, parsed(s.summary, Summary.model_validate_json, text)) for a, t, scored, text in rows
            }

    def trial_rows(self, *names: str) -> Iterator[dict[str, JsonValue]]:
        """All trials as plain data, in the run's order; with `names` only these columns."""
        t, there = trial_table.c, existing_columns(self.engine, trial_table)
        columns = (column for column in there if (column.name in names if names else column.name != "holder"))
        for fields in self.streamed(sa.select(*columns).where(t.run == self.run).order_by(t.id)):
            if fields.get("finish"):
                fields["finish"] = parsed(t.finish, from_json, fields["finish"])
            yield fields

    def turn_rows(self) -> Iterator[dict[str, JsonValue]]:
        """All turns of every trial's newest journal as plain data, in the run's order.

        `stop` is the reason of a turn where the client stopped; the endpoint's is `finish_reason`.
        """
        u, newer = turn_table.c, turn_table.alias().c
        newest = sa.select(sa.func.max(newer.journal)).where(newer.run == u.run, newer.trial == u.trial)
        query = sa.select(*_TRIAL_KEYS, *existing_columns(self.engine, turn_table))
        query = query.join_from(turn_table, trial_table, _same(trial_table, turn_table))
        query = query.where(u.run == self.run, u.journal == newest.scalar_subquery()).order_by(u.trial, u.turn)
        trial, tools = None, JournalledTools()
        for fields in self.streamed(query):
            reply = parsed(u.reply, json_object, fields.pop("reply"))
            if fields["trial"] != trial:
                trial, tools = fields["trial"], JournalledTools()
            fields["observation"] = parsed(u.observation, tools.whole, fields["observation"])
            if "stop" in fields:
                fields["finish_reason"] = fields.pop("stop")
            yield {**fields, "action": reply.get("action"), "stop": reply.get("reason")}

    def reply_rows(self) -> Iterator[dict[str, JsonValue]]:
        """All replies of judges, hosts and users as plain data, in the run's order; none in an older store."""
        replies = self.table(reply_table)
        query = sa.select(*_TRIAL_KEYS, *replies.c).join_from(replies, trial_table, _same(trial_table, replies))
        query = query.where(replies.c.run == self.run).order_by(replies.c.trial, replies.c.number)
        for fields in self.streamed(query):
            yield {**fields, "text": parsed(reply_table.c.text, json_of, fields["text"])}

    def streamed(self, query: sa.Select[Any]) -> Iterator[dict[str, Any]]:
        """The rows of a query, of which few are in memory at once."""
        with self.engine.connect() as connection:
            for row in connection.execution_options(stream_results=True).execute(query):
                yield dict(row._mapping)


def _same(trials: sa.FromClause, rows: sa.FromClause) -> sa.ColumnElement[bool]:
    """Whether a row of another table is of a trial."""
    return sa.and_(rows.c.run == trials.c.run, rows.c.trial == trials.c.id)


def _mean(column: sa.ColumnElement[float]) -> sa.Function[float]:
    number = Number(column)
    return sa.func.avg(number, type_=number.type)


def token_sums(rows: sa.FromClause) -> list[sa.Label[float]]:
    """The sum of each count of some rows' usage that they have."""
    return [sa.func.sum(Number(rows.c[name])).label(name) for name in Usage._fields if name in rows.c]


def tokens_of(sums: Mapping[Any, Any]) -> Usage:
    """The tokens in a row of `token_sums`."""
    return Usage(**{name: type(none)(sums.get(name) or 0) for name, none in NO_USAGE._asdict().items()})


def _pair_totals(pair: Pair, rows: Sequence[sa.RowMapping], mean: float | None) -> PairTotals:
    """The totals of a pair's rows, one for each reason; `mean` where samples have several epochs."""

    def total(column: str) -> float | None:
        known = [row[column] for row in rows if row[column] is not None]
        return float(sum(known)) if known else None

    ended = [row for row in rows if row["reason"] is not None]
    open_in = {str(row["reason"]): int(row["planned"]) - int(row["scored"]) for row in ended}
    reasons = {str(row["reason"]): int(row["planned"]) for row in ended}
    sums = {name: total(name) for name in _SUMMED}
    scored = sum(int(row["scored"]) for row in rows)
    if sum(row["told_cuts"] for row in rows) != sum(reasons.values()):
        sums["cut_answers"] = None
    trial_mean = (sums["score"] or 0.0) / scored if scored else None
    return record(
        PairTotals,
        {name: value if value is None or name in _FRACTIONS else int(value) for name, value in sums.items()},
        agent=pair[0],
        task=pair[1],
        planned=sum(int(row["planned"]) for row in rows),
        scored=scored,
        unscored=sum(open_in.values()),
        mean=trial_mean if mean is None else mean,
        trial_mean=trial_mean,
        reasons=reasons,
        declined=open_in.get(FinishReason.REFUSED.value, 0),
    )
