"""Server-sent events: one poller for each run that is watched, the newest alone for each watcher, bounded in number."""

import asyncio
import json
from collections.abc import AsyncIterator

import httpx
import pytest
import sqlalchemy as sa

from eval_client.view import events
from eval_client.view.events import MAX_STREAMS, EventStream, EventStreams
from eval_client.view.live import NOT_LIVE, LiveRun
from tests.pace import slowly, until
from tests.unit.eval_client.view.conftest import Client
from tests.unit.eval_client.view.test_live import view

LOOK_S = 0.01


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOOK_S", "SELDOM_S"):
        monkeypatch.setattr(events, name, LOOK_S)
    monkeypatch.setattr(events, "CLOCKS_S", slowly(60))


class Looked:
    """A run whose looks are counted."""

    def __init__(self) -> None:
        self.looks = 0
        self.found: LiveRun | Exception = NOT_LIVE._replace(version="1")

    def __call__(self) -> LiveRun:
        self.looks += 1
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


async def told(stream: AsyncIterator[str]) -> tuple[str, object]:
    async with asyncio.timeout(slowly(10)):
        text = await anext(stream)
    if text.startswith(":"):
        return "comment", None
    event, data = text.strip().split("\n")
    return event.removeprefix("event: "), json.loads(data.removeprefix("data: "))


async def looked(look: Looked, times: int = 2) -> None:
    """Wait for some more looks."""
    before = look.looks
    await asyncio.to_thread(until, lambda: look.looks >= before + times)


async def test_a_watcher_is_told_of_changes_and_views_once_each() -> None:
    streams, look = EventStreams(), Looked()
    with streams.watch("r", look) as poller:
        stream = streams.events(poller)
        assert await told(stream) == ("changed", {"version": 1})
        await looked(look)
        shown = view(3)
        look.found = LiveRun("2", shown, 0.2, ())
        assert await told(stream) == ("changed", {"version": 2})
        assert await told(stream) == ("live", shown.model_dump(mode="json"))
        look.found = LiveRun("2", None, None, ())
        assert await told(stream) == ("live", None)


async def test_a_slow_watcher_gets_the_newest_alone() -> None:
    streams, look = EventStreams(), Looked()
    with streams.watch("r", look) as poller:
        stream = streams.events(poller)
        await told(stream)
        for number in range(2, 50):
            look.found = LiveRun(str(number), view(turns=number), 0.2, ())
            await looked(look)
        assert await told(stream) == ("live", view(turns=49).model_dump(mode="json"))
        assert await told(stream) == ("changed", {"version": 49})


async def test_many_watchers_share_a_poller_and_without_one_nothing_is_polled() -> None:
    streams, look = EventStreams(), Looked()
    with streams.watch("r", look) as one, streams.watch("r", look) as other, streams.watch("q", look) as third:
        assert one is other
        assert one is not third
        await looked(look)
    before = -1
    async with asyncio.timeout(slowly(10)):
        while before != look.looks:  # a look that was under way may still end
            before = look.looks
            await asyncio.sleep(10 * LOOK_S)


async def test_a_stream_goes_on_after_its_store_was_away() -> None:
    streams, look = EventStreams(), Looked()
    with streams.watch("r", look) as poller:
        stream = streams.events(poller)
        assert await told(stream) == ("changed", {"version": 1})
        look.found = sa.exc.OperationalError("SELECT 1", {}, Exception("gone"))
        assert await told(stream) == ("changed", {"version": 2})
        await looked(look, 5)
        look.found = NOT_LIVE._replace(version="1")
        assert await told(stream) == ("changed", {"version": 3}), "away and back are one change each"


async def test_a_stream_without_events_gets_comments_and_ends_with_the_viewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "COMMENT_S", LOOK_S)
    streams, look = EventStreams(), Looked()
    with streams.watch("r", look) as poller:
        await looked(look)  # so that the change comes before the first comment
        stream = streams.events(poller)
        assert await told(stream) == ("changed", {"version": 1})
        assert await told(stream) == ("comment", None)
        await streams.drain()
        with pytest.raises(StopAsyncIteration):
            await told(stream)


async def test_a_watcher_that_never_reads_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "UNREAD_S", 0.05)
    streams, look = EventStreams(), Looked()

    async def receive() -> dict[str, object]:
        await asyncio.Event().wait()
        return {}

    async def send(message: dict[str, object]) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    async with asyncio.timeout(slowly(10)):
        await EventStream(streams, "r", look)({}, receive, send)  # type: ignore[arg-type]
    assert not streams._pollers


async def test_only_so_many_streams_are_open() -> None:
    streams, look = EventStreams(), Looked()
    watching = [streams.watch(f"r{number % 3}", look) for number in range(MAX_STREAMS)]
    for each in watching:
        assert not streams.full
        each.__enter__()
    assert streams.full
    for each in watching:
        each.__exit__(None, None, None)
    assert not streams.full


async def test_a_stream_is_no_link_and_a_wrong_one_is_a_problem(client: Client) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    async with client() as viewer:
        refused = await viewer.get("/events?run=first", headers=link)
        missing = await viewer.get("/events?run=none")
        head: httpx.Response = await viewer.head("/events?run=first")
    assert refused.status_code == 403
    assert (missing.status_code, missing.headers["content-type"]) == (404, "application/problem+json")
    assert (head.status_code, head.headers["content-type"].partition(";")[0]) == (200, "text/event-stream")
    async with client("a-token") as viewer:
        assert (await viewer.get("/events?run=first")).status_code == 401
