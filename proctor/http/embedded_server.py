"""uvicorn in a process that has other work: it installs no signal handlers."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator

import uvicorn


class EmbeddedServer(uvicorn.Server):
    """A server on an event loop that it does not own; the owner of the loop handles signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def embedded(config: uvicorn.Config, listener: socket.socket) -> AsyncIterator[None]:
    """Serve on the running event loop while inside; replies under way are sent before this returns."""
    server = EmbeddedServer(config)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield
    finally:
        server.should_exit = True
        await asyncio.gather(running, return_exceptions=True)
