"""What a run has found, read from its rows: totals, costs, finishes, and all rows for exports.

No query about scores reads transcripts.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import sqlalchemy as sa
from pydantic import JsonValue
from pydantic_core import from_json

from eval_client.core.progress import grouped_causes
from eval_client.core.spend import NO_TOKENS, TOKEN_COLUMNS, Tokens
from eval_client.store.migration import existing_columns
from eval_client.store.records import RETRIED, HelperCost, JournalledTools, PairTotals, ReplicaCost
from eval_client.store.tables import attempt_table, reply_table, summary_table, trial_table, turn_table
from eval_client.store.values import Number, json_object, json_of, parsed
from proctor.types import Finish, FinishReason, Summary
from task_server.wire.messages import cluster_numbers


class SampleMeans(NamedTuple):
    """The mean score of each sample of a pair that has a scored epoch."""

    means: list[float]
    clusters: list[str]
    """The cluster of each sample; empty where each is its own."""
    counts: list[tuple[int, int]]
    """(scored epochs, those with a score of 1) of each sample; empty where each has one epoch and its own cluster."""


class Results:
    """Reads the results of one run, finished or not."""

    def __init__(self, engine: sa.Engine, run: str) -> None:
        self.engine = engine
        self.run = run

    def spent(self, totals: Iterable[PairTotals]) -> dict[str, Tokens]:
        """agent -> tokens paid so far: by final rows, as in the `totals` of all pairs, and by unfinished trials."""
        paid = [(pair.agent, pair.tokens()) for pair in totals if pair.reasons]
        spent: dict[str, Tokens] = {}
        for agent, tokens in [*paid, *((agent, tokens) for (agent, _), tokens in self.spent_on_open().items())]:
            spent[agent] = spent.get(agent, NO_TOKENS).plus(tokens)
        return spent

    def spent_on_open(self) -> dict[tuple[str, str], Tokens]:
        """(agent, task) -> tokens paid for trials that have no final row, where there are some."""
        spent: dict[tuple[str, str], Tokens] = {}
        there = tuple(column.name for column in existing_columns(self.engine, turn_table))
        with self.engine.connect() as connection:
            for row in connection.execute(_spent_on_open(there), {"b_run": self.run}).mappings():
                pair, tokens = (row["agent"], row["task"]), tokens_of(row)
                if tokens != NO_TOKENS:
                    spent[pair] = spent.get(pair, NO_TOKENS).plus(tokens)
        return spent

    def helper_costs(self) -> list[HelperCost]:
        """Costs of models on the environment's side, by pair and model, in no order; empty for an older store."""
        if not sa.inspect(self.engine).has_table(reply_table.name):
            return []
        t, r = trial_table.c, reply_table.c
        trials = sa.and_(t.run == r.run, t.id == r.trial)
        there = [column.name for column in existing_columns(self.engine, reply_table)]
        columns = (
            t.agent,
            t.task,
            r.model,
            sa.func.sum(Number(r.tries)).label("calls"),
            *token_sums(reply_table, there),
        )
        query = sa.select(*columns).select_from(reply_table.join(trial_table, trials))
        query = query.where(r.run == self.run, r.bought).group_by(t.agent, t.task, r.model)
        with self.engine.connect() as connection:
            return [
                HelperCost(
                    agent=row["agent"],
                    task=row["task"],
                    model=row["model"],
                    calls=int(row["calls"]),
                    tokens=tokens_of(row),
                )
                for row in connection.execute(query).mappings()
            ]

    def replica_costs(self) -> list[ReplicaCost]:
        """What each server of an endpoint that has several answered, by agent and URL; empty for an older store."""
        t, u = trial_table.c, turn_table.c
        if u.replica not in existing_columns(self.engine, turn_table):
            return []
        sums = [u[name] for name in ("prompt_tokens", "cached_tokens", "completion_tokens", "model_seconds")]
        columns = (t.agent, u.replica, sa.func.count(), *(sa.func.sum(Number(column)) for column in sums))
        query = sa.select(*columns).select_from(turn_table.join(trial_table, sa.and_(t.run == u.run, t.id == u.trial)))
        query = query.where(u.run == self.run, u.replica.is_not(None)).group_by(t.agent, u.replica)
        with self.engine.connect() as connection:
            rows = connection.execute(query.order_by(t.agent, u.replica)).all()
        return [
            ReplicaCost(
                agent=agent,
                replica=replica,
                calls=calls,
                prompt_tokens=int(prompt),
                cached_tokens=int(cached),
                completion_tokens=int(completion),
                seconds=seconds,
            )
            for agent, replica, calls, prompt, cached, completion, seconds in rows
        ]

    def pair_totals(self) -> list[PairTotals]:
        """The progress of every pair, in the order of the run's plan."""
        query = _totals(tuple(column.name for column in existing_columns(self.engine, trial_table)))
        groups: dict[tuple[str, str], list[sa.RowMapping]] = {}
        with self.engine.connect() as connection:
            rows = connection.execute(query, {"b_run": self.run}).mappings().all()
            for row in sorted(rows, key=lambda row: int(row["first"])):
                groups.setdefault((row["agent"], row["task"]), []).append(row)
            repeated = any(row["last_epoch"] for row in rows)
            means = self._means_of_samples(connection) if repeated else {}
        return [_pair_totals(pair, rows, means.get(pair)) for pair, rows in groups.items()]

    def _means_of_samples(self, connection: sa.Connection) -> dict[tuple[str, str], float]:
        """(agent, task) -> the mean over samples of the mean over their scored epochs."""
        t = trial_table.c
        of_sample = sa.select(t.agent, t.task, _mean(t.score).label("mean")).where(t.run == self.run)
        sample = of_sample.where(t.score.is_not(None)).group_by(t.agent, t.task, t.sample).subquery().c
        query = sa.select(sample.agent, sample.task, sa.func.avg(sample.mean)).group_by(sample.agent, sample.task)
        return {(agent, task): float(mean) for agent, task, mean in connection.execute(query)}

    def finishes(self, agent: str, task: str) -> Iterator[tuple[str, int, Finish]]:
        """(sample, epoch, finish) of the pair's final rows, faults included, in the run's order."""
        t = trial_table.c
        query = sa.select(t.sample, t.epoch, t.finish).where(t.run == self.run, t.agent == agent, t.task == task)
        with self.engine.connect() as connection:
            for sample, epoch, finish in connection.execute(query.where(t.finish.is_not(None)).order_by(t.id)):
                yield sample, epoch, parsed(t.finish, Finish.kept, finish)

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

    def sample_means(self, players: Mapping[str, str]) -> dict[tuple[str, str], SampleMeans]:
        """(agent, task) -> the means of its samples, where it has a scored trial; `players` has an agent by task."""
        t = trial_table.c
        scored = sa.and_(t.run == self.run, t.score.is_not(None))
        with self.engine.connect() as connection:
            tied = set(connection.execute(self._tied_tasks(players)).scalars())
            found = _scores(connection, scored)
            means = {pair: SampleMeans(scores, [], []) for pair, scores in found.items() if pair[1] not in tied}
            cluster = sa.func.max(cluster_column(self.engine))
            passed = sa.func.sum(sa.case((t.score >= 1, 1), else_=0))
            figures = _mean(t.score), cluster, sa.func.count(), passed
            query = sa.select(t.agent, t.task, t.sample, *figures).where(scored, t.task.in_(tied))
            for agent, task, sample, mean, named, count, passes in (
                connection.execute(query.group_by(t.agent, t.task, t.sample)) if tied else ()
            ):
                pair = means.setdefault((agent, task), SampleMeans([], [], []))
                pair.means.append(float(mean))
                pair.clusters.append(str(named or sample))
                pair.counts.append((int(count), int(passes)))
        return means

    def _tied_tasks(self, players: Mapping[str, str]) -> sa.Select[Any]:
        """The tasks with several epochs, or with samples that share a cluster: the same for all agents of a task."""
        t, cluster = trial_table.c, cluster_column(self.engine)
        pairs = (sa.and_(t.run == self.run, t.agent == agent, t.task == task) for task, agent in players.items())
        return sa.select(t.task).distinct().where(sa.or_(sa.false(), *pairs), sa.or_(t.epoch > 0, cluster != t.sample))

    def cluster_of(self, task: str) -> dict[str, str]:
        """sample -> its cluster; in a run of schema 2, which has no clusters, each sample is its own."""
        t = trial_table.c
        query = sa.select(t.sample, sa.func.max(cluster_column(self.engine))).group_by(t.sample)
        with self.engine.connect() as connection:
            rows = connection.execute(query.where(t.run == self.run, t.task == task))
            return {str(sample): str(cluster or sample) for sample, cluster in rows}

    def causes(self) -> dict[tuple[str, str], dict[str, int]]:
        """(agent, task) -> cause -> number of the pair's faults, where it has any."""
        t = trial_table.c
        query = (
            sa.select(t.agent, t.task, t.cause, sa.func.count())
            .where(t.run == self.run, t.cause.is_not(None), t.reason != FinishReason.REFUSED.value)
            .group_by(t.agent, t.task, t.cause)
            .order_by(sa.func.min(t.id))
        )
        found: dict[tuple[str, str], list[tuple[str, int]]] = {}
        with self.engine.connect() as connection:
            for agent, task, cause, count in connection.execute(query):
                found.setdefault((agent, task), []).append((str(cause), int(count)))
        return {pair: grouped_causes(causes) for pair, causes in found.items()}

    def retried(self) -> dict[tuple[str, str], int]:
        """(agent, task) -> how many of the pair's trials were played again although they had a score."""
        t, a = trial_table.c, attempt_table.c
        trials = sa.select(a.trial).where(a.run == self.run, a.outcome == RETRIED)
        query = sa.select(t.agent, t.task, sa.func.count()).where(t.run == self.run, t.id.in_(trials))
        with self.engine.connect() as connection:
            return {(agent, task): int(n) for agent, task, n in connection.execute(query.group_by(t.agent, t.task))}

    def summaries(self) -> dict[tuple[str, str], tuple[int, Summary]]:
        """(agent, task) -> (number of scored trials behind the summary, summary)."""
        s = summary_table.c
        with self.engine.connect() as connection:
            rows = connection.execute(sa.select(s.agent, s.task, s.scored, s.summary).where(s.run == self.run))
            return {
                (a, t): (scored, parsed(s.summary, Summary.model_validate_json, text)) for a, t, scored, text in rows
            }

    def trial_rows(self, *names: str) -> Iterator[dict[str, JsonValue]]:
        """All trials as plain data, in the run's order; with `names` only these columns."""
        there = (column.name for column in existing_columns(self.engine, trial_table))
        query = _trials(tuple(name for name in there if (name in names if names else name != "holder")))
        with self.engine.connect() as connection:
            for row in connection.execution_options(stream_results=True).execute(query, {"b_run": self.run}):
                fields = dict(row._mapping)
                if "finish" in fields:
                    finish = fields.pop("finish")
                    fields["finish"] = finish and parsed(trial_table.c.finish, from_json, finish)
                yield fields

    def turn_rows(self) -> Iterator[dict[str, JsonValue]]:
        """All turns of every trial's newest journal as plain data, in the run's order.

        `stop` is the reason of a turn where the client stopped; the endpoint's is `finish_reason`.
        """
        t, same = turn_table, sa.and_(turn_table.c.run == trial_table.c.run, turn_table.c.trial == trial_table.c.id)
        newer = turn_table.alias()
        newest = (
            sa.select(sa.func.max(newer.c.journal)).where(newer.c.run == t.c.run, newer.c.trial == t.c.trial)
        ).scalar_subquery()
        keys = [trial_table.c[name] for name in ("agent", "task", "sample", "epoch")]
        columns = (*keys, *existing_columns(self.engine, t))
        query = sa.select(*columns).select_from(t.join(trial_table, same)).where(t.c.run == self.run)
        query = query.where(t.c.journal == newest).order_by(t.c.trial, t.c.turn)
        trial, tools = None, JournalledTools()
        with self.engine.connect() as connection:
            for row in connection.execution_options(stream_results=True).execute(query):
                fields = dict(row._mapping)
                reply = parsed(t.c.reply, json_object, fields.pop("reply"))
                if fields["trial"] != trial:
                    trial, tools = fields["trial"], JournalledTools()
                fields["observation"] = parsed(t.c.observation, tools.whole, fields["observation"])
                if "stop" in fields:
                    fields["finish_reason"] = fields.pop("stop")
                yield {**fields, "action": reply.get("action"), "stop": reply.get("reason")}

    def reply_rows(self) -> Iterator[dict[str, JsonValue]]:
        """All replies of judges, hosts and users as plain data, in the run's order; none in an older store."""
        if not sa.inspect(self.engine).has_table(reply_table.name):
            return
        r, same = reply_table, sa.and_(reply_table.c.run == trial_table.c.run, reply_table.c.trial == trial_table.c.id)
        keys = [trial_table.c[name] for name in ("agent", "task", "sample", "epoch")]
        query = sa.select(*keys, r).select_from(r.join(trial_table, same)).where(r.c.run == self.run)
        query = query.order_by(r.c.trial, r.c.number)
        with self.engine.connect() as connection:
            for row in connection.execution_options(stream_results=True).execute(query):
                yield {**row._mapping, "text": parsed(r.c.text, json_of, row.text)}


@cache
def _spent_on_open(there: tuple[str, ...]) -> sa.Select[Any]:
    """One row per trial, by subqueries: for a join SQLite would scan every turn of the run."""
    t, same = trial_table.c, sa.and_(turn_table.c.run == trial_table.c.run, turn_table.c.trial == trial_table.c.id)
    sums = [
        sa.select(total.element).where(same).correlate(trial_table).scalar_subquery().label(total.name)
        for total in token_sums(turn_table, there)
    ]
    return sa.select(t.agent, t.task, *sums).where(t.run == sa.bindparam("b_run"), t.reason.is_(None), t.attempts > 0)


@cache
def _totals(there: tuple[str, ...]) -> sa.Select[Any]:
    """One row per pair and reason, of the columns that a store has; `told_cuts` counts trials that tell their cuts."""
    t = trial_table.c
    sums = (sa.func.sum(Number(t[name])).label(name) for name in there if name in _SUMMED)
    counts = (sa.func.count().label("planned"), sa.func.count(t.score).label("scored"))
    told_cuts = (sa.func.count(t.cut_answers) if "cut_answers" in there else sa.literal(0)).label("told_cuts")
    ends = sa.func.min(t.id).label("first"), sa.func.max(t.epoch).label("last_epoch")
    columns = (t.agent, t.task, t.reason, *ends, *counts, told_cuts, *sums)
    return sa.select(*columns).where(t.run == sa.bindparam("b_run")).group_by(t.agent, t.task, t.reason)


@cache
def _trials(names: tuple[str, ...]) -> sa.Select[Any]:
    t = trial_table.c
    return sa.select(*(t[name] for name in names)).where(t.run == sa.bindparam("b_run")).order_by(t.id)


def cluster_column(engine: sa.Engine) -> sa.ColumnElement[Any]:
    """The column `cluster` of trials; NULL in a store without it."""
    there = {column.name for column in existing_columns(engine, trial_table)}
    return trial_table.c.cluster if "cluster" in there else sa.null()


class _Collected:
    """SQLite's aggregate of a group's scores. A row of its own for each of them would cost twice the CPU."""

    def __init__(self, groups: list[list[float]]) -> None:
        self._scores: list[float] = []
        self.step = self._scores.append
        self._groups = groups

    def finalize(self) -> int:
        """The place of the group's scores in `groups`."""
        self._groups.append(self._scores)
        return len(self._groups) - 1


def _scores(connection: sa.Connection, scored: sa.ColumnElement[bool]) -> dict[tuple[str, str], list[float]]:
    """(agent, task) -> the scores of the trials that a condition selects."""
    t = trial_table.c
    if connection.dialect.name == "sqlite":
        groups: list[list[float]] = []
        connection.connection.create_aggregate("proctor_collect", 1, partial(_Collected, groups))
        query = sa.select(t.agent, t.task, sa.func.proctor_collect(t.score)).where(scored).group_by(t.agent, t.task)
        return {(agent, task): groups[place] for agent, task, place in connection.execute(query)}
    found: dict[tuple[str, str], list[float]] = {}
    rows = connection.execution_options(stream_results=True).execute(sa.select(t.agent, t.task, t.score).where(scored))
    for agent, task, score in rows:
        found.setdefault((agent, task), []).append(float(score))
    return found


def _mean(column: sa.Column[float]) -> sa.Function[float]:
    number = Number(column)
    return sa.func.avg(number, type_=number.type)


def token_sums(table: sa.Table, there: Collection[str] | None = None) -> list[sa.Label[float]]:
    """The sum of each token count of a table, of those that are `there` where a store may lack some."""
    return [
        sa.func.sum(Number(table.c[column])).label(name)
        for name, column in TOKEN_COLUMNS.items()
        if column in table.c and (there is None or column in there)
    ]


def tokens_of(sums: sa.RowMapping) -> Tokens:
    """The tokens in a row of `token_sums`."""
    counts = {name: int(sums.get(name) or 0) for name in TOKEN_COLUMNS if name != "billed_money"}
    return Tokens(**counts, billed_money=float(sums.get("billed_money") or 0.0))


_SUMMED = ("score", "turns", *TOKEN_COLUMNS.values(), "seconds", "cut_answers")


_TOLD = ("cache_write_tokens", "estimated_tokens", "billed_tokens")


def _pair_totals(pair: tuple[str, str], rows: Sequence[sa.RowMapping], mean: float | None) -> PairTotals:
    """The totals of a pair's rows; `mean` where samples have several epochs."""

    def total(column: str) -> float:
        return float(sum(row[column] or 0 for row in rows))

    reasons = {str(row["reason"]): int(row["planned"]) for row in rows if row["reason"] is not None}
    scored = int(total("scored"))
    told_cuts = sum(row["told_cuts"] for row in rows) == sum(reasons.values())
    trial_mean = total("score") / scored if scored else None
    return PairTotals(
        agent=pair[0],
        task=pair[1],
        planned=int(total("planned")),
        scored=scored,
        unscored=sum(int(row["planned"]) - int(row["scored"]) for row in rows if row["reason"] is not None),
        mean=trial_mean if mean is None else mean,
        trial_mean=trial_mean,
        reasons=reasons,
        declined=sum(
            int(row["planned"]) - int(row["scored"]) for row in rows if row["reason"] == FinishReason.REFUSED.value
        ),
        turns=int(total("turns")),
        prompt_tokens=int(total("prompt_tokens")),
        completion_tokens=int(total("completion_tokens")),
        cached_tokens=int(total("cached_tokens")) if "cached_tokens" in rows[0] else None,
        reasoning_tokens=int(total("reasoning_tokens")) if "reasoning_tokens" in rows[0] else None,
        **{name: int(total(name)) for name in _TOLD if name in rows[0]},
        billed_money=total("billed_money") if "billed_money" in rows[0] else 0.0,
        seconds=total("seconds"),
        cut_answers=int(total("cut_answers")) if told_cuts and reasons else None,
    )
