"""The live view that a client keeps in its store: with the journal's commits, fenced, and never in the way of a run."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from eval_client.store.connection import StoreError, connect
from eval_client.store.journal import Journal
from eval_client.store.records import Manifest, Trial
from eval_client.store.runs import run_moment
from eval_client.store.store import Store
from eval_client.store.tables import live_table

TRIAL = Trial(id=0, agent="a", task="t", sample="s", epoch=0)


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    made = Store(connect(database_url), f"r-{secrets.token_hex(3)}")
    made.create(Manifest(version="1", plan_path="p", plan={}, identity={}, tasks={}), [TRIAL])
    yield made
    made.engine.dispose()


def live(store: Store) -> tuple[int, int, str]:
    """Fence, beat and view."""
    return run_moment(store.engine, store.run)[1:]


async def test_views_are_written_with_a_growing_beat(store: Store) -> None:
    shard = store.take_over()
    assert live(store) == (shard, 0, "")
    journal = Journal(store, shard)
    assert journal.published
    journal.publish('{"n": 1}')
    assert not journal.published
    await journal.begin(TRIAL, 1, 0, "0" * 32)
    assert journal.published, "no later than what follows it"
    assert live(store) == (shard, 1, '{"n": 1}')
    journal.publish('{"n": "é' + "x" * 70_000 + '"}')
    await journal.close()
    assert (live(store)[1], len(live(store)[2])) == (2, 70_000 + len('{"n": "é"}'))
    journal.publish("too late")
    assert live(store)[1] == 2


async def test_the_views_of_earlier_clients_go_when_a_run_is_taken_over(store: Store) -> None:
    first = store.take_over()
    old = Journal(store, first)
    old.publish("old")
    await old.begin(TRIAL, 1, 0, "0" * 32)
    second = store.take_over()
    old.publish("fenced")
    await old.close()
    assert old.published
    assert live(store) == (second, 0, "")


async def test_a_view_that_the_store_refuses_does_not_touch_the_turns(store: Store) -> None:
    shard = store.take_over()
    with store.engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE proctor_live"))
    try:
        journal = Journal(store, shard)
        journal.publish("nowhere to go")
        if store.engine.dialect.name != "sqlite":  # there a missing table is damage, and ends the run as it should
            await journal.begin(TRIAL, 1, 0, "0" * 32)
            assert journal.published
        await journal.close()
        assert live(store) == (shard, 0, "")
    finally:
        live_table.create(store.engine)


def test_a_run_that_is_gone_or_never_began_is_told(store: Store, tmp_path: Path) -> None:
    empty = connect(f"sqlite:///{tmp_path / 'empty.sqlite'}")
    with pytest.raises(StoreError, match="was stopped before it began; run its plan again"):
        run_moment(empty, "nothing")
    empty.dispose()
    with pytest.raises(StoreError, match="no longer in its store"):
        run_moment(store.engine, "nothing")
