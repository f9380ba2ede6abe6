"""Runs under way as values: clients added up, silence by the viewer's clock, and what counts as a change."""

from pathlib import Path

import pytest

from eval_client.monitor.snapshot import PairView, RunView
from eval_client.store import shards
from eval_client.store.connection import connect, sqlite_url
from eval_client.store.journal import Cost, Journal
from eval_client.store.records import Manifest, Trial
from eval_client.store.store import Store
from eval_client.store.tables import LOST, shard_table
from eval_client.view.live import LiveRuns
from proctor.types import Finish, FinishReason

TRIALS = [Trial(id=n, agent="a", task="t", sample=f"s{n}", epoch=0) for n in range(8)]


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(connect(sqlite_url(tmp_path)), "r")
    made.create(Manifest(version="1", plan_path="p", plan={}, identity={}, tasks={}), TRIALS)
    return made


def view(scored: int = 0, waits_for: str | None = "task", turns: int = 5, **changed: object) -> RunView:
    pair = PairView(
        agent="a", task="t", planned=8, scored=scored, unscored=0, running=2, mean=None, waits_for=waits_for
    )
    facts = {
        **dict.fromkeys(("retries", "attempts_lost", "prompt_tokens", "completion_tokens"), 1),
        **{"run": "r", "elapsed_s": 10.0, "left_s": 60.0, "pairs": (pair,), "turns": turns, "money": 0.5},
        **{"troubles": (), "use": {"endpoint e": (2, 3)}},
    }
    return RunView.model_validate({**facts, **changed})


async def publish(store: Store, shard: int, *views: str) -> None:
    journal = Journal(store, shard)
    for each in views:
        journal.publish(each)
    await journal.close()


def second(store: Store) -> int:
    """Another shard: what only PostgreSQL allows to clients, rows allow everywhere."""
    return shards.join(store.engine, store.run)


async def test_one_client_is_shown_as_its_screen_shows_it(store: Store, clock: Clock) -> None:
    shard, live = store.take_over(), LiveRuns(clock)
    assert live.look(store).view is None
    await publish(store, shard, view(3).model_dump_json())
    assert live.look(store).view is None, "a look is used again for a moment"
    clock.now += 1
    assert live.look(store).view == view(3)
    store.set_state("finished")
    clock.now += 1
    assert (live.look(store).view, live.look(store).heard_s) == (None, None)


async def test_clients_are_added_up_and_one_that_left_only_with_what_it_spent(store: Store, clock: Clock) -> None:
    first = store.take_over()
    gone, playing = second(store), second(store)
    for shard, waits_for in ((first, "task"), (gone, "agent"), (playing, "endpoint")):
        await publish(store, shard, view(7, waits_for).model_dump_json())
    journal = Journal(store, first)
    for trial in TRIALS[:3]:
        await journal.begin(trial, 1, 0, "0" * 32)
        finish = Finish(reason=FinishReason.COMPLETED, score=0.5)
        await journal.finish(trial, 1, "w", finish, Cost(1, 1, 1, 1.0))
    await journal.close()
    shards.leave(store.engine, "r", gone)
    found = LiveRuns(clock).look(store)
    assert found.view is not None
    (pair,) = found.view.pairs
    assert (pair.planned, pair.scored, pair.mean, pair.running) == (8, 3, 0.5, 4), "the store's counts, each once"
    assert pair.waits_for == f"task (client {first}); endpoint (client {playing})"
    assert found.view.use == {"endpoint e": (4, 6)}
    assert (found.view.turns, found.view.prompt_tokens, found.view.money) == (15, 3, 1.5)
    assert [(client.shard, client.live) for client in found.clients] == [(first, True), (gone, False), (playing, True)]


async def test_silence_is_measured_by_the_viewers_clock(store: Store, clock: Clock) -> None:
    shard, live = store.take_over(), LiveRuns(clock)
    await publish(store, shard, view().model_dump_json())
    assert live.look(store).heard_s == 0.0
    clock.now += 9
    assert (live.look(store).heard_s, live.look(store).silent) == (9.0, False)
    clock.now += 3
    assert (live.look(store).heard_s, live.look(store).silent) == (12.0, True)
    await publish(store, shard, "{}", view().model_dump_json())
    clock.now += 1
    assert (live.look(store).heard_s, live.look(store).silent) == (0.0, False)


async def test_a_version_changes_with_what_was_played_and_not_with_the_clocks(store: Store, clock: Clock) -> None:
    shard, live = store.take_over(), LiveRuns(clock)

    async def version(of: RunView) -> str:
        await publish(store, shard, of.model_dump_json())
        clock.now += 1
        return live.look(store).version

    first = await version(view())
    assert await version(view(elapsed_s=11.0, left_s=59.0, troubles=("no progress for 6 s",))) == first
    seen = {first, await version(view(turns=6)), await version(view(1)), await version(view(attempts_lost=2))}
    store.set_state("interrupted")
    seen.add(await version(view()))
    store.take_over()
    clock.now += 1
    seen.add(live.look(store).version)
    assert len(seen) == 6


async def test_a_row_that_no_client_has_told_of_changes_the_version_too(store: Store, clock: Clock) -> None:
    first, live = store.take_over(), LiveRuns(clock)
    for shard in (first, second(store)):
        await publish(store, shard, view().model_dump_json())
    before = live.look(store).version
    journal = Journal(store, first)
    await journal.begin(TRIALS[0], 1, 0, "0" * 32)
    await journal.finish(TRIALS[0], 1, "w", Finish(reason=FinishReason.COMPLETED, score=0.5), Cost(1, 1, 1, 1.0))
    await journal.close()
    clock.now += 1
    found = live.look(store)
    assert found.view is not None
    assert [pair.scored for pair in found.view.pairs] == [1]
    assert found.version != before


async def test_a_view_of_another_version_is_left_out(store: Store, clock: Clock) -> None:
    shard = store.take_over()
    await publish(store, shard, '{"later": true}')
    assert LiveRuns(clock).look(store).view is None


async def test_a_run_whose_clients_are_all_lost_is_not_under_way(store: Store, clock: Clock) -> None:
    shard = store.take_over()
    await publish(store, shard, view().model_dump_json())
    with store.engine.begin() as connection:
        connection.execute(shard_table.update().values(state=LOST))
    assert LiveRuns(clock).look(store).view is None
