"""The server that holds the store of several clients: out of reach for one or for all, with locks of connections."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import sqlalchemy as sa

from eval_client.core.failure_detector import BEAT_S
from eval_client.store.journal import Operation
from eval_client.store.member import ShardMember
from eval_client.store.store import Store
from eval_client.store.tables import LIVE
from tests.simulation.disk import Disk, Health
from tests.simulation.loop import NOBODY, Process, State, current

KEPT_S = 25.0
"""So long the server keeps a connection whose client it can't reach."""
LONG_S = 60.0
"""Longer than a lease and all that may stand in the way of a sign of life."""
SLOW = 0.02
"""Of all statements, where the database is slow at times."""


class Connection(sa.Connection):
    """A client's connection. It breaks where the server restarts, or can't be reached."""

    def __init__(self, engine: "Engine") -> None:
        engine.database.reach()
        super().__init__(engine)
        self.database, self.owner, self.epoch = engine.database, current(), engine.database.epoch

    def check(self) -> None:
        """Raises OperationalError where the connection is broken."""
        self.database.reach()
        if self.epoch != self.database.epoch:
            raise _away("the connection was closed by the server")

    def begin(self) -> sa.RootTransaction:
        self.check()
        return super().begin()

    def rollback(self) -> None:
        self.check()
        super().rollback()

    def invalidate(self, exception: BaseException | None = None) -> None:
        """The connection beneath is everybody's, and stays."""

    def close(self) -> None:
        super().close()
        self.database.closed(self)


class Engine(sa.Engine):
    """An engine whose commits may fail, or succeed unheard."""

    def __init__(self, engine: sa.Engine, database: "Database") -> None:
        super().__init__(engine.pool, engine.dialect, engine.url)
        self.database = database
        sa.event.listen(self, "commit", lambda connection: database.reach(writes=True))

    def connect(self) -> sa.Connection:
        return Connection(self)

    @contextlib.contextmanager
    def begin(self) -> Iterator[sa.Connection]:
        with super().begin() as connection:
            yield connection
        self.database.hear()


class Database:
    """What the clients of a history share, beside the journal's way to it."""

    def __init__(self, disk: Disk, store: Store, slow_s: float, counts: Counter[str]) -> None:
        self.disk, self._raw, self._slow_s = disk, store, slow_s
        self.store = Store(Engine(store.engine, self), store.run)
        self.cut: set[Process | None] = set()
        self.epoch = 0
        self.is_full = False
        """While it refuses writes it can be read, and its connections stay."""
        self.shards: dict[Process, int] = {}
        self.counts = counts
        self._freed_at: dict[Process | None, float] = {}
        """When a client last went on after it stood still or was cut off; None for the server."""
        self._locks: dict[Connection, set[str]] = {}
        """Who holds the run's lock: `alone`, `shared` or both."""

    def is_away(self) -> bool:
        """Whether the process that runs now can't reach the server."""
        return self.disk.health is Health.REFUSING or current() in self.cut

    def reach(self, *, writes: bool = False) -> None:
        """Raises OperationalError where the process that runs now can't reach the server, or can't write."""
        if self.is_away() and (writes or not self.is_full or current() in self.cut):
            raise _away("the server is away")

    def hear(self) -> None:
        """Raises OperationalError where the answer to a commit is lost."""
        if self.disk.health is Health.UNHEARD and self.disk.rng.random() < 0.7:
            raise _away("the connection broke while it committed")

    def latency_s(self) -> float:
        """Of one way to the server."""
        draw = self.disk.rng.random
        return draw() * self._slow_s if draw() < SLOW else 0.001 + 0.02 * draw() ** 2

    # The advisory lock

    def ask_lock(self, connection: Connection, question: str, run: str) -> bool:
        """What PostgreSQL answers to a question of `eval_client.store.lock`."""
        connection.check()
        mine = self._locks.setdefault(connection, set())
        others = {kind for other, kinds in self._locks.items() if other is not connection for kind in kinds}
        if "unlock" in question:
            mine.discard("alone")
            return True
        kind = "shared" if "shared" in question else "alone"
        if others and (kind == "alone" or "alone" in others):
            return False
        mine.add(kind)
        return True

    def closed(self, connection: Connection) -> None:
        """The server hears of a connection's end at once, or where it can't a while later."""
        if connection in self._locks and connection.owner in self.cut:
            loop = asyncio.get_running_loop()
            loop.call_later(KEPT_S, self._locks.pop, connection, None, context=NOBODY)
        else:
            self._locks.pop(connection, None)

    def died(self, process: Process) -> None:
        """A client's connections end with it."""
        self._locks = {
            connection: kinds for connection, kinds in self._locks.items() if connection.owner is not process
        }

    def trouble(self, health: Health, *, is_full: bool) -> None:
        """It takes no writes for a while, or answers none; unless its disk is full it has restarted.

        Then all connections are closed, and nobody holds a lock any more.
        """
        self.disk.health, self.is_full = health, is_full
        if not is_full:
            self.epoch += 1
            self._locks.clear()

    def heal(self) -> None:
        """Everybody reaches the server; connections of those that are gone have been noticed."""
        for process in self.cut:
            self.freed(process)
        self.cut.clear()
        self._locks = {
            connection: kinds
            for connection, kinds in self._locks.items()
            if not connection.closed and connection.owner.state is not State.DEAD
        }

    # What the witness is told

    def began(self, process: Process, shard: int) -> None:
        """A client works on the run as one of its shards."""
        self.shards[process] = shard
        self.counts["at once"] = max(self.counts["at once"], len(self.live()))

    def is_fenced(self, process: Process) -> bool:
        """Whether a client was one of the run's, and is no more: lost, taken over, or left."""
        shard = self.shards.get(process)
        return shard is not None and shard not in self.live()

    def live(self) -> list[int]:
        """The shards that count as live."""
        query = f"SELECT shard FROM proctor_shard WHERE state = '{LIVE}'"
        return [row[0] for row in self._rows(query)]

    def freed(self, process: Process | None) -> None:
        """A client, or None the server, goes on."""
        self._freed_at[process] = asyncio.get_running_loop().time()

    def is_sound(self, process: Process | None, for_s: float) -> bool:
        """Whether a client, or None the server, has done for so long what it should."""
        well = self.disk.health is Health.WELL if process is None else process.state is State.RUNS
        since = asyncio.get_running_loop().time() - self._freed_at.get(process, float("-inf"))
        return well and process not in self.cut and since > for_s and not self._slow_s

    def check_lost(self, shard: int) -> str | None:
        """What is wrong with a client's being taken for lost; only one that was silent is."""
        lost = next((process for process, number in self.shards.items() if number == shard), None)
        if lost is not None and self.is_sound(lost, LONG_S):
            return f"LOST {current().name} takes {lost.name} for lost, which gives its sign of life"
        return None

    def objections(self, operations: Sequence[Operation]) -> list[str]:
        """Why the client that runs now must not write these."""
        process, live = current(), self.live()
        shard = self.shards.get(process)
        if shard not in live:
            return [f"FENCE {process.name} writes although others have taken it over"]
        holders = {row[0]: row[1] for row in self._rows("SELECT id, holder FROM proctor_trial")}
        trials = {int(str(row.get("trial", row.get("b_trial")))) for _, row in operations}
        return [
            f"CLAIM {process.name} (shard {shard}) writes trial {trial}, which shard {holders[trial]} holds"
            for trial in trials
            if holders[trial] != shard
        ]

    def _rows(self, query: str) -> list[tuple[int, ...]]:
        connection = self._raw.engine.raw_connection()
        rows = connection.cursor().execute(query).fetchall()
        return list(rows)


class LoopMember(ShardMember):
    """ShardMember, with its thread as callbacks of the event loop."""

    def _start_heartbeats(self) -> None:
        self._later(BEAT_S, self._begin_beat)
        self._database.began(current(), self.shard)

    def _stop_heartbeats(self) -> None:
        self._over.set()

    @property
    def _database(self) -> Database:
        assert isinstance(self.store.engine, Engine)
        return self.store.engine.database

    def _later(self, delay_s: float, act: Callable[..., None], *args: object) -> None:
        asyncio.get_running_loop().call_later(delay_s, act, *args)

    def _begin_beat(self) -> None:
        self._later(self._database.latency_s(), self._commit_beat, time.monotonic())

    def _commit_beat(self, begun: float) -> None:
        if self._over.is_set():
            return
        self._try_heartbeat(begun)
        if self._fenced is None:
            self._later(self._database.latency_s() + BEAT_S, self._begin_beat)


def _away(what: str) -> sa.exc.OperationalError:
    return sa.exc.OperationalError("", None, Exception(what), connection_invalidated=True)
