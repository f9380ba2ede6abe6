"""A fixed local address that forwards to a server which may move to another address.

Workers and clients reach their controller through a forwarder in their own process, so its moves do not concern them.
The forwarder looks the server's address up only when the server can't be reached, and copies bytes unchanged.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

CONNECT_S = 1.5
"""Less than the deadline of a heartbeat. A server of the same network that takes longer counts as gone."""
CHUNK_BYTES = 1 << 16

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Forwarder:
    """Forwards connections to the server at the base URL that `find` returns.

    An OSError from `find`, for example TimeoutError, closes the connection that needed it.
    """

    def __init__(self, find: Callable[[], Awaitable[str]]) -> None:
        self._find = find
        self._target: tuple[str, int] | None = None
        self._finding = asyncio.Lock()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def open(self) -> str:
        """Start to listen; returns the base URL."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    async def close(self) -> None:
        """Stop listening and close all connections."""
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._forward(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(_close, writer)
            with contextlib.suppress(OSError):
                there, back = await self._connect()
                stack.push_async_callback(_close, back)
                copies = [asyncio.create_task(_copy(reader, back)), asyncio.create_task(_copy(there, writer))]
                try:
                    await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for copy in copies:  # HTTP needs no half-open connections
                        copy.cancel()

    async def _connect(self) -> Stream:
        known = self._target
        if known is not None:
            with contextlib.suppress(OSError):
                return await _open(known)
        async with self._finding:
            if self._target == known:  # no other connection has looked it up meanwhile
                url = urlsplit(await self._find())
                self._target = (str(url.hostname), url.port or 80)
            target = self._target
        assert target is not None
        return await _open(target)


async def _open(target: tuple[str, int]) -> Stream:
    """Open a connection. Raises OSError, for example TimeoutError."""
    async with asyncio.timeout(CONNECT_S):
        return await asyncio.open_connection(*target)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes until either side closes."""
    with contextlib.suppress(OSError):
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
