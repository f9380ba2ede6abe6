"""The clients of a run in PostgreSQL: claims that never meet, fences, exchanges one by one, who is last to leave."""

import asyncio
import contextlib
import secrets
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from eval_client.core.limits.shares import Quota, ShardState
from eval_client.core.spend import Tokens
from eval_client.store import claims, lock, member, shards
from eval_client.store.connection import Fenced, RunOver, StoreError, connect, is_transient
from eval_client.store.journal import Cost, Journal
from eval_client.store.lock import is_worked_on
from eval_client.store.member import membership
from eval_client.store.records import Manifest, Trial
from eval_client.store.shards import Levels, ShardSnapshot
from eval_client.store.store import Store
from proctor.types import Finish, FinishReason
from tests.database_servers import postgresql
from tests.pace import slowly, until

pytestmark = pytest.mark.postgresql
PAIR = ("a", "t")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with postgresql() as server:
        yield server.url


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    made = new_store(url)
    yield made
    made.engine.dispose()


def new_store(url: str) -> Store:
    made = Store(connect(url), f"run-{secrets.token_hex(4)}")
    trials = [Trial(id=n, agent="a", task="t", sample=f"s{n}", epoch=0) for n in range(60)]
    made.create(Manifest(version="1", plan_path="p", plan={}, identity={}), trials)
    return made


def ids(trials: list[Trial]) -> list[int]:
    return [trial.id for trial in trials]


def test_clients_that_claim_at_the_same_time_never_claim_the_same(store: Store) -> None:
    numbers = [store.take_over(), *(shards.join(store.engine, store.run) for _ in range(3))]
    start = threading.Barrier(4)

    def claim_all(shard: int) -> list[int]:
        start.wait()
        found: list[int] = []
        while more := ids(claims.claim(store.engine, store.run, shard, {PAIR: 3})):
            found += more
        return found

    with ThreadPoolExecutor(4) as pool:
        claimed = [trial for found in pool.map(claim_all, numbers) for trial in found]
    assert sorted(claimed) == list(range(60))
    assert claims.free(store.engine, store.run) == {}
    assert claims.pairs_pending(store.engine, store.run) == {PAIR}


async def test_what_a_lost_client_held_is_free_and_what_it_writes_is_refused(store: Store) -> None:
    first, second = store.take_over(), shards.join(store.engine, store.run)
    begun, *_ = claims.claim(store.engine, store.run, first, {PAIR: 5})
    journal = Journal(store, first)
    await journal.begin(begun, 1, 0, "0" * 32)
    beats = shards.heartbeats(store.engine, store.run)
    assert not shards.lose(store.engine, store.run, first, beats[first] + 1)
    assert shards.lose(store.engine, store.run, first, beats[first])
    with pytest.raises(Fenced):
        await journal.finish(begun, 1, "w", Finish(reason=FinishReason.COMPLETED, score=1.0), Cost(1, 1, 1, 1.0))
    await journal.close()
    with pytest.raises(Fenced):
        claims.claim(store.engine, store.run, first, {PAIR: 1})
    with pytest.raises(Fenced):
        shards.exchange(store.engine, store.run, first, lambda coordinator: (coordinator.levels, ShardState()))
    claimed = claims.claim(store.engine, store.run, second, {PAIR: 2})
    assert [(trial.id, trial.attempts) for trial in claimed] == [(begun.id, 1), (1, 0)]
    assert [row["score"] for row in store.trial_rows() if row["id"] == begun.id] == [None]


async def test_a_fault_is_owed_to_nobody_until_the_run_is_resumed(store: Store) -> None:
    shard = store.take_over()
    trial, *_ = claims.claim(store.engine, store.run, shard, {PAIR: 60})
    journal = Journal(store, shard)
    await journal.begin(trial, 1, 0, "0" * 32)
    await journal.finish(trial, 1, "w", Finish.fault(FinishReason.TASK_ERROR, "gone"), Cost(1, 1, 1, 1.0))
    await journal.close()
    assert len(claims.held(store.engine, store.run, shard)) == 59
    assert claims.pair_counts(store.engine, store.run) == {PAIR: (0, 0.0, 1)}
    store.take_over()
    assert claims.free(store.engine, store.run) == {PAIR: 60}
    assert claims.pair_counts(store.engine, store.run) == {PAIR: (0, 0.0, 0)}


def test_what_is_given_back_is_claimed_by_others(store: Store) -> None:
    first, second = store.take_over(), shards.join(store.engine, store.run)
    mine = claims.claim(store.engine, store.run, first, {PAIR: 4})
    claims.give_back(store.engine, store.run, second, mine)
    assert claims.free(store.engine, store.run) == {PAIR: 56}
    claims.give_back(store.engine, store.run, first, mine)
    assert ids(claims.claim(store.engine, store.run, second, {PAIR: 4})) == ids(mine)


def test_of_clients_that_leave_at_the_same_time_one_is_the_last(store: Store) -> None:
    numbers = [store.take_over(), *(shards.join(store.engine, store.run) for _ in range(3))]
    start = threading.Barrier(4)

    def leave(shard: int) -> bool:
        start.wait()
        return shards.leave(store.engine, store.run, shard, True)

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(leave, numbers)) == [False, True, True, True]


def test_who_plays_no_more_tells_to_the_last_what_it_spent_and_holds_nothing_of_a_limit(store: Store) -> None:
    leaves, stays = store.take_over(), shards.join(store.engine, store.run)
    mine = ShardState(slices={"n": Quota(held=3, wanted=3)}, spent={"x": Tokens(10, 7)}, unreachable=frozenset({"t"}))
    shards.exchange(store.engine, store.run, leaves, lambda coordinator: (coordinator.levels, mine))
    shards.publish_last(store.engine, store.run, leaves, {"x": Tokens(40, 14)})
    heard: list[ShardState] = []

    def look(coordinator: ShardSnapshot) -> tuple[Levels, ShardState]:
        heard.append(coordinator.live[leaves])
        return coordinator.levels, coordinator.live[stays]

    shards.exchange(store.engine, store.run, stays, look)
    assert heard == [ShardState(spent={"x": Tokens(40, 14)}, unreachable=frozenset({"t"}))]


def test_exchanges_follow_one_another_so_that_none_misses_what_another_told(store: Store) -> None:
    numbers = [store.take_over(), *(shards.join(store.engine, store.run) for _ in range(3))]

    def count(coordinator: ShardSnapshot) -> tuple[Levels, ShardState]:
        told = sum(standing.slices["n"].held for standing in coordinator.live.values() if "n" in standing.slices)
        return coordinator.levels, ShardState(slices={"n": Quota(held=told + 1, wanted=0)})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda shard: shards.exchange(store.engine, store.run, shard, count), numbers))
    held: list[int] = []

    def look(coordinator: ShardSnapshot) -> tuple[Levels, ShardState]:
        held.extend(standing.slices["n"].held for standing in coordinator.live.values())
        return coordinator.levels, coordinator.live[numbers[0]]

    shards.exchange(store.engine, store.run, numbers[0], look)
    assert sorted(held) == [1, 2, 4, 8]


async def test_a_run_is_joined_only_while_it_is_played(store: Store) -> None:
    with pytest.raises(StoreError, match="no client is playing it"):
        async with membership(store, joins=True):
            pass
    async with membership(store) as first:
        other = Store(connect(store.engine.url.render_as_string(hide_password=False)), store.run)
        async with membership(other, joins=True) as second:
            assert (first.alone, second.alone, second.shard) == (False, False, first.shard + 1)
            assert is_worked_on(store)
            with pytest.raises(StoreError, match="proctor join"):
                async with membership(other):
                    pass
        assert set(shards.heartbeats(store.engine, store.run)) == {first.shard}
        store.set_state("finished", first.shard)
        with pytest.raises(RunOver):
            async with membership(other, joins=True):
                pass
        other.engine.dispose()
    assert not is_worked_on(store)


async def test_clients_that_lost_the_lock_and_live_on_are_not_taken_over() -> None:
    with postgresql() as server:
        store = new_store(server.url)
        async with membership(store) as first:
            server.stop()
            server.start()
            other = Store(connect(server.url), store.run)
            with pytest.raises(StoreError, match="proctor join"):
                async with membership(other):
                    pass
            server.stop()
            server.start()
            async with membership(other, either=True) as second:
                assert set(shards.heartbeats(store.engine, store.run)) == {first.shard, second.shard}
                assert first.fenced() is None
        store.engine.dispose()
        other.engine.dispose()


async def test_clients_that_were_killed_are_taken_over_after_their_lease(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eval_client.core.failure_detector.LEASE_S", 2.0)
    killed = store.take_over()
    async with membership(store) as member:
        assert set(shards.heartbeats(store.engine, store.run)) == {member.shard} != {killed}


async def test_a_lock_that_somebody_only_tried_is_had_alone(store: Store) -> None:
    with store.engine.connect() as looking, store.engine.connect() as waiting:
        lock.seize(looking, store.run)
        entering = asyncio.create_task(lock.enter(waiting, store.run))
        await asyncio.wait({entering}, timeout=3 * lock.PAUSE_S)  # no event: a few tries that fail
        assert not entering.done()
        looking.invalidate()
        assert not await asyncio.wait_for(entering, slowly(5))
        waiting.invalidate()


def test_who_gives_no_beats_hears_others_only_where_the_database_takes_writes(store: Store) -> None:
    first = store.take_over()
    assert shards.observed_heartbeats(store.engine, store.run) == {first: 0}
    with store.engine.begin() as connection:
        connection.execute(sa.text("LOCK TABLE proctor_run IN EXCLUSIVE MODE"))
        url = store.engine.url.update_query_dict({"options": "-c lock_timeout=50"})
        impatient = connect(url.render_as_string(hide_password=False))
        assert shards.heartbeats(impatient, store.run) == {first: 0}
        with pytest.raises(sa.exc.OperationalError):
            shards.observed_heartbeats(impatient, store.run)
        impatient.dispose()


async def test_looking_whether_clients_live_can_be_broken_off(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    looking = asyncio.Event()
    monkeypatch.setattr(member.log, "warning", lambda *_: looking.set())
    store.take_over()

    async def resume() -> None:
        async with membership(store):
            pytest.fail("clients may live")

    resuming = asyncio.create_task(resume())
    await asyncio.wait_for(looking.wait(), slowly(5))
    resuming.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(resuming, slowly(5))
    assert not is_worked_on(store)


async def test_a_lock_that_was_lost_is_taken_again(store: Store) -> None:
    async with membership(store):
        with store.engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            holding = sa.text("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock'")

            def holders() -> set[int]:
                return set(connection.execute(holding).scalars())

            until(lambda: len(holders()) == 1)
            (lost,) = holders()
            connection.execute(sa.text("SELECT pg_terminate_backend(:pid)"), {"pid": lost})
            until(lambda: len(holders() - {lost}) == 1)


async def test_a_client_that_was_taken_over_asks_no_model_before_it_knows(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eval_client.store.member.SURE_FOR_S", 0.0)
    async with membership(store) as member:
        store.take_over()
        with pytest.raises(Fenced):
            await asyncio.wait_for(member.ensure_lease(), slowly(20))


def test_a_connection_dropped_in_the_midst_of_a_transaction_is_tried_again(store: Store) -> None:
    engine = connect(store.engine.url.render_as_string(hide_password=False))
    with contextlib.closing(engine.connect()) as idle, store.engine.connect() as other:
        pid = idle.execute(sa.text("SELECT pg_backend_pid()")).scalar_one()
        idle.execute(sa.text("SET idle_in_transaction_session_timeout = 50"))
        alive = sa.text("SELECT count(*) FROM pg_stat_activity WHERE pid = :pid")
        other.execution_options(isolation_level="AUTOCOMMIT")
        until(lambda: other.execute(alive, {"pid": pid}).scalar_one() == 0)
        with pytest.raises(sa.exc.SQLAlchemyError) as dropped:
            idle.execute(sa.text("SELECT 1"))
        assert is_transient(dropped.value)
    engine.dispose()
