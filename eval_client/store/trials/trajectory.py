"""A trial of a run: its row, its attempts, the turns of one of its journals, and what was sent and said in them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from pydantic import Field

from eval_client.store.connection import StoreError
from eval_client.store.records import JournalledTools, ModelCall, Turn, TurnFigures, answers, record, turn_of
from eval_client.store.store import Store
from eval_client.store.tables import attempt_table, call_table, trial_table, turn_table
from eval_client.store.values import json_object, parsed
from proctor.session.transcript import Transcript
from proctor.types import Action, Finish, FinishReason, Message, Observation, ParsedAction, Tool, Value
from task_server.wire.messages import Act, Stop

BATCH = 20
"""Trials that are read at once: few enough for memory, enough to spare queries."""
SHOWN_NAMES = 10
"""Names of agents, tasks or samples in an error."""


class AttemptRecord(Value):
    """One attempt at a trial. `outcome` is None while it is under way, and for ever where its client was killed."""

    number: int
    journal: int
    """The journal that the attempt replayed and went on with."""
    outcome: str | None = None
    cause: str | None = None
    worker: str | None = None
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
    finish: Finish | None = None
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
    journals: tuple[int, ...] = ()
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
    t, u = trial_table.c, turn_table.c
    with store.engine.connect() as connection:
        found = sa.select(u.journal).where(u.run == store.run, u.trial == trial).distinct().order_by(u.journal)
        journals = list(connection.execute(found).scalars())
        chosen = journal if journal is not None else max(journals, default=0)
        read = _read(connection, store, [trial], sa.literal(chosen))
        if not read:
            count = connection.execute(sa.select(sa.func.count()).where(t.run == store.run)).scalar_one()
            raise StoreError(f"run {store.run!r} has no trial {trial}; its trials are 0 to {count - 1}")
    if journal is not None and journal not in journals:
        raise StoreError(f"trial {trial} has no journal {journal}; it has: {_some(journals)}")
    return read[0].model_copy(update={"journal": chosen, "journals": tuple(journals)})


def read_trajectories(store: Store, agent: str, task: str) -> Iterator[Trajectory]:
    """The trials of a pair that are over, in the run's order, each with the journal of its newest attempt.

    BATCH are in memory at once.
    """
    t = trial_table.c
    mine = (t.run == store.run, t.agent == agent, t.task == task, t.reason.is_not(None))
    with store.engine.connect() as connection:
        ids = list(connection.execute(sa.select(t.id).where(*mine).order_by(t.id)).scalars())
    a, u = attempt_table.c, store.table(turn_table).c
    newest = sa.select(sa.func.max(a.journal)).where(a.run == u.run, a.trial == u.trial).scalar_subquery()
    for start in range(0, len(ids), BATCH):
        with store.engine.connect() as connection:
            read = _read(connection, store, ids[start : start + BATCH], newest)
        yield from read


def _read(
    connection: sa.Connection, store: Store, ids: Sequence[int], journal: sa.ColumnElement[int]
) -> list[Trajectory]:
    """Some trials in the order of their ids, with the turns of one journal of each."""
    t, a, u = (store.table(table).c for table in (trial_table, attempt_table, turn_table))
    calls, c = defaultdict[tuple[int, int, int], list[ModelCall]](list), store.table(call_table).c
    made = sa.select(*c).where(c.run == store.run, c.trial.in_(ids)).order_by(c.trial, c.journal, c.turn, c.number)
    for row in connection.execute(made).mappings():
        calls[row["trial"], row["journal"], row["turn"]].append(_model_call(row))
    turns: dict[int, list[Turn]] = defaultdict(list)
    attempts: dict[int, list[AttemptRecord]] = defaultdict(list)
    told = sa.select(*u).where(u.run == store.run, u.trial.in_(ids), u.journal == journal)
    for row in connection.execute(told.order_by(u.trial, u.turn)).mappings():
        mine = calls[row["trial"], row["journal"], row["turn"]]
        turns[row["trial"]].append(turn_of(row).model_copy(update={"calls": tuple(mine)}))
    tried = sa.select(*a).where(a.run == store.run, a.trial.in_(ids))
    for row in connection.execute(tried.order_by(a.trial, a.number)).mappings():
        attempts[row["trial"]].append(record(AttemptRecord, row, finish=_finish(attempt_table, row)))
    rows = connection.execute(sa.select(*t).where(t.run == store.run, t.id.in_(ids)).order_by(t.id)).mappings()
    return [_trajectory(row, attempts[row["id"]], turns[row["id"]]) for row in rows]


def _model_call(row: sa.RowMapping) -> ModelCall:
    """The call in a row. Raises StoreError."""
    reply, asked = turn_of(row).reply, parsed(call_table.c.observation, json_object, row["observation"])
    figures = {name: row[name] for name in ("prompt_tokens", "completion_tokens", "model_seconds")}
    action = reply.action if isinstance(reply, Act) else None
    return parsed(call_table.c.reply, ModelCall.model_validate, {**figures, **asked, "action": action})


def _trajectory(row: sa.RowMapping, attempts: Sequence[AttemptRecord], turns: Sequence[Turn]) -> Trajectory:
    return record(
        Trajectory,
        {name: row[name] for name in row if name not in ("attempts", "turns")},  # how many they are
        trial=row["id"],
        finish=_finish(trial_table, row),
        attempts=tuple(attempts),
        journal=max((each.journal for each in attempts), default=0),
        turns=tuple(turns),
    )


def _finish(table: sa.Table, row: Mapping[Any, Any]) -> Finish | None:
    """The result in a row, where it has one. Raises StoreError."""
    return None if row["finish"] is None else parsed(table.c.finish, Finish.kept, row["finish"])


def _some(names: Sequence[object]) -> str:
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return (", ".join(map(str, names[:SHOWN_NAMES])) or "none") + more


class ConversationTurn(TurnFigures):
    """One turn as it was played: what the agent was sent, and what it answered."""

    conversation: str
    fresh: bool
    """Whether the conversation's history was discarded before this turn."""
    earlier: tuple[Message, ...]
    """The messages that the conversation already held and that were sent again."""
    messages: tuple[Message, ...]
    """The messages after them: new, or changed by the environment."""
    tools: tuple[Tool, ...]
    action: Action | None
    """None where the agent stopped."""
    reading: ParsedAction | None = None
    """How a world from a user's file read the action when it was played."""
    stop: FinishReason | None
    """Why the agent stopped; None where it answered."""
    finish_reason: str | None
    """The endpoint's; `length` is an answer cut by `max_tokens`."""

    @property
    def title(self) -> str:
        """`turn 3`, or where the agent only stopped `after turn 2`."""
        return f"after turn {self.turn - 1}" if self.action is None else f"turn {self.turn}"


def conversation(turns: Sequence[Turn], first: int = 0) -> Iterator[ConversationTurn]:
    """The turns of a journal from an index on, each with its whole history as the client sent it."""
    transcript, tools, histories = Transcript(), JournalledTools(), dict[str, Sequence[Message]]()
    for index, turn in enumerate(turns):
        observation = parsed(
            turn_table.c.observation, lambda text: Observation.model_validate(tools.whole(text)), turn.observation
        )
        action = turn.reply.action if isinstance(turn.reply, Act) else None
        before = histories.get(observation.conversation, ())
        known = len(before)
        sent = transcript.observe(observation)  # adds to `before`, unless the history is sent anew
        histories[observation.conversation] = sent
        if index >= first:
            if observation.fresh:  # of a history that is sent anew, its beginning may be the old one
                pairs = enumerate(zip(before, sent, strict=False))
                known = next((n for n, (a, b) in pairs if a is not b and a != b), min(known, len(sent)))
            yield _turn(turn, observation, sent, known)
        if action is not None:
            transcript.answer(observation, action)


def _turn(turn: Turn, observation: Observation, sent: Sequence[Message], known: int) -> ConversationTurn:
    """A turn of which the first `known` messages had been sent before."""
    return record(
        ConversationTurn,
        {name: getattr(turn, name) for name in TurnFigures.model_fields},
        conversation=observation.conversation,
        fresh=observation.fresh,
        earlier=tuple(sent[:known]),
        messages=tuple(sent[known:]),
        tools=observation.tools,
        action=turn.reply.action if isinstance(turn.reply, Act) else None,
        reading=turn.reply.reading if isinstance(turn.reply, Act) else None,
        stop=turn.reply.reason if isinstance(turn.reply, Stop) else None,
        finish_reason=turn.stop,
    )


def first_difference(left: Sequence[Turn | ConversationTurn], right: Sequence[Turn | ConversationTurn]) -> int | None:
    """The index of the first turn whose observations differ or which only one side has; None where there is none."""
    for index in range(max(len(left), len(right))):
        if index >= min(len(left), len(right)) or left[index].digest != right[index].digest:
            return index
    return None
