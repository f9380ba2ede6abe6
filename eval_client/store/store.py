"""The store of a run: its manifest, trials, attempts and turns, in SQLite or a database server.

A trial is settled when its final row has a score. A final row without a score (a fault) names the cause, and the next
resume plays the trial again.
"""

import datetime
import json
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, islice
from operator import lt
from typing import Any, Literal

import sqlalchemy as sa

from eval_client.core import Pair
from eval_client.store.connection import RunExists, StoreError, hold_live, is_transient
from eval_client.store.migration import existing_columns, migrate
from eval_client.store.planned_trials import ROWS_AT_ONCE, PlannedTrials, insert_trials
from eval_client.store.records import DIVERGED, RETRIED, Manifest, Trial, Turn, kept_reply, now_text, record, turn_of
from eval_client.store.results import Results, token_sums, tokens_of
from eval_client.store.sqlite_file import file_of, is_writable, losses
from eval_client.store.tables import (
    FREE,
    LIVE,
    OLDEST_SCHEMA,
    OVER,
    SCHEMA_VERSION,
    SETTLED,
    attempt_table,
    call_table,
    live_table,
    reply_table,
    run_table,
    shard_table,
    summary_table,
    trial_table,
    turn_table,
)
from eval_client.store.values import Unreadable, check_name, json_object, parsed
from proctor.session.kept_replies import KeptReply
from proctor.types import NO_USAGE, FinishReason, Summary, Usage

_EMPTY = (
    *("reason", "score", "cause", "finish", "turns", "prompt_tokens", "completion_tokens", "seconds", "ended_at"),
    "cut_answers",
)
_NOT_PLAYED = {"holder": FREE, **dict.fromkeys(Usage._fields, 0), **dict.fromkeys(_EMPTY)}
"""The columns of a trial without a final row."""
_OF_TRIAL = sa.and_(turn_table.c.run == sa.bindparam("b_run"), turn_table.c.trial == sa.bindparam("b_trial"))
_TURNS = (
    sa.select(turn_table)
    .where(_OF_TRIAL, turn_table.c.journal == sa.bindparam("b_journal"))
    .order_by(turn_table.c.turn)
)
_PAID_BEFORE = sa.select(*token_sums(turn_table)).where(_OF_TRIAL, turn_table.c.journal < sa.bindparam("b_journal"))
_CALLS = (
    sa.select(call_table)
    .where(call_table.c.run == sa.bindparam("b_run"), call_table.c.trial == sa.bindparam("b_trial"))
    .where(~sa.exists().where(*(call_table.c[key.name] == key for key in turn_table.primary_key)))
    .order_by(call_table.c.journal, call_table.c.turn, call_table.c.number)
)
_TRIAL = sa.select(*(trial_table.c[name] for name in Trial.model_fields)).where(
    trial_table.c.run == sa.bindparam("b_run"), trial_table.c.id == sa.bindparam("b_trial")
)
_LAST_ATTEMPT = (
    sa.select(attempt_table.c.journal, attempt_table.c.session, attempt_table.c.outcome)
    .where(attempt_table.c.run == sa.bindparam("b_run"), attempt_table.c.trial == sa.bindparam("b_trial"))
    .order_by(attempt_table.c.number.desc())
    .limit(1)
)


StopRequest = Literal["drain", "now"]
"""Play the trials under way to their end, or stop at once: what one and two Ctrl-C do."""


class Store(Results):
    """The rows of one run. Reading is safe beside a writer in another process."""

    def create(self, manifest: Manifest, trials: PlannedTrials | Iterable[Trial]) -> None:
        """Write a new run in one transaction. Raises RunExists, StoreError, DatabaseError."""
        migrate(self.engine)
        # With its fraction: two runs of one second are listed in the order in which they began.
        created_at = datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")
        row = {"id": self.run, "schema_version": SCHEMA_VERSION, "created_at": created_at, "fence": 0, "state": "new"}
        try:
            with self.engine.begin() as connection:
                connection.execute(run_table.insert(), {**row, "manifest": manifest.model_dump_json()})
                if isinstance(trials, PlannedTrials):
                    trials.insert(connection, self.run)
                else:
                    insert_trials(connection, self.run, trials)
        except sa.exc.IntegrityError as error:
            raise RunExists(f"run {self.run!r} exists already; resume or extend it, or choose another name") from error

    def exists(self) -> bool:
        """Whether the store has the run."""
        if not sa.inspect(self.engine).has_table(run_table.name):
            return False
        with self.engine.connect() as connection:
            mine = sa.select(run_table.c.id).where(run_table.c.id == self.run)
            return connection.execute(mine).scalar() == self.run

    def is_over(self) -> bool:
        """Whether the run exists and is `finished` or `incomplete`; only a resume plays it further."""
        return self.exists() and self.state() in OVER

    def manifest(self) -> Manifest:
        """The run's manifest. Raises StoreError where the run does not exist or is of another schema version.

        Raises DatabaseError where the database is unavailable.
        """
        check_name(self.run)
        try:
            if not sa.inspect(self.engine).has_table(run_table.name):
                path = file_of(self.engine)
                lost = f" ({path}: {lost})" if path and (lost := losses(self.engine, self.run)) else ""
                raise StoreError(f"run {self.run!r} was stopped before it began{lost}; run its plan again")
            with self.engine.connect() as connection:
                columns = (run_table.c.id, run_table.c.schema_version, run_table.c.manifest)
                row = connection.execute(sa.select(*columns).where(run_table.c.id == self.run)).one_or_none()
        except sa.exc.DatabaseError as error:
            if is_transient(error):
                raise
            raise StoreError(f"run {self.run!r}: the store can't be read: {error.orig}") from error
        if row is None or row.id != self.run:  # MariaDB's tables of an earlier version find it by another case too
            raise StoreError(f"no run {self.run!r} in this store (proctor_run.id); `proctor ls` lists the runs")
        if not OLDEST_SCHEMA <= row.schema_version <= SCHEMA_VERSION:
            known = f"this one opens schemas {OLDEST_SCHEMA} to {SCHEMA_VERSION} (proctor_run.schema_version)"
            which = f"another version (schema {row.schema_version})"
            raise StoreError(f"run {self.run!r} was written by {which}; use the version that wrote it; {known}")
        return parsed(run_table.c.manifest, Manifest.model_validate_json, row.manifest)

    def check(self) -> None:
        """Check that the store can be written. Raises DatabaseError where it can't be reached, StoreError."""
        path = self.engine.url.database
        if self.engine.dialect.name == "sqlite" and path and not is_writable(path):
            raise StoreError(f"{path}: its folder can't be written to; copy the run's folder to a writable place")
        self.engine.connect().close()

    def upgrade(self) -> None:
        """Bring a run that can be read to this version's schema; called with the run's lock. Raises StoreError."""
        migrate(self.engine)
        self._change(run_table.c.schema_version < SCHEMA_VERSION, schema_version=SCHEMA_VERSION)

    def update_manifest(self, manifest: Manifest, trials: Iterable[Trial] = (), fence: int | None = None) -> None:
        """Replace the manifest with that of a resume, and add `trials`, both or neither; with `fence` as `set_state`.

        Raises Fenced.
        """
        with self.engine.begin() as connection:
            if fence is not None:
                hold_live(connection, self.run, fence)
            written = run_table.update().where(run_table.c.id == self.run).values(manifest=manifest.model_dump_json())
            connection.execute(written)
            insert_trials(connection, self.run, trials)

    def planned(self) -> tuple[dict[Pair, dict[str, int]], int]:
        """(agent, task) -> sample -> its number of epochs, for all trials there are, and the number of the next one."""
        t, there = trial_table.c, dict[Pair, dict[str, int]]()
        query = sa.select(t.agent, t.task, t.sample, sa.func.count(), sa.func.max(t.id)).where(t.run == self.run)
        last = -1
        with self.engine.connect() as connection:
            for agent, task, sample, epochs, newest in connection.execute(query.group_by(t.agent, t.task, t.sample)):
                there.setdefault((agent, task), {})[sample] = int(epochs)
                last = max(last, int(newest))
        return there, last + 1

    def created_at(self) -> str:
        """When the run was created, in UTC, as ISO 8601 text (with microseconds since version 0.2).

        Raises StoreError where the run is not there, or holds something else.
        """
        check_name(self.run)
        text = str(self._fact(run_table.c.created_at))
        if parsed(run_table.c.created_at, datetime.datetime.fromisoformat, text).tzinfo is None:
            raise Unreadable(run_table.c.created_at, "no offset from UTC")
        return text

    def state(self) -> str:
        """The stored state: `new`, `running`, `interrupted`, `out_of_tokens`, `out_of_money`, `incomplete`, `finished`.

        A run whose clients were killed stays `running`.
        """
        return str(self._fact(run_table.c.state))

    def set_state(self, state: str, fence: int | None = None) -> None:
        """Store the run's state; with `fence`, only while that holds. Raises Fenced."""
        self._change(fence=fence, state=state)

    def request_stop(self, stop: StopRequest) -> None:
        """Ask the client that plays the run to stop; a later start or resume withdraws this. Raises StoreError.

        A request to stop at once is not weakened to one to drain.
        """
        if run_table.c.stop not in existing_columns(self.engine, run_table):
            raise StoreError(f"run {self.run!r} is played by an earlier version of Proctor; send SIGINT to its process")
        self._change(sa.or_(run_table.c.stop.is_(None), run_table.c.stop != "now"), stop=stop)

    def requested_stop(self) -> StopRequest | None:
        """What was asked since the run's last start or resume. Raises DatabaseError."""
        stop: StopRequest | None = self._fact(run_table.c.stop)
        return stop

    def note(self, text: str) -> None:
        """Add a line of a person's to the run's notes, with its time; a run under way goes on. Raises DatabaseError."""
        if run_table.c.notes not in existing_columns(self.engine, run_table):
            migrate(self.engine)
        line = f"{now_text()[:16].replace('T', ' ')} UTC: {' '.join(text.split())}\n"
        self._change(notes=sa.func.coalesce(run_table.c.notes, "").concat(line))

    def notes(self) -> tuple[str, ...]:
        """The run's notes, each with its time, the oldest first."""
        return tuple((self._fact(self.table(run_table).c.notes) or "").split("\n")[:-1])

    def _fact(self, column: sa.ColumnElement[Any]) -> Any:
        """A column of the run's row, in the table or in what stands for it."""
        with self.engine.connect() as connection:
            mine = sa.select(column).where(column.table.c.id == self.run)
            return connection.execute(mine).scalar_one()

    def _change(self, *where: sa.ColumnElement[bool], fence: int | None = None, **values: object) -> None:
        """Change the run's row where conditions hold; with `fence`, only while that holds. Raises Fenced."""
        with self.engine.begin() as connection:
            if fence is not None:
                hold_live(connection, self.run, fence)
            connection.execute(run_table.update().where(run_table.c.id == self.run, *where).values(values))

    def take_over(self) -> int:
        """Become the run's client: the number of its fence. Writes with an earlier number are rejected from now on.

        Every trial without a score is to be played, but for those whose input was refused: they are never asked again.
        """
        run, mine = run_table, run_table.c.id == self.run
        t, of_run = trial_table.c, shard_table.c.run == self.run
        with self.engine.begin() as connection:
            changed = {"fence": run.c.fence + 1, "state": "running", "levels": "{}", "stop": None}
            connection.execute(run.update().where(mine).values(changed))
            fence = int(connection.execute(sa.select(run.c.fence).where(mine)).scalar_one())
            last = sa.select(shard_table.c.standing).where(of_run).order_by(shard_table.c.shard.desc()).limit(1)
            row = {"run": self.run, "shard": fence, "state": LIVE, "beats": 0}
            row["standing"] = connection.execute(last).scalar() or "{}"
            connection.execute(shard_table.delete().where(of_run))
            connection.execute(live_table.delete().where(live_table.c.run == self.run))
            # As ranges, since no index finds what differs from a value.
            held = sa.and_(t.run == self.run, t.score.is_(None), sa.or_(t.holder < FREE, t.holder > FREE))
            held = sa.and_(held, sa.or_(t.reason.is_(None), t.reason != FinishReason.REFUSED.value))
            connection.execute(trial_table.update().where(held).values(holder=FREE))
            connection.execute(shard_table.insert(), row)
            connection.execute(live_table.insert(), {"run": self.run, "shard": fence, "beat": 0, "view": ""})
            return fence

    def exchange_spent(self, fence: int, spent: Mapping[str, Usage], parts: Collection[str]) -> dict[str, Usage]:
        """Tell what this client has spent by agent; what other runs of the same database have told. Raises Fenced."""
        shard = shard_table.c
        mine = sa.and_(shard.run == self.run, shard.shard == fence)
        counts = {agent: dict(zip(_COUNTS, usage, strict=True)) for agent, usage in spent.items()}
        told = json.dumps({"spent": counts})
        elsewhere: dict[str, Usage] = {}
        with self.engine.begin() as connection:
            hold_live(connection, self.run, fence)
            connection.execute(shard_table.update().where(mine).values(standing=told))
            for text in connection.execute(sa.select(shard.standing).where(shard.run.in_(parts))).scalars():
                for agent, tokens in parsed(shard.standing, _spent, text).items():
                    elsewhere[agent] = elsewhere.get(agent, NO_USAGE).plus(tokens)
        return elsewhere

    def play_again(self, trials: Collection[int], fence: int) -> None:
        """Make these trials pending and leave all others alone until the next resume. Raises Fenced.

        The result of one that has a score moves to its last attempt; it is played anew, with a new journal.
        """
        t = trial_table.c
        ids = iter(sorted(trials))
        with self.engine.begin() as connection:
            hold_live(connection, self.run, fence)
            free = trial_table.update().where(t.run == self.run, t.score.is_(None), t.holder == FREE)
            connection.execute(free.values(holder=SETTLED))
            while batch := list(islice(ids, ROWS_AT_ONCE)):
                # By the numbers alone PostgreSQL finds nothing in its index, and reads the whole run.
                chosen = sa.and_(t.run == self.run, t.id.between(batch[0], batch[-1]), t.id.in_(batch))
                self._move_results_to_attempts(connection, chosen)
                connection.execute(trial_table.update().where(chosen, t.holder == SETTLED).values(holder=FREE))

    def _move_results_to_attempts(self, connection: sa.Connection, chosen: sa.ColumnElement[bool]) -> None:
        """The result of each chosen trial with a score becomes that of its last attempt; summaries of its pair go."""
        t, a, s = trial_table.c, attempt_table.c, summary_table.c
        query = sa.select(t.id, t.agent, t.task, t.attempts, t.finish).where(chosen, t.score.is_not(None))
        scored = connection.execute(query).all()
        for row in scored:
            last = sa.and_(a.run == self.run, a.trial == row.id, a.number == row.attempts)
            connection.execute(attempt_table.update().where(last).values(outcome=RETRIED, finish=row.finish))
        for agent, task in {(row.agent, row.task) for row in scored}:
            of_pair = sa.and_(s.run == self.run, s.agent == agent, s.task == task)
            connection.execute(summary_table.delete().where(of_pair))
        connection.execute(trial_table.update().where(chosen, t.score.is_not(None)).values(_NOT_PLAYED))

    def pending(self) -> dict[Pair, "array[int]"]:
        """(agent, task) -> the ids of its trials that are to be played, in the order in which they start.

        Those with attempts come first, as their sessions may hold slots; those whose agent's endpoint failed last.
        """
        t = trial_table.c
        failed = sa.func.coalesce(t.reason, "") == FinishReason.AGENT_ERROR.value
        query = sa.select(t.agent, t.task, t.id, sa.case((failed, 2), (t.attempts > 0, 0), else_=1))
        query = query.where(t.run == self.run, t.score.is_(None), t.holder == FREE)
        kinds_of: dict[Pair, list[array[int]]] = defaultdict(lambda: [array("i") for _ in range(3)])
        with self.engine.connect() as connection:
            for agent, task, number, kind in connection.execution_options(stream_results=True).execute(query):
                kinds_of[agent, task][kind].append(number)
        begun_first = sorted(kinds_of, key=lambda pair: (not kinds_of[pair][0], min(chain(*kinds_of[pair]))))
        ids = {pair: array("i") for pair in begun_first}
        for pair, of_pair in ids.items():
            for kind in kinds_of.pop(pair):  # sorted here, where need be: for the order SQLite would read whole rows
                of_pair.extend(kind if all(map(lt, kind, kind[1:])) else array("i", sorted(kind)))
        return ids

    def trial(self, number: int) -> Trial:
        """One of the run's trials."""
        with self.engine.connect() as connection:
            row = connection.execute(_TRIAL, {"b_run": self.run, "b_trial": number}).one()
        return Trial.model_construct(**row._mapping)

    def trials(self, task: str | None = None) -> Iterator[Trial]:
        """The run's trials, or those of a task, in the run's order; few are in memory at once."""
        t = self.table(trial_table).c
        mine = (t.run == self.run, sa.true() if task is None else t.task == task)
        query = sa.select(*(t[name] for name in Trial.model_fields)).where(*mine).order_by(t.id)
        return (record(Trial, row) for row in self.streamed(query))

    def journal(self, trial: int) -> tuple[int, list[Turn], Usage]:
        """A trial's newest journal: its number (from 0), its turns, and the tokens paid in the ones before it.

        Where the last attempt diverged or was retried, that is a new one without turns.
        """
        mine = {"b_run": self.run, "b_trial": trial}
        with self.engine.connect() as connection:
            last = connection.execute(_LAST_ATTEMPT, mine).one_or_none()
            newest = 0 if last is None else int(last.journal) + (last.outcome in (DIVERGED, RETRIED))
            rows = connection.execute(_TURNS, {**mine, "b_journal": newest}).mappings().all()
            paid = connection.execute(_PAID_BEFORE, {**mine, "b_journal": newest}).mappings().one()
        return newest, [turn_of(row) for row in rows], tokens_of(paid)

    def calls(self, trial: int) -> list[tuple[int, Turn]]:
        """(journal, call) for the model calls of a function in turns of a trial that have no row, in their order."""
        with self.engine.connect() as connection:
            rows = connection.execute(_CALLS, {"b_run": self.run, "b_trial": trial}).mappings()
            return [(row["journal"], turn_of(row)) for row in rows]

    def replies(self, trial: int) -> list[KeptReply]:
        """Replies of models on the environment's side in a trial, over all its attempts, in the order of first use."""
        r = reply_table.c
        query = sa.select(reply_table).where(r.run == self.run, r.trial == trial).order_by(r.number)
        with self.engine.connect() as connection:
            return [kept_reply(row) for row in connection.execute(query).mappings()]

    def last_session(self, trial: int) -> str | None:
        """The session of a trial's newest attempt; None where there is none or it has ended."""
        with self.engine.connect() as connection:
            row = connection.execute(_LAST_ATTEMPT, {"b_run": self.run, "b_trial": trial}).one_or_none()
        return str(row.session) if row is not None and row.outcome is None else None

    def write_summary(self, agent: str, task: str, scored: int, summary: Summary) -> None:
        """Store the environment's own metrics of a pair, and the number of scored trials behind them."""
        s = summary_table.c
        with self.engine.begin() as connection:
            connection.execute(summary_table.delete().where(s.run == self.run, s.agent == agent, s.task == task))
            row = {"run": self.run, "agent": agent, "task": task, "scored": scored}
            connection.execute(summary_table.insert(), {**row, "summary": summary.model_dump_json()})


_COUNTS = [name.removesuffix("_tokens") for name in Usage._fields]
"""The names of a usage's counts among what clients tell."""


def _spent(standing: str) -> dict[str, Usage]:
    """agent -> tokens that a client told to have spent."""
    spent: Any = json_object(standing).get("spent", {})
    return {agent: Usage(*(tokens.get(name, 0) for name in _COUNTS)) for agent, tokens in spent.items()}
