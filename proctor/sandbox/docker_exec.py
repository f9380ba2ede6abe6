"""The streams of a Docker exec, or of a container's first process, read and written without blocking.

Docker's attach protocol: after the HTTP upgrade the connection has raw input in one direction and frames in the other,
each of an 8-byte header (stream number, three zeros, length as big-endian 32 bits) and a payload.
"""

import asyncio
import json
import os
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from proctor.environment import EnvironmentFault, ServiceAway
from proctor.sandbox.base import Process, within

if TYPE_CHECKING:
    import docker

_CHUNK = 1 << 16
_HEADER = 8
_POLL_S = 0.5
_POLL_AT_END_S = 0.01
_WRITE_S = 30.0


class Stream:
    """Input and output of an attached exec."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._left = 0
        self.ended = asyncio.Event()

    async def read(self) -> bytes:
        """The next payload bytes, empty at the end. Cancellation loses no output."""
        try:
            while self._left == 0:
                self._left = int.from_bytes((await self._reader.readexactly(_HEADER))[4:], "big")
            chunk = await self._reader.read(min(self._left, _CHUNK))
        except (asyncio.IncompleteReadError, ConnectionError):
            chunk = b""
        self._left -= len(chunk)
        if not chunk:
            self.ended.set()
        return chunk

    async def write(self, data: bytes) -> None:
        """Send input. Data for a process that has ended is dropped."""
        with suppress(ConnectionError):
            self._writer.write(data)
            async with within(_WRITE_S, "writing to a process"):
                await self._writer.drain()

    def close(self) -> None:
        self._writer.transport.abort()


class DockerProcess(Stream, Process):
    """A Docker exec."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        status: Callable[[], Awaitable[int | None]],
    ) -> None:
        super().__init__(reader, writer)
        self._status = status

    async def wait(self) -> int:
        # Usually the end of the stream shows the end of the process. The status is polled in case a background job
        # holds the stream open.
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_POLL_S):
                    await self.ended.wait()
            status = await self._status()
            if status is not None:
                return status
            if self.ended.is_set():
                await asyncio.sleep(_POLL_AT_END_S)


async def reach() -> None:
    """Wait for an answer of the engine. Raises EnvironmentFault naming the address where it accepts no connection."""
    reader, writer = await _connect()
    try:
        writer.write(b"GET /_ping HTTP/1.1\r\nHost: docker\r\nConnection: close\r\n\r\n")
        if not await reader.read(1):
            raise ServiceAway("Docker: the engine ends its connections without an answer")
    except OSError as error:
        raise ServiceAway(f"Docker: the connection broke: {error}") from error
    finally:
        writer.transport.abort()


async def attach(api: "docker.APIClient", path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Post to a path that attaches (`exec/ID/start`), and take over the connection. Raises EnvironmentFault."""
    body = json.dumps({"Detach": False, "Tty": False}).encode()
    head = (
        f"POST /v{api.api_version}/{path} HTTP/1.1\r\nHost: docker\r\nContent-Type: application/json\r\n"
        f"Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    reader, writer = await _connect()
    try:
        writer.write(head.encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        if answer.split(b" ", 2)[1] not in (b"101", b"200"):
            raise ServiceAway(f"Docker: {path} refused: {(await reader.read(500)).decode(errors='replace')}")
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        writer.transport.abort()
        raise ServiceAway(f"Docker: the connection broke: {error}") from error
    except BaseException:
        writer.transport.abort()
        raise
    return reader, writer


async def _connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the engine, configured by the variables that the SDK uses."""
    address = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    host = urlsplit(address)
    try:
        if host.scheme in ("unix", "http+unix"):
            return await asyncio.open_unix_connection(host.path)
        if host.scheme in ("tcp", "http", "https") and host.hostname is not None:
            return await asyncio.open_connection(host.hostname, host.port or 2375, ssl=_tls(host.scheme))
    except OSError as error:
        raise ServiceAway(f"Docker: no engine answers at {address}: {error}") from error
    raise EnvironmentFault(f"Docker: DOCKER_HOST={address} can't be used; give unix:// or tcp://")


def _tls(scheme: str) -> ssl.SSLContext | None:
    folder = os.environ.get("DOCKER_CERT_PATH")
    if scheme != "https" and not os.environ.get("DOCKER_TLS_VERIFY"):
        return None
    context = ssl.create_default_context(cafile=os.path.join(folder, "ca.pem") if folder else None)
    if folder:
        context.load_cert_chain(os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem"))
    return context
