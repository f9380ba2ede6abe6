"""Server-sent events: tells browsers when a run has changed. One look a second at each run that somebody watches."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial

import sqlalchemy as sa
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from eval_client.store.connection import StoreError
from eval_client.store.store import Store
from eval_client.view.live import NOT_LIVE, LiveRun
from eval_client.view.viewer import Viewer

MAX_STREAMS = 32
COMMENT_S = 15.0
"""A stream without an event gets a comment after so long, which shows that it is still there."""
LOOK_S, LOOK_COSTS, SELDOM_S = 1.0, 50.0, 3.0
"""Looks follow each other after a second, or after so many times as long as one took, but within SELDOM_S."""
CLOCKS_S = 5.0
"""While nothing happens, a view is sent again after so long: its clocks have moved."""
UNREAD_S = 30.0
"""A watcher that reads nothing for so long is cut off."""


class _Poller:
    """Looks at one run while it has watchers. What it found last is all that it keeps."""

    def __init__(self, look: Callable[[], LiveRun]) -> None:
        self._look = look
        self.version, self.view = 0, 0
        """Numbers that grow with each change of the run, and with each view to show."""
        self.latest = NOT_LIVE
        self.watchers = 0
        self.news = asyncio.Event()
        """Set once there is news; then another event takes its place."""
        self._away = False
        self._sent_at = float("-inf")
        self._polling = asyncio.create_task(self._poll())

    def stop(self) -> None:
        """Look no more."""
        self._polling.cancel()

    def wake(self) -> None:
        """Wake all watchers."""
        told, self.news = self.news, asyncio.Event()
        told.set()

    async def _poll(self) -> None:
        while True:
            begun = time.monotonic()
            try:
                found = await asyncio.to_thread(self._look)
            except (StoreError, sa.exc.SQLAlchemyError, OSError):
                self._note_absence()
            else:
                self._note(found)
            await asyncio.sleep(min(SELDOM_S, max(LOOK_S, LOOK_COSTS * (time.monotonic() - begun))))

    def _note_absence(self) -> None:
        if not self._away:
            self._away = True
            self.version += 1
            self.wake()

    def _note(self, found: LiveRun) -> None:
        now, before = time.monotonic(), self.latest
        changed = self._away or not self.version or found.version != before.version
        shown = found.content != before.content or (found.view is not None and now - self._sent_at >= CLOCKS_S)
        self._away, self.latest = False, found
        self.version += changed
        if shown:
            self._sent_at = now
            self.view += 1
        if changed or shown:
            self.wake()


class EventStreams:
    """The streams that are open, and a poller for each run that they watch."""

    def __init__(self) -> None:
        self._pollers: dict[str, _Poller] = {}
        self.closed = False

    @property
    def full(self) -> bool:
        """Whether no further stream can be opened."""
        return sum(poller.watchers for poller in self._pollers.values()) >= MAX_STREAMS

    async def drain(self, at_once: bool = True) -> None:
        """End all streams."""
        self.closed = True
        for poller in self._pollers.values():
            poller.wake()

    @contextlib.contextmanager
    def watch(self, run: str, look: Callable[[], LiveRun]) -> Iterator[_Poller]:
        """The poller of a run, which looks while anybody is inside."""
        poller = self._pollers.get(run) or self._pollers.setdefault(run, _Poller(look))
        poller.watchers += 1
        try:
            yield poller
        finally:
            poller.watchers -= 1
            if not poller.watchers:
                poller.stop()
                del self._pollers[run]

    async def events(self, poller: _Poller) -> AsyncIterator[str]:
        """What a watcher is sent: always the newest, so that nothing queues up for one that reads slowly."""
        version = view = 0
        while not self.closed:
            news = poller.news
            if version != poller.version:
                version = poller.version
                yield f"event: changed\ndata: {json.dumps({'version': version})}\n\n"
            if view != poller.view:
                view = poller.view
                shown = poller.latest.view
                yield f"event: live\ndata: {'null' if shown is None else shown.model_dump_json()}\n\n"
            if news is not poller.news:
                continue
            try:
                async with asyncio.timeout(COMMENT_S):
                    await news.wait()
            except TimeoutError:
                yield ": still there\n\n"


class EventStream(Response):
    """The answer to a watcher, until it is gone, reads no more, or the viewer ends."""

    media_type = "text/event-stream"

    def __init__(self, streams: EventStreams, run: str, look: Callable[[], LiveRun]) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._streams, self._run, self._look = streams, run, look

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        with self._streams.watch(self._run, self._look) as poller:
            both = [asyncio.create_task(self._tell(poller, send)), asyncio.create_task(_disconnected(receive))]
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in both:
                    task.cancel()
                await asyncio.gather(*both, return_exceptions=True)

    async def _tell(self, poller: _Poller, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async for text in self._streams.events(poller):
            async with asyncio.timeout(UNREAD_S):
                await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def watch_events(viewer: Viewer, streams: EventStreams, request: Request) -> Response:
    """Server-sent events of the run that `run` names. Raises StoreError."""
    store = await run_in_threadpool(viewer.runs.open, request.query_params.get("run", ""))
    if request.method == "HEAD":
        return Response(media_type=EventStream.media_type)
    if streams.full or streams.closed:
        raise HTTPException(503, f"{MAX_STREAMS} pages are watched already; close some, or load this one again")
    return EventStream(streams, store.run, partial(_look, viewer, store))


def _look(viewer: Viewer, store: Store) -> LiveRun:
    """The run as it is now; it has changed also when its last client has gone, which it is not told by its store."""
    found = viewer.live.look(store)
    return found._replace(version=f"{viewer.runs.state(store)} {found.version}")


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
