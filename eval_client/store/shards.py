"""The shards of a run, one per client: their rows hold each shard's state, published state and heartbeat counter.

Rows are locked in the order run, shard, trial, so that no two transactions wait for each other. A shard's own row is
the fence: every transaction that writes for the shard requires the row to be live, and a shard is ended before its
trials go to others.
"""

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import sqlalchemy as sa
from pydantic import Field

from eval_client.core.limits.shares import EndpointLevel, ShardState
from eval_client.core.spend import Tokens
from eval_client.store.connection import RunOver, StoreError, hold_live
from eval_client.store.tables import FREE, LEFT, LIVE, LOST, live_table, run_table, shard_table, trial_table
from proctor.types import FinishReason, Value

ONLY_POSTGRESQL = "only PostgreSQL supports several clients of one run; start it with --store postgresql+psycopg://..."
OVER = ("finished", "incomplete")
"""States of a run that is over."""

_OF_RUN = shard_table.c.run == sa.bindparam("b_run")
_LIVE_OF_RUN = sa.and_(_OF_RUN, shard_table.c.state == LIVE)
_LIVE_ONE = sa.and_(_LIVE_OF_RUN, shard_table.c.shard == sa.bindparam("b_shard"))
# What every client executes every few seconds is built once: building a statement costs more than executing it.
_BEAT = shard_table.update().where(_LIVE_ONE).values(beats=shard_table.c.beats + 1)
_BEATS = sa.select(shard_table.c.shard, shard_table.c.beats).where(_LIVE_OF_RUN)
_TOUCH = run_table.update().where(run_table.c.id == sa.bindparam("b_run")).values(fence=run_table.c.fence)
_LEVELS = sa.select(run_table.c.levels).where(run_table.c.id == sa.bindparam("b_run")).with_for_update()
_STANDINGS = sa.select(shard_table.c.shard, shard_table.c.state, shard_table.c.standing).where(_OF_RUN)
_PUBLISH = shard_table.update().where(_LIVE_ONE).values(standing=sa.bindparam("b_standing"))


class Levels(Value):
    """The concurrency limit of every endpoint of a run, over all its shards."""

    endpoints: dict[str, EndpointLevel] = Field(default_factory=dict)


class ShardSnapshot(NamedTuple):
    """The published state of all shards of a run, at one moment."""

    now: float
    """By the database's clock, in seconds."""
    levels: Levels
    live: dict[int, ShardState]
    gone: list[ShardState]
    """The last state of shards that are lost or left; their spending still counts."""


def several_may_work(engine: sa.Engine) -> bool:
    """Whether a run in this database may have several clients."""
    return engine.dialect.name == "postgresql"


def _is(run: str, shard: int) -> sa.ColumnElement[bool]:
    return sa.and_(shard_table.c.run == run, shard_table.c.shard == shard)


def take_over(engine: sa.Engine, run: str) -> int:
    """Start a new first shard and return its number. Ends all others; every trial without a score becomes unclaimed,

    but for those whose input was refused: they are never asked again.
    """
    with engine.begin() as connection:
        shard = _next_number(connection, run)
        connection.execute(
            run_table.update().where(run_table.c.id == run).values(state="running", levels="{}", stop=None)
        )
        connection.execute(shard_table.delete().where(shard_table.c.run == run))
        connection.execute(live_table.delete().where(live_table.c.run == run))
        t = trial_table.c
        # As ranges, since no index finds what differs from a value.
        held = sa.and_(t.run == run, t.score.is_(None), sa.or_(t.holder < FREE, t.holder > FREE))
        held = sa.and_(held, sa.or_(t.reason.is_(None), t.reason != FinishReason.REFUSED.value))
        connection.execute(trial_table.update().where(held).values(holder=FREE))
        _add(connection, run, shard)
        return shard


def join(engine: sa.Engine, run: str) -> int:
    """Add a shard beside others and return its number. Raises RunOver, or StoreError where the run is not running."""
    with engine.begin() as connection:
        shard = _next_number(connection, run)
        state = connection.execute(sa.select(run_table.c.state).where(run_table.c.id == run)).scalar_one()
        if state in OVER:
            raise RunOver(f"run {run!r} is {state}")
        if state != "running":
            raise StoreError(f"run {run!r} is {state}: there is nothing to join; resume it: proctor resume {run}")
        _add(connection, run, shard)
        return shard


def _next_number(connection: sa.Connection, run: str) -> int:
    mine = run_table.c.id == run
    connection.execute(run_table.update().where(mine).values(fence=run_table.c.fence + 1))
    return int(connection.execute(sa.select(run_table.c.fence).where(mine)).scalar_one())


def _add(connection: sa.Connection, run: str, shard: int) -> None:
    row = {"run": run, "shard": shard, "state": LIVE, "beats": 0, "standing": ShardState().model_dump_json()}
    connection.execute(shard_table.insert(), row)
    connection.execute(live_table.insert(), {"run": run, "shard": shard, "beat": 0, "view": ""})


def send_heartbeat(connection: sa.Connection, run: str, shard: int) -> None:
    """Increment this shard's heartbeat counter. Raises Fenced."""
    if connection.execute(_BEAT, {"b_run": run, "b_shard": shard}).rowcount != 1:
        hold_live(connection, run, shard)


def heartbeats(engine: sa.Engine, run: str) -> dict[int, int]:
    """live shard -> its heartbeat counter"""
    with engine.connect() as connection:
        return {int(shard): int(beats) for shard, beats in connection.execute(_BEATS, {"b_run": run})}


def observed_heartbeats(engine: sa.Engine, run: str) -> dict[int, int]:
    """Heartbeat counters for an observer that sends none. Raises OperationalError if the database is read-only."""
    with engine.begin() as connection:
        connection.execute(_TOUCH, {"b_run": run})
    return heartbeats(engine, run)


def lose(engine: sa.Engine, run: str, shard: int, heartbeats: int) -> bool:
    """End a silent shard and release its trials.

    Returns False where its counter is no longer `heartbeats`, or where it has ended already.
    """
    with engine.begin() as connection:
        silent = sa.and_(_is(run, shard), shard_table.c.state == LIVE, shard_table.c.beats == heartbeats)
        if connection.execute(shard_table.update().where(silent).values(state=LOST)).rowcount != 1:
            return False
        _free(connection, run, shard)
        return True


def leave(engine: sa.Engine, run: str, shard: int, unless_last: bool = False) -> bool:
    """End this shard and release its trials. Raises Fenced.

    Returns False where `unless_last` is set and this is the last live shard, which then stays live.
    """
    with engine.begin() as connection:
        connection.execute(sa.select(run_table.c.id).where(run_table.c.id == run).with_for_update())
        if unless_last:
            others = sa.and_(shard_table.c.run == run, shard_table.c.state == LIVE, shard_table.c.shard != shard)
            if not connection.execute(sa.select(sa.func.count()).where(others)).scalar_one():
                return False
        mine = sa.and_(_is(run, shard), shard_table.c.state == LIVE)
        if connection.execute(shard_table.update().where(mine).values(state=LEFT)).rowcount != 1:
            hold_live(connection, run, shard)
        _free(connection, run, shard)
        return True


def _free(connection: sa.Connection, run: str, shard: int) -> None:
    held = sa.and_(trial_table.c.run == run, trial_table.c.holder == shard, trial_table.c.score.is_(None))
    connection.execute(trial_table.update().where(held).values(holder=FREE))


def exchange(
    engine: sa.Engine, run: str, shard: int, settle: Callable[[ShardSnapshot], tuple[Levels, ShardState]]
) -> None:
    """Publish this shard's state, one shard at a time. Raises Fenced.

    `settle` gets a snapshot of all shards and returns the new levels and this shard's new state.
    """
    with engine.begin() as connection:
        levels = Levels.model_validate_json(connection.execute(_LEVELS, {"b_run": run}).scalar_one())
        rows = connection.execute(_STANDINGS, {"b_run": run}).all()
        states = {int(row.shard): ShardState.model_validate_json(row.standing) for row in rows}
        live = {int(row.shard) for row in rows if row.state == LIVE}
        snapshot = ShardSnapshot(
            database_now(connection),
            levels,
            {number: state for number, state in states.items() if number in live},
            [state for number, state in states.items() if number not in live],
        )
        if shard not in live:
            hold_live(connection, run, shard)
        changed, state = settle(snapshot)
        row = {"b_run": run, "b_shard": shard, "b_standing": state.model_dump_json()}
        if connection.execute(_PUBLISH, row).rowcount != 1:
            hold_live(connection, run, shard)
        if changed != levels:
            connection.execute(run_table.update().where(run_table.c.id == run).values(levels=changed.model_dump_json()))


def publish_last(engine: sa.Engine, run: str, shard: int, spent: Mapping[str, Tokens]) -> None:
    """Publish the total spending of a shard that has stopped playing, and release all its quotas. Raises Fenced."""
    with engine.begin() as connection:
        hold_live(connection, run, shard)
        text = connection.execute(sa.select(shard_table.c.standing).where(_is(run, shard))).scalar_one()
        last = ShardState.model_validate_json(text).model_copy(update={"slices": {}, "spent": dict(spent)})
        mine = shard_table.update().where(_is(run, shard))
        connection.execute(mine.values(standing=last.model_dump_json()))


class LiveRow(NamedTuple):
    """The live view of a shard, as its client last wrote it."""

    shard: int
    live: bool
    """False for a shard that is lost or left."""
    beat: int
    view: str
    """JSON; empty until the first is written."""


class RunMoment(NamedTuple):
    """A run at one moment, read without reading its trials."""

    state: str
    """The stored one."""
    fence: int
    live: tuple[LiveRow, ...]
    """By shard; empty where no client that writes live views has played the run."""


def run_moment(engine: sa.Engine, run: str) -> RunMoment:
    """The run's state and live views. Raises StoreError where the run is not there, SQLAlchemyError."""
    mine = sa.and_(shard_table.c.run == live_table.c.run, shard_table.c.shard == live_table.c.shard)
    columns = (live_table.c.shard, shard_table.c.state, live_table.c.beat, live_table.c.view)
    query = sa.select(*columns).join_from(live_table, shard_table, mine).where(live_table.c.run == run)
    with engine.connect() as connection:
        tables = sa.inspect(connection).get_table_names()
        if run_table.name not in tables:
            raise StoreError(f"run {run!r} was stopped before it began; run its plan again")
        facts = sa.select(run_table.c.state, run_table.c.fence).where(run_table.c.id == run)
        row = connection.execute(facts).one_or_none()
        if row is None:
            raise StoreError(f"run {run!r} is no longer in its store")
        there = live_table.name in tables  # a store of schema 2 has none
        rows = connection.execute(query.order_by(live_table.c.shard)).all() if there else []
    live = tuple(LiveRow(int(each.shard), each.state == LIVE, int(each.beat), each.view) for each in rows)
    return RunMoment(row.state, int(row.fence), live)


def database_now(connection: sa.Connection) -> float:
    """The database's wall clock in seconds since 1970; for SQLite, this machine's."""
    if connection.dialect.name == "sqlite":
        return time.time()
    postgresql = connection.dialect.name == "postgresql"
    clock = "extract(epoch FROM clock_timestamp())" if postgresql else "unix_timestamp(sysdate(6))"
    return float(connection.execute(sa.text(f"SELECT {clock}")).scalar_one())
