"""An address on this machine that stays, in front of a server that may come back at another.

Worker and client talk to their controller through one in their own process, so neither need know that it moved. Where
the server is now is asked only when it can't be reached; bytes are passed on as they are.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

CONNECT_S = 1.5
"""Less than a heartbeat's own deadline. A server of the same network that takes longer is gone."""
CHUNK_BYTES = 1 << 16

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Forwarder:
    """Passes connections on to the server that `find` names.

    `find` gives a base URL; whatever OSError it raises, TimeoutError among them, closes the connection that asked.
    """

    def __init__(self, find: Callable[[], Awaitable[str]]) -> None:
        self._find = find
        self._target: tuple[str, int] | None = None
        self._finding = asyncio.Lock()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def open(self) -> str:
        """Begin to listen; the base URL."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    async def close(self) -> None:
        """Listen no more, and close all connections."""
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._pass_on(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(_close, writer)
            with contextlib.suppress(OSError):
                there, back = await self._connect()
                stack.push_async_callback(_close, back)
                ways = [asyncio.create_task(_copy(reader, back)), asyncio.create_task(_copy(there, writer))]
                try:
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for way in ways:  # HTTP needs no half-open connections
                        way.cancel()

    async def _connect(self) -> Stream:
        known = self._target
        if known is not None:
            with contextlib.suppress(OSError):
                return await _open(known)
        async with self._finding:
            if self._target == known:  # nobody found it anew while this one waited
                url = urlsplit(await self._find())
                self._target = (str(url.hostname), url.port or 80)
            target = self._target
        assert target is not None
        return await _open(target)


async def _open(target: tuple[str, int]) -> Stream:
    """A connection. Raises OSError, TimeoutError among them."""
    async with asyncio.timeout(CONNECT_S):
        return await asyncio.open_connection(*target)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until either side ends."""
    with contextlib.suppress(OSError):
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
