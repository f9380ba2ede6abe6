"""Runs under way as values: silence by the viewer's clock, and what counts as a change."""

import asyncio
from pathlib import Path

import pytest

from eval_client.core.run_view import PairView, RunView
from eval_client.store.connection import connect, sqlite_url
from eval_client.store.journal import Journal
from eval_client.store.records import Manifest, Trial
from eval_client.store.store import Store
from eval_client.view.viewer import LiveRuns
from tests.pace import slowly
from tests.unit.eval_client.view.conftest import Client

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


async def test_a_view_of_another_version_is_left_out(store: Store, clock: Clock) -> None:
    shard = store.take_over()
    await publish(store, shard, '{"later": true}')
    assert LiveRuns(clock).look(store).view is None


async def test_a_page_that_asks_is_told_by_a_version_whether_anything_has_changed(folder: Path, client: Client) -> None:
    async with client() as viewer:
        before = (await viewer.get("/api/v1/runs/first/live")).json()
        assert (await viewer.get("/api/v1/runs/first/live")).json() == before
        Store(connect(sqlite_url(folder / "first")), "first").set_state("interrupted")
        after = before
        async with asyncio.timeout(slowly(30)):
            while after["version"] == before["version"]:
                after = (await viewer.get("/api/v1/runs/first/live")).json()
        link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        refused = await viewer.get("/api/v1/runs/first/live", headers=link)
        missing = await viewer.get("/api/v1/runs/none/live")
    assert before["shown"] == after["shown"]
    assert before["live"] is None
    assert refused.status_code == 403
    assert (missing.status_code, missing.headers["content-type"]) == (404, "application/problem+json")
