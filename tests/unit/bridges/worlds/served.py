"""An app at a port of its own, for the length of a test."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from starlette.types import ASGIApp

from proctor.http.server import listen, url_of
from proctor.http.serving import EmbeddedServer, uvicorn_config


@contextmanager
def in_thread(app: ASGIApp, port: int = 0) -> Iterator[str]:
    """Its base URL. It runs in a thread with an event loop of its own: `samples` blocks the caller's."""
    listener = listen("127.0.0.1", port)
    server = EmbeddedServer(uvicorn_config(app, keep_alive_s=60, last_replies_s=1))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        yield url_of("127.0.0.1", listener)
    finally:
        server.should_exit = True
        thread.join()


@asynccontextmanager
async def served(app: ASGIApp, port: int = 0) -> AsyncIterator[str]:
    """The same, for tests that go on while it ends."""
    serving = in_thread(app, port)
    url = serving.__enter__()
    try:
        yield url
    finally:
        await asyncio.to_thread(serving.__exit__, None, None, None)
