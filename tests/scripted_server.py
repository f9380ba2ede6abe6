"""A TCP server that answers its n-th connection by the n-th script: for replies no HTTP framework would send."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

Script = Callable[[asyncio.StreamWriter], Awaitable[None]]
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def reply(body: bytes, status: str = "200 OK", headers: Sequence[str] = ()) -> Script:
    """A whole reply, closing the connection after it."""
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]

    async def script(writer: asyncio.StreamWriter) -> None:
        writer.write("\r\n".join([*head, "", ""]).encode())
        for start in range(0, len(body), 1 << 16):
            writer.write(body[start : start + (1 << 16)])
            await writer.drain()

    return script


def raw(*chunks: bytes) -> Script:
    """Exactly these bytes, then the end of the connection."""

    async def script(writer: asyncio.StreamWriter) -> None:
        for chunk in chunks:
            writer.write(chunk)

    return script


async def silence(writer: asyncio.StreamWriter) -> None:
    """Never answers."""
    await asyncio.Event().wait()


async def drip(writer: asyncio.StreamWriter) -> None:
    """Answers 200 and then a byte at a time, without end."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.001)


@contextlib.asynccontextmanager
async def listening(handle: Handler) -> AsyncIterator[str]:
    """The base URL of a server. Each connection is closed as its handler ends, and all are when this is left."""
    handlers: set[asyncio.Task[None]] = set()

    async def handled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.add(task)
        try:
            await handle(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            try:
                await writer.wait_closed()
            except ConnectionError:
                pass
            except asyncio.CancelledError:
                writer.transport.abort()

    server = await asyncio.start_server(handled, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        accepting = [task for task in asyncio.all_tasks() if "_accept_connection" in repr(task.get_coro())]
        await asyncio.gather(*accepting, return_exceptions=True)
        await asyncio.sleep(0)  # their handlers begin
        for task in handlers:
            task.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)
        await asyncio.sleep(0)  # what was aborted is closed


@contextlib.asynccontextmanager
async def scripted_server(*scripts: Script, requests: list[bytes] | None = None) -> AsyncIterator[str]:
    """The base URL of a server; the last script serves all further connections. Bodies go to `requests`."""
    taken = iter(scripts)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = await _body(reader)
        if requests is not None:
            requests.append(body)
        await next(taken, scripts[-1])(writer)
        await writer.drain()

    async with listening(handle) as url:
        yield url


async def _body(reader: asyncio.StreamReader) -> bytes:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = head.partition(b"content-length:")[2].split(b"\r\n")[0].strip()
    return await reader.readexactly(int(length or 0))
