"""The journal writes a client's attempts, turns and final rows. A write is acknowledged once it is durable."""

import asyncio
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import sqlalchemy as sa

from eval_client.metrics import JournalMetrics
from eval_client.store.connection import (
    Fenced,
    StoreError,
    damaged,
    hold_live,
    is_transient,
    reason,
    too_large,
)
from eval_client.store.records import Trial, Turn, now_text, reply_row
from eval_client.store.sqlite_file import Acknowledged
from eval_client.store.store import Store
from eval_client.store.tables import (
    SETTLED,
    attempt_table,
    call_table,
    live_table,
    reply_table,
    trial_table,
    turn_table,
)
from eval_client.store.values import is_damage
from proctor.observability.redaction import redacted
from proctor.session.kept_replies import KeptReply
from proctor.types import Finish, FinishReason, Usage
from task_server.wire.messages import VERSION

MAX_GROUP = 512
RETRY_S = 1.0
MOST_TOKENS = 2**63 - 1
"""The largest token count of a trial that its columns can hold."""


class WriteRefused(Exception):
    """The database rejects this row; other rows are not affected."""


class JournalClosed(Exception):
    """The journal was closed before the write was made durable."""


@dataclass(frozen=True)
class Cost:
    """Turns, tokens and seconds of a trial, over all its attempts that count."""

    turns: int
    """Those that the agent answered."""
    usage: Usage
    seconds: float
    cut_answers: int = 0
    """Answers that the endpoint cut at `max_tokens`."""


Statement = sa.Insert | sa.Update
Operation = tuple[Statement, dict[str, object]]


@dataclass(frozen=True)
class Write:
    """Operations that become durable together. A trial never has two writes queued."""

    operations: tuple[Operation, ...]
    done: asyncio.Future[None]


def _update(
    table: sa.Table, keys: Sequence[str], changed: Sequence[str], *more: sa.ColumnElement[bool], **fixed: int
) -> sa.Update:
    """Changes columns of the row with these keys; the values of both are named as by `_bound`."""
    mine = (table.c[name] == sa.bindparam(f"b_{name}") for name in keys)
    constants: dict[str, sa.ColumnElement[int]] = {
        name: sa.literal_column(str(number)) for name, number in fixed.items()
    }
    return table.update().where(*mine, *more).values({name: sa.bindparam(f"b_{name}") for name in changed} | constants)


def _bound(**values: object) -> dict[str, object]:
    return {f"b_{name}": value for name, value in values.items()}


_ENDS = ("reason", "score", "cause", "finish", "turns", *Usage._fields, "seconds", "ended_at", "cut_answers")
_ATTEMPT, _TURN, _CALL, _REPLY = (table.insert() for table in (attempt_table, turn_table, call_table, reply_table))
_COUNT = _update(trial_table, ("run", "id"), ("attempts",))
_ATTEMPT_END = _update(
    attempt_table,
    ("run", "trial", "number"),
    ("outcome", "cause", "worker", "ended_at"),
    attempt_table.c.outcome.is_(None),
)
_FINAL = _update(trial_table, ("run", "id"), _ENDS, trial_table.c.score.is_(None), holder=SETTLED)
_LIVE = _update(live_table, ("run", "shard"), ("beat", "view"))
_ORDER = (_ATTEMPT, _COUNT, _REPLY, _CALL, _TURN, _ATTEMPT_END, _FINAL, _LIVE)
_STOPPED = '{"kind":"stop"'


class Journal:
    """Writes from many coroutines, grouped into commits by one thread.

    While the database can't be written to (full, locked, unavailable), every writer waits. `on_trouble` is called with
    the reason, and with None when writes succeed again. Nothing is acknowledged meanwhile, so nothing is lost.
    """

    def __init__(self, store: Store, fence: int, on_trouble: Callable[[str | None], None] = lambda _: None) -> None:
        self._store, self._fence, self._on_trouble = store, fence, on_trouble
        self._acknowledged: Acknowledged | None = None
        self.metrics = JournalMetrics()
        self.turns = 0
        """Turns that this client has made durable."""
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[Write | None] = queue.SimpleQueue()
        self._not_durable: dict[asyncio.Future[None], tuple[float, tuple[Operation, ...]]] = {}
        self._compiled: dict[Statement, tuple[str, Callable[[Any], Any]]] = {}
        """Each as the store's driver takes it, and what gives the values of a row in that form."""
        self._beat = 0
        self._published: asyncio.Future[None] | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._write_all, name="journal", daemon=True)
        self._thread.start()

    async def begin(self, trial: Trial, number: int, journal: int, session: str, digest: str | None = None) -> None:
        """Record a new attempt. Called before anything is started, so that a crash counts as an attempt too."""
        row = {"run": self._store.run, "trial": trial.id, "number": number, "journal": journal, "session": session}
        row |= {"digest": digest, "version": VERSION, "started_at": now_text()}
        await self._put((_ATTEMPT, row), (_COUNT, _bound(run=self._store.run, id=trial.id, attempts=number)))

    def turn(self, trial: Trial, journal: int, turn: Turn, call: int | None = None) -> Coroutine[None, None, None]:
        """Record a turn; durable before the agent's reply is sent to the environment.

        With `call`: record the model call of that number, from 0, which a function made in the turn.
        """
        keys = {"run": self._store.run, "trial": trial.id, "journal": journal, "ended_at": now_text()}
        row = {**vars(turn), **keys, "reply": turn.reply.model_dump_json()}
        del row["calls"]
        return self._put((_TURN, row) if call is None else (_CALL, {**row, "number": call}))

    async def replies(self, trial: Trial, first: int, replies: Sequence[KeptReply]) -> None:
        """Record replies of models on the environment's side; `first` is the number of the first of them, from 0."""
        keys = {"run": self._store.run, "trial": trial.id}
        rows = (reply_row(kept) | {**keys, "number": number} for number, kept in enumerate(replies, first))
        await self._put(*((_REPLY, row) for row in rows))

    async def end(self, trial: Trial, number: int, outcome: str, cause: str | None, worker: str | None) -> None:
        """Record the end of an attempt without a final row: lost, diverged, faulty."""
        await self._put(self._ending(trial, number, outcome, cause, worker))

    async def finish(
        self, trial: Trial, number: int, worker: str | None, finish: Finish, cost: Cost, *, outcome: str = "finished"
    ) -> None:
        """Record the trial's final row and, unless it has ended, the end of its last attempt, in one commit."""
        told = finish.reason.is_fault or finish.reason is FinishReason.REFUSED
        cause = str(finish.detail.get("cause", "unknown")) if told else None
        ends = {"reason": finish.reason.value, "score": finish.score, "cause": cause, "ended_at": now_text()}
        counts = {name: min(count, MOST_TOKENS) for name, count in cost.usage._asdict().items()}
        counts |= {"turns": cost.turns, "seconds": cost.seconds, "cut_answers": cost.cut_answers}
        final = {**counts, **ends, "finish": finish.model_dump_json()}
        ending = self._ending(trial, number, outcome, cause, worker)
        await self._put(ending, (_FINAL, _bound(run=self._store.run, id=trial.id, **final)))

    def _ending(self, trial: Trial, number: int, outcome: str, cause: str | None, worker: str | None) -> Operation:
        told = _bound(outcome=outcome, cause=cause and redacted(cause), worker=worker, ended_at=now_text())
        return _ATTEMPT_END, {**_bound(run=self._store.run, trial=trial.id, number=number), **told}

    def publish(self, view: str) -> None:
        """Write this client's live view with the next commit, without waiting for it. A failed write changes nothing.

        Whoever publishes again before it is `published` lets views queue up.
        """
        if self._closing.is_set():
            return
        self._beat += 1
        row = _bound(run=self._store.run, shard=self._fence, beat=self._beat, view=view)
        self._published = self._loop.create_future()
        self._published.add_done_callback(lambda written: written.exception())  # the turns' writers raise it too
        self._queue.put(Write(((_LIVE, row),), self._published))

    @property
    def published(self) -> bool:
        """Whether the last live view has been written, or has failed to be."""
        return self._published is None or self._published.done()

    @property
    def waiting_since(self) -> float | None:
        """When the oldest write that is not durable yet was queued, by the monotonic clock; None where all are."""
        return next((queued_at for queued_at, _ in self._not_durable.values()), None)

    def not_durable(self) -> tuple[int, int]:
        """(turns, results) that are queued and not durable yet."""
        statements = [statement for _, operations in self._not_durable.values() for statement, _ in operations]
        return statements.count(_TURN), statements.count(_FINAL)

    async def close(self) -> None:
        """Write what is queued and stop the thread."""
        self._closing.set()
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    async def _put(self, *operations: Operation) -> None:
        if self._closing.is_set():
            raise JournalClosed("the journal is closed")
        done: asyncio.Future[None] = self._loop.create_future()
        self._not_durable[done] = time.monotonic(), operations
        self._queue.put(Write(operations, done))
        try:
            await done
        finally:
            del self._not_durable[done]

    def _write_all(self) -> None:
        while group := self._next_group():
            error = self._write_until_durable(group)
            if isinstance(error, WriteRefused) and len(group) > 1:
                for write in group:
                    self._loop.call_soon_threadsafe(resolve, [write], self._write_until_durable([write]))
            else:
                self._loop.call_soon_threadsafe(resolve, group, error)

    def _next_group(self) -> list[Write]:
        """The queued writes, at most MAX_GROUP; waits for the first. Empty once the journal is closed."""
        first = self._queue.get()
        if first is None:
            return []
        group = [first]
        while len(group) < MAX_GROUP and not self._queue.empty():
            write = self._queue.get()
            if write is None:
                self._queue.put(None)
                break
            group.append(write)
        return group

    def _write_until_durable(self, group: list[Write]) -> Exception | None:
        """Write a group; the error that prevents it, or None once it is durable. Retries transient errors."""
        unknown_outcome = False
        while True:
            begun = time.monotonic()
            try:
                self.commit(group, again=unknown_outcome)
            except (Fenced, StoreError) as error:
                return error
            except sa.exc.SQLAlchemyError as error:
                if is_transient(error):
                    if unknown_outcome and (
                        why := too_large(self._store.engine, (row for write in group for _, row in write.operations))
                    ):
                        return WriteRefused(f"the store refuses a row: {why}")
                    unknown_outcome = True
                    self._report(f"the store can't be written to, waiting: {reason(error)}")
                    if self._closing.wait(RETRY_S):
                        return JournalClosed(f"the store can't be written to: {reason(error)}")
                    continue
                if is_damage(error):
                    return StoreError(damaged(self._store.engine, reason(error)))
                return WriteRefused(f"the store refuses a row: {reason(error)}")
            except Exception as error:  # ours: the writer that waits for it raises it, which ends the run
                error.add_note(f"while the journal of run {self._store.run!r} wrote to its store")
                return error
            if unknown_outcome:
                self._report(None)
            self.metrics.writes.observe(len(group))
            self.metrics.commit_s.observe(time.monotonic() - begun)
            return None

    def commit(self, group: list[Write], *, again: bool) -> None:
        """Make one commit. `again`: an earlier commit may have succeeded unnoticed, so rows that exist are ours."""
        rows_of: defaultdict[Statement, list[dict[str, object]]] = defaultdict(list)
        for write in group:
            for statement, row in write.operations:
                rows_of[statement].append(row)
        acknowledged = self._acknowledged = self._acknowledged or Acknowledged(self._store.engine, self._store.run)
        with self._store.engine.begin() as connection:
            hold_live(connection, self._store.run, self._fence)
            for statement in _ORDER:
                rows = rows_of[statement]
                if again:
                    rows = [row for row in rows if not _exists(connection, statement, row)]
                if rows:
                    self._execute(connection, statement, rows)
        acknowledged.add(len(rows_of[_TURN]), len(rows_of[_ATTEMPT]), len(rows_of[_REPLY]))
        for row in rows_of[_TURN]:
            self.turns += not str(row["reply"]).startswith(_STOPPED)

    def _execute(self, connection: sa.Connection, statement: Statement, rows: list[dict[str, object]]) -> None:
        """Execute a statement for rows whose values its driver takes as they are: SQLAlchemy would go through each."""
        if statement not in self._compiled:
            compiled: Any = statement.compile(dialect=connection.dialect, column_keys=[*rows[0]])
            values: Callable[[Any], Any] = itemgetter(*compiled.positiontup) if compiled.positiontup else dict
            self._compiled[statement] = compiled.string, values
        text, values = self._compiled[statement]
        connection.exec_driver_sql(text, [*map(values, rows)])

    def _report(self, trouble: str | None) -> None:
        self._loop.call_soon_threadsafe(self._on_trouble, trouble)


def _exists(connection: sa.Connection, statement: Statement, row: dict[str, object]) -> bool:
    """Whether the row of an insert exists already; False for other statements."""
    if not isinstance(statement, sa.Insert) or not isinstance(table := statement.table, sa.Table):
        return False
    key = (column == row[column.name] for column in table.primary_key.columns)
    return connection.execute(sa.select(sa.literal(1)).select_from(table).where(*key)).first() is not None


def resolve(group: Sequence[Write], error: Exception | None) -> None:
    """Tell those who wait for a group that it is durable, or why it never will be."""
    for write in group:
        if write.done.done():
            continue
        if error is None:
            write.done.set_result(None)
        else:
            write.done.set_exception(error)
