"""Reports and other costly values that are used again: for how long, and what drops them."""

import itertools
import threading
from functools import partial
from pathlib import Path

import httpx
import pytest

from eval_client.report.report import report
from eval_client.store.connection import connect, sqlite_url
from eval_client.store.store import Store
from eval_client.store.tables import trial_table
from eval_client.view import viewer
from eval_client.view.access import ViewAccess
from eval_client.view.app import build_app
from eval_client.view.runs import FolderRuns, RunStamp
from eval_client.view.viewer import CACHE_COSTS, CACHE_S, NEWER_IN, Kept, KeptReport
from tests.unit.eval_client.view.conftest import ORIGIN

BEFORE, CHANGED, OVER = RunStamp("running", ((1, 1),)), RunStamp("running", ((2, 1),)), RunStamp("finished", ((2, 1),))
CHEAP_S, DEAR_S = CACHE_S / CACHE_COSTS / 2, CACHE_S / CACHE_COSTS * 3


def stored(folder: Path) -> Store:
    return Store(connect(sqlite_url(folder / "first")), "first")


async def test_a_cheap_report_is_used_for_a_second_or_until_the_run_changes(folder: Path) -> None:
    kept = KeptReport(report(stored(folder)), BEFORE, CHEAP_S, 100.0)
    assert kept.is_fresh(BEFORE, 100.0 + 0.99 * CACHE_S)
    assert not kept.is_fresh(BEFORE, 100.0 + 1.01 * CACHE_S)
    assert not kept.is_fresh(CHANGED, 100.0)


async def test_a_dear_report_is_used_for_a_time_though_rows_change_but_not_past_the_runs_end(folder: Path) -> None:
    kept, until = KeptReport(report(stored(folder)), BEFORE, DEAR_S, 100.0), 100.0 + CACHE_COSTS * DEAR_S
    assert kept.is_fresh(CHANGED, until - 0.01)
    assert not kept.is_fresh(BEFORE, until + 0.01)
    assert not kept.is_fresh(OVER, 100.0)


async def test_an_answer_with_a_report_from_before_a_change_says_when_there_will_be_a_newer_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(viewer, "CACHE_COSTS", 1e9)  # so that every report is a dear one
    app = build_app(FolderRuns(folder), ViewAccess())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as client:
        assert NEWER_IN not in (await client.get("/runs/first")).headers
        with stored(folder).engine.begin() as connection:
            connection.execute(trial_table.update().where(trial_table.c.id == 23).values(score=0.5))
        for path in ("/runs/first", "/runs/first/tables"):
            assert float((await client.get(path)).headers[NEWER_IN]) > CACHE_S


async def test_what_a_page_made_of_a_report_is_made_once(folder: Path) -> None:
    kept, numbers = KeptReport(report(stored(folder)), BEFORE, CHEAP_S, 100.0), itertools.count()
    assert [kept.made("page", partial(next, numbers)) for _ in range(3)] == [0, 0, 0]
    assert kept.made("other page", partial(next, numbers)) == 1


async def test_the_overview_shows_a_change_of_the_store_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewer, "CACHE_COSTS", 0.0)  # on a slow machine this report may be a dear one
    app = build_app(FolderRuns(folder), ViewAccess())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as client:
        assert "<strong>8/24</strong>" in (await client.get("/runs/first")).text
        assert (await client.get("/runs/first")).text == (await client.get("/runs/first")).text
        with stored(folder).engine.begin() as connection:
            last = trial_table.update().where(trial_table.c.id == 23)
            connection.execute(last.values(reason="completed", score=0.5, ended_at="2099-01-01T00:00:00+00:00"))
        page = (await client.get("/runs/first")).text
    assert "<strong>9/24</strong>" in page
    assert 'href="/runs/first/trials/23"' in page


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_value_is_used_again_for_a_second_or_as_its_cost_allows() -> None:
    clock, made = Clock(), list[float]()
    kept = Kept(clock=clock)

    def make(cost: float) -> int:
        clock.now += cost
        made.append(cost)
        return len(made)

    assert [kept.get("k", lambda: make(0)), kept.get("k", lambda: make(0))] == [1, 1]
    clock.now += CACHE_S
    assert kept.get("k", lambda: make(2)) == 2
    clock.now += 2 * CACHE_COSTS - 0.1
    assert kept.get("k", lambda: make(2)) == 2
    clock.now += 0.1
    assert kept.get("k", lambda: make(2)) == 3


def test_a_value_with_the_same_stamp_does_not_grow_old_and_one_with_another_does() -> None:
    clock = Clock()
    kept = Kept(clock=clock)
    assert kept.get("k", lambda: 1, stamp="old") == 1
    clock.now += 1_000
    assert kept.get("k", lambda: 2, stamp="old") == 1
    assert kept.get("k", lambda: 3, stamp="new") == 3
    assert kept.get("k", lambda: 4, stamp="newer") == 3, "within its time"


def test_the_oldest_goes_where_there_are_too_many() -> None:
    kept = Kept(most=2, clock=Clock())
    assert [kept.get(key, lambda: 1) for key in "abc"] == [1, 1, 1]
    assert kept.get("c", lambda: 2) == 1
    assert kept.get("a", lambda: 2) == 2


def test_several_requests_make_a_value_once() -> None:
    kept, made, begun = Kept(clock=Clock()), list[int](), threading.Barrier(4)

    def ask() -> None:
        begun.wait()
        kept.get("k", lambda: made.append(1))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]
