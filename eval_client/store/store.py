"""The store of a run: its manifest, trials, attempts and turns, in SQLite or a database server.

A trial is settled when its final row has a score. A final row without a score (a fault) names the cause, and the next
resume plays the trial again. No query about scores reads transcripts.
"""

import datetime
import json
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from pydantic import JsonValue

from eval_client.store import shards, wal
from eval_client.store.connection import RunExists, StoreError, is_transient, is_writable
from eval_client.store.migration import migrate
from eval_client.store.records import DIVERGED, HelperCost, Manifest, PairTotals, Trial, Turn, kept_reply
from eval_client.store.tables import (
    SCHEMA_VERSION,
    attempt_table,
    reply_table,
    run_table,
    summary_table,
    trial_table,
    turn_table,
)
from proctor.llm.kept_replies import KeptReply
from proctor.types import Finish, FinishReason, Summary


def now_text() -> str:
    """The wall clock in UTC as ISO 8601 text, for records; no decision depends on it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


class Store:
    """The rows of one run. Reading is safe beside a writer in another process."""

    def __init__(self, engine: sa.Engine, run: str) -> None:
        self.engine = engine
        self.run = run

    def create(self, manifest: Manifest, trials: Sequence[Trial]) -> None:
        """Write a new run in one transaction. Raises RunExists, StoreError, SQLAlchemyError."""
        migrate(self.engine)
        row = {"id": self.run, "schema_version": SCHEMA_VERSION, "created_at": now_text(), "fence": 0, "state": "new"}
        rows = [{"run": self.run, **trial.model_dump()} for trial in trials]
        try:
            with self.engine.begin() as connection:
                connection.execute(run_table.insert(), {**row, "manifest": manifest.model_dump_json()})
                if rows:
                    connection.execute(trial_table.insert(), rows)
        except sa.exc.IntegrityError as error:
            raise RunExists(f"run {self.run!r} exists already; resume it, or choose another name") from error

    def is_over(self) -> bool:
        """Whether the run exists and is `finished` or `incomplete`; only a resume plays it further."""
        if not sa.inspect(self.engine).has_table(run_table.name):
            return False
        with self.engine.connect() as connection:
            state = connection.execute(sa.select(run_table.c.state).where(run_table.c.id == self.run)).scalar()
        return state in shards.OVER

    def manifest(self) -> Manifest:
        """The run's manifest. Raises StoreError where the run does not exist or is of another schema version.

        Raises SQLAlchemyError where the database is unavailable.
        """
        try:
            if not sa.inspect(self.engine).has_table(run_table.name):
                path = str(self.engine.url.database)
                lost = f" ({path}: {lost})" if (lost := wal.losses(path)) else ""
                raise StoreError(f"run {self.run!r} was stopped before it began{lost}; run its plan again")
            with self.engine.connect() as connection:
                row = connection.execute(sa.select(run_table).where(run_table.c.id == self.run)).one_or_none()
        except sa.exc.DatabaseError as error:
            if is_transient(error):
                raise
            raise StoreError(f"run {self.run!r}: the store can't be read: {error.orig}") from error
        if row is None:
            raise StoreError(f"no run {self.run!r} in this store; `proctor ls` lists the runs")
        if row.schema_version != SCHEMA_VERSION:
            raise StoreError(f"run {self.run!r} was written by another version (schema {row.schema_version})")
        return Manifest.model_validate_json(row.manifest)

    def check(self) -> None:
        """Check that the store can be written, and upgrade its tables, if there are any, to this version.

        Raises SQLAlchemyError where the store can't be reached, StoreError where it can't be written.
        """
        path = self.engine.url.database
        if self.engine.dialect.name == "sqlite" and path and not is_writable(path):
            raise StoreError(f"{path}: its folder can't be written to; copy the run's folder to a writable place")
        if sa.inspect(self.engine).has_table(run_table.name):
            migrate(self.engine)

    def update_manifest(self, manifest: Manifest) -> None:
        """Replace the manifest with that of a resume."""
        with self.engine.begin() as connection:
            mine = run_table.update().where(run_table.c.id == self.run)
            connection.execute(mine.values(manifest=manifest.model_dump_json()))

    def created_at(self) -> str:
        """When the run was created, in UTC, as ISO 8601 text."""
        with self.engine.connect() as connection:
            return str(
                connection.execute(sa.select(run_table.c.created_at).where(run_table.c.id == self.run)).scalar_one()
            )

    def state(self) -> str:
        """The stored state: `new`, `running`, `interrupted`, `incomplete` or `finished`.

        A run whose clients were killed stays `running`.
        """
        with self.engine.connect() as connection:
            return str(connection.execute(sa.select(run_table.c.state).where(run_table.c.id == self.run)).scalar_one())

    def set_state(self, state: str, shard: int | None = None) -> None:
        """Store the run's state; with `shard`, only while that shard is live. Raises Fenced."""
        with self.engine.begin() as connection:
            if shard is not None:
                shards.hold_live(connection, self.run, shard)
            connection.execute(run_table.update().where(run_table.c.id == self.run).values(state=state))

    def take_over(self) -> int:
        """Start a new first shard and return its number; writes for older shards are rejected from now on."""
        return shards.take_over(self.engine, self.run)

    def pending_trials(self) -> list[Trial]:
        """The trials without a score, in the run's order."""
        columns = [trial_table.c[name] for name in Trial.model_fields]
        query = sa.select(*columns).where(trial_table.c.run == self.run, trial_table.c.score.is_(None))
        with self.engine.connect() as connection:
            rows = connection.execute(query.order_by(trial_table.c.id))
            return [Trial.model_construct(**row._mapping) for row in rows]

    def journal(self, trial: int) -> tuple[int, list[Turn], tuple[int, int]]:
        """A trial's newest journal: its number (from 0), its turns, and the tokens paid in the ones before it.

        Where the last attempt diverged, that is a new one without turns.
        """
        mine = sa.and_(attempt_table.c.run == self.run, attempt_table.c.trial == trial)
        of_trial = sa.and_(turn_table.c.run == self.run, turn_table.c.trial == trial)
        with self.engine.connect() as connection:
            attempts = sa.select(attempt_table.c.journal, attempt_table.c.outcome).where(mine)
            last = connection.execute(attempts.order_by(attempt_table.c.number.desc()).limit(1)).one_or_none()
            newest = 0 if last is None else int(last.journal) + (last.outcome == DIVERGED)
            turns = sa.select(turn_table).where(of_trial, turn_table.c.journal == newest).order_by(turn_table.c.turn)
            rows = connection.execute(turns).mappings().all()
            sums = sa.select(*_token_sums(turn_table)).where(of_trial, turn_table.c.journal < newest)
            paid = connection.execute(sums).mappings().one()
        return newest, [_turn(row) for row in rows], (int(paid["prompt"] or 0), int(paid["completion"] or 0))

    def replies(self, trial: int) -> list[KeptReply]:
        """Replies of models on the environment's side in a trial, over all its attempts, in the order of first use."""
        r = reply_table.c
        query = sa.select(reply_table).where(r.run == self.run, r.trial == trial).order_by(r.number)
        with self.engine.connect() as connection:
            return [kept_reply(dict(row)) for row in connection.execute(query).mappings()]

    def last_session(self, trial: int) -> str | None:
        """The session of a trial's newest attempt; None where there is none or it has ended."""
        mine = sa.and_(attempt_table.c.run == self.run, attempt_table.c.trial == trial)
        newest = sa.select(attempt_table.c.session, attempt_table.c.outcome).where(mine)
        with self.engine.connect() as connection:
            row = connection.execute(newest.order_by(attempt_table.c.number.desc()).limit(1)).one_or_none()
        return str(row.session) if row is not None and row.outcome is None else None

    def under_way(self) -> set[int]:
        """The ids of trials without a score that have at least one attempt."""
        query = sa.select(trial_table.c.id).where(trial_table.c.run == self.run, trial_table.c.score.is_(None))
        with self.engine.connect() as connection:
            return set(connection.execute(query.where(trial_table.c.attempts > 0)).scalars())

    def spent(self) -> dict[str, tuple[int, int]]:
        """agent -> (prompt, completion) tokens paid so far, unfinished trials included."""
        spent: dict[str, list[int]] = {}
        with self.engine.connect() as connection:
            for query in (self._spent_on_final(), self._spent_on_open()):
                for row in connection.execute(query).mappings():
                    total = spent.setdefault(row["agent"], [0, 0])
                    total[0] += int(row["prompt"] or 0)
                    total[1] += int(row["completion"] or 0)
        return {agent: (prompt, completion) for agent, (prompt, completion) in spent.items()}

    def _spent_on_final(self) -> sa.Select[Any]:
        sums = _token_sums(trial_table)
        mine = sa.and_(trial_table.c.run == self.run, trial_table.c.reason.is_not(None))
        return sa.select(trial_table.c.agent, *sums).where(mine).group_by(trial_table.c.agent)

    def _spent_on_open(self) -> sa.Select[Any]:
        """One row per trial, by subqueries: for a join SQLite would scan every turn of the run."""
        t, same = trial_table.c, sa.and_(turn_table.c.run == trial_table.c.run, turn_table.c.trial == trial_table.c.id)
        sums = [
            sa.select(total.element).where(same).correlate(trial_table).scalar_subquery().label(total.name)
            for total in _token_sums(turn_table)
        ]
        return sa.select(t.agent, *sums).where(t.run == self.run, t.reason.is_(None), t.attempts > 0)

    def helper_costs(self) -> list[HelperCost]:
        """Costs of models on the environment's side, by pair and model, in no order; empty for an older store."""
        if not sa.inspect(self.engine).has_table(reply_table.name):
            return []
        t, r = trial_table.c, reply_table.c
        trials = sa.and_(t.run == r.run, t.id == r.trial)
        columns = (t.agent, t.task, r.model, sa.func.sum(r.tries).label("calls"), *_token_sums(reply_table))
        query = sa.select(*columns).select_from(reply_table.join(trial_table, trials))
        query = query.where(r.run == self.run, r.bought).group_by(t.agent, t.task, r.model)
        with self.engine.connect() as connection:
            return [
                HelperCost(
                    agent=row["agent"],
                    task=row["task"],
                    model=row["model"],
                    calls=int(row["calls"]),
                    prompt_tokens=int(row["prompt"]),
                    completion_tokens=int(row["completion"]),
                )
                for row in connection.execute(query).mappings()
            ]

    def pair_totals(self) -> list[PairTotals]:
        """The progress of every pair, in the order of the run's plan."""
        t = trial_table.c
        sums = (sa.func.sum(t[name] * 1.0).label(name) for name in _SUMMED)
        counts = (sa.func.count().label("planned"), sa.func.count(t.score).label("scored"))
        columns = (t.agent, t.task, t.reason, sa.func.min(t.id).label("first"), *counts, *sums)
        query = sa.select(*columns).where(t.run == self.run).group_by(t.agent, t.task, t.reason)
        groups: dict[tuple[str, str], list[sa.RowMapping]] = {}
        with self.engine.connect() as connection:
            for row in sorted(connection.execute(query).mappings(), key=lambda row: int(row["first"])):
                groups.setdefault((row["agent"], row["task"]), []).append(row)
        return [_pair_totals(agent, task, rows) for (agent, task), rows in groups.items()]

    def finishes(self, agent: str, task: str) -> Iterator[tuple[str, int, Finish]]:
        """(sample, epoch, finish) of the pair's final rows, faults included, in the run's order."""
        t = trial_table.c
        query = sa.select(t.sample, t.epoch, t.finish).where(t.run == self.run, t.agent == agent, t.task == task)
        with self.engine.connect() as connection:
            for sample, epoch, finish in connection.execute(query.where(t.finish.is_not(None)).order_by(t.id)):
                yield sample, epoch, Finish.model_validate_json(finish)

    def sample_totals(self, agent: str, task: str) -> list[tuple[int, float]]:
        """(scored trials, sum of their scores) for each of the pair's samples with a scored trial, in no order."""
        t = trial_table.c
        query = sa.select(sa.func.count(t.score), sa.func.sum(t.score)).group_by(t.sample)
        mine = sa.and_(t.run == self.run, t.agent == agent, t.task == task, t.score.is_not(None))
        with self.engine.connect() as connection:
            return [(int(count), float(total)) for count, total in connection.execute(query.where(mine))]

    def causes(self, agent: str, task: str) -> dict[str, int]:
        """cause -> number of the pair's unscored final rows."""
        t = trial_table.c
        mine = sa.and_(t.run == self.run, t.agent == agent, t.task == task, t.cause.is_not(None))
        with self.engine.connect() as connection:
            rows = connection.execute(sa.select(t.cause, sa.func.count()).where(mine).group_by(t.cause))
            return {str(row[0]): int(row[1]) for row in rows}

    def write_summary(self, agent: str, task: str, scored: int, summary: Summary) -> None:
        """Store the environment's own metrics of a pair, and the number of scored trials behind them."""
        s = summary_table.c
        with self.engine.begin() as connection:
            connection.execute(summary_table.delete().where(s.run == self.run, s.agent == agent, s.task == task))
            row = {"run": self.run, "agent": agent, "task": task, "scored": scored}
            connection.execute(summary_table.insert(), {**row, "summary": summary.model_dump_json()})

    def summaries(self) -> dict[tuple[str, str], tuple[int, Summary]]:
        """(agent, task) -> (number of scored trials behind the summary, summary)."""
        s = summary_table.c
        with self.engine.connect() as connection:
            rows = connection.execute(sa.select(s.agent, s.task, s.scored, s.summary).where(s.run == self.run))
            return {(a, t): (scored, Summary.model_validate_json(text)) for a, t, scored, text in rows}

    def trial_rows(self) -> Iterator[dict[str, JsonValue]]:
        """All trials as plain data, in the run's order, for exports and comparisons."""
        query = sa.select(trial_table).where(trial_table.c.run == self.run).order_by(trial_table.c.id)
        with self.engine.connect() as connection:
            for row in connection.execution_options(stream_results=True).execute(query):
                fields = dict(row._mapping)
                del fields["holder"]
                finish = fields.pop("finish")
                fields["finish"] = None if finish is None else json.loads(finish)
                yield fields

    def turn_rows(self) -> Iterator[dict[str, JsonValue]]:
        """All turns of every trial's newest journal as plain data, in the run's order."""
        t, same = turn_table, sa.and_(turn_table.c.run == trial_table.c.run, turn_table.c.trial == trial_table.c.id)
        newer = turn_table.alias()
        newest = (
            sa.select(sa.func.max(newer.c.journal)).where(newer.c.run == t.c.run, newer.c.trial == t.c.trial)
        ).scalar_subquery()
        keys = [trial_table.c[name] for name in ("agent", "task", "sample", "epoch")]
        query = sa.select(*keys, t).select_from(t.join(trial_table, same)).where(t.c.run == self.run)
        query = query.where(t.c.journal == newest).order_by(t.c.trial, t.c.turn)
        with self.engine.connect() as connection:
            for row in connection.execution_options(stream_results=True).execute(query):
                fields = dict(row._mapping)
                reply = json.loads(fields.pop("reply"))
                fields["observation"] = json.loads(fields["observation"])
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
                yield {**row._mapping, "text": json.loads(row.text)}


def _token_sums(table: sa.Table) -> tuple[sa.Label[int], sa.Label[int]]:
    # As floats: SQLite refuses a sum of integers that leaves 64 bits.
    prompt, completion = sa.func.sum(table.c.prompt_tokens * 1.0), sa.func.sum(table.c.completion_tokens * 1.0)
    return prompt.label("prompt"), completion.label("completion")


def _turn(row: sa.RowMapping) -> Turn:
    fields = {name: row[name] for name in Turn.model_fields}
    fields["reply"] = json.loads(str(fields["reply"]))
    return Turn.model_validate(fields)


_SUMMED = ("score", "turns", "prompt_tokens", "completion_tokens", "seconds")


def _pair_totals(agent: str, task: str, rows: Sequence[sa.RowMapping]) -> PairTotals:
    def total(column: str) -> float:
        return float(sum(row[column] or 0 for row in rows))

    reasons = {str(row["reason"]): int(row["planned"]) for row in rows if row["reason"] is not None}
    scored = int(total("scored"))
    return PairTotals(
        agent=agent,
        task=task,
        planned=int(total("planned")),
        scored=scored,
        unscored=sum(count for reason, count in reasons.items() if FinishReason(reason).is_fault),
        mean=total("score") / scored if scored else None,
        reasons=reasons,
        turns=int(total("turns")),
        prompt_tokens=int(total("prompt_tokens")),
        completion_tokens=int(total("completion_tokens")),
        seconds=total("seconds"),
    )
