"""A proxy between two parts of ours that can be told, while it runs, to do what networks do; it records every call.

It passes whole HTTP/1.1 messages with a Content-Length, so that it can repeat, reorder and cut them; connections are
kept alive on both sides.
"""

import asyncio
import contextlib
import random
import re
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from tests.pace import slowly

Kind = Literal[
    "latency",  # pass the request on after up to `seconds`
    "hold",  # pass it on after the next one, or after `seconds`: reordered
    "duplicate",  # pass it on twice at once
    "late_copy",  # pass it on, and a copy after `LATE` further requests
    "gate",  # pass it on once this fault is taken away again
    "drop",  # reset the connection, nothing passed on
    "drop_reply",  # pass it on, reset the connection instead of the reply
    "half_close",  # pass it on, end the stream instead of the reply
    "truncate",  # half of the reply, then the end of the stream
    "rewrite",  # pass it on; `body` is what the reply has, and what it gets instead, as long and after a space
    "throttle",  # the reply in pieces, over `seconds`
    "answer",  # not passed on: `body` is the whole reply
    "silence",  # not passed on, never answered
    "endless",  # not passed on: a reply that never ends
]
Cut = Literal["", "both", "requests", "replies"]
"""What a black hole swallows: a cut connection stays open and silent."""
Outcome = Literal["ok", "failed", "unknown"]
"""ok: the caller was sent the whole reply. failed: the request was never passed on. unknown: anything between."""

LATE = 5
PIECES = 20
FORWARD_S = slowly(120.0)


@dataclass(eq=False)
class Fault:
    """Something to do to requests whose `METHOD path` matches, with a chance, so many times at most."""

    kind: Kind
    match: str = ""
    chance: float = 1.0
    spared: int = 0
    """So many requests that match are let through first."""
    left: int = 1 << 30
    seconds: float = 0.0
    body: bytes = b""


@dataclass
class Call:
    """One request as the caller saw it end; `link` of a copy made by the proxy ends with `/copy`."""

    link: str
    target: str
    """METHOD path"""
    request: bytes
    outcome: Outcome
    status: int = 0
    reply: bytes = b""


@dataclass
class Link:
    """One listening port and where it leads to."""

    name: str
    upstream: int
    calls: list[Call]
    chance: random.Random
    url: str = ""
    cut: Cut = ""
    faults: list[Fault] = field(default_factory=list)
    passed: int = 0
    """Requests passed on so far."""
    _late: list[tuple[int, bytes]] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _passed: asyncio.Event = field(default_factory=asyncio.Event)

    async def open(self) -> asyncio.Server:
        """Listen at a free port."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=1024)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return server

    async def close(self) -> None:
        """End all connections."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._spawn(asyncio.create_task(self._serve(reader, writer)))

    def _spawn(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream = Upstream(self.upstream)
        with contextlib.suppress(ConnectionError), contextlib.closing(writer), contextlib.closing(upstream):
            while request := await read_message(reader):
                fault = self._draw(target_of(request))
                if not await self._exchange(request, fault, upstream, reader, writer):
                    return

    def _draw(self, target: str) -> Fault:
        for fault in self.faults:
            if fault.left <= 0 or not re.search(fault.match, target):
                continue
            if fault.spared > 0:
                fault.spared -= 1
            elif self.chance.random() < fault.chance:
                fault.left -= 1
                return fault
        return Fault("latency")

    async def _exchange(
        self,
        request: bytes,
        fault: Fault,
        upstream: "Upstream",
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        """One request and what becomes of it; whether the connection goes on."""
        call = Call(self.name, target_of(request), body_of(request), "failed")
        self.calls.append(call)
        if self.cut in ("both", "requests") or fault.kind == "silence":
            await _until_gone(reader)
            return False
        match fault.kind:
            case "drop":
                _reset(writer)
                return False
            case "answer":
                writer.write(fault.body)
                return True
            case "endless":
                await _drip(writer)
                return False
            case "latency":
                await asyncio.sleep(self.chance.random() * fault.seconds)
            case "hold":
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._passed.wait(), fault.seconds)
            case "duplicate":
                self._spawn(asyncio.create_task(self._copy(request)))
            case "late_copy":
                self._late.append((self.passed + LATE, request))
            case "gate":
                while fault in self.faults:  # noqa: ASYNC110 - taken away by the thread of the test
                    await asyncio.sleep(0.02)
        call.outcome = "unknown"
        reply = await upstream.ask(request)
        self._count()
        if reply is None:  # the server is gone
            _reset(writer)
            return False
        if self.cut in ("both", "replies"):
            await _until_gone(reader)
            return False
        return await _deliver(call, reply, fault, writer)

    def _count(self) -> None:
        self.passed += 1
        self._passed.set()
        self._passed = asyncio.Event()
        for due in [late for late in self._late if late[0] <= self.passed]:
            self._late.remove(due)
            self._spawn(asyncio.create_task(self._copy(due[1])))

    async def _copy(self, request: bytes) -> None:
        call = Call(f"{self.name}/copy", target_of(request), body_of(request), "unknown")
        self.calls.append(call)
        with contextlib.closing(Upstream(self.upstream)) as upstream, contextlib.suppress(ConnectionError):
            reply = await upstream.ask(request)
            if reply is not None:
                call.status, call.reply = status_of(reply), body_of(reply)


class Upstream:
    """A connection to the server, opened when it is needed and again when the server closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> bytes | None:
        """The reply; None where no whole one came."""
        if self._connection is None or self._connection[0].at_eof():
            self.close()
            try:
                self._connection = await asyncio.open_connection("127.0.0.1", self._port)
            except OSError:
                return None
        reader, writer = self._connection
        try:
            writer.write(request)
            async with asyncio.timeout(FORWARD_S):
                return await read_message(reader)
        except (ConnectionError, TimeoutError):
            return None

    def close(self) -> None:
        if self._connection is not None:
            self._connection[1].close()
            self._connection = None


class Proxies:
    """Links in a thread of their own, with one history."""

    def __init__(self, seed: int) -> None:
        self.calls: list[Call] = []
        self.links: dict[str, Link] = {}
        self._chance = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._servers: list[asyncio.Server] = []

    def link(self, name: str, upstream: int) -> Link:
        """A new link to a port of this machine."""
        link = self.links[name] = Link(name, upstream, self.calls, random.Random(self._chance.random()))
        self._servers.append(asyncio.run_coroutine_threadsafe(link.open(), self._loop).result(slowly(10)))
        return link

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(slowly(30))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for link in self.links.values():
            await link.close()
        await asyncio.sleep(0)  # transports close in the next round


@contextlib.contextmanager
def proxies(seed: int) -> Iterator[Proxies]:
    """Proxies that end with the test."""
    with contextlib.closing(Proxies(seed)) as running:
        yield running


async def read_message(reader: asyncio.StreamReader) -> bytes | None:
    """A whole HTTP message; None at the end of the stream, even one within a message."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"transfer-encoding" not in head.lower(), "this proxy knows Content-Length alone"
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        return head + await reader.readexactly(int(length[1]) if length else 0)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def target_of(request: bytes) -> str:
    return " ".join(request.split(b"\r\n", 1)[0].decode().split(" ")[:2])


def body_of(message: bytes) -> bytes:
    return message.partition(b"\r\n\r\n")[2]


def status_of(reply: bytes) -> int:
    return int(reply.split(b" ", 2)[1])


async def _deliver(call: Call, reply: bytes, fault: Fault, writer: asyncio.StreamWriter) -> bool:
    if fault.kind == "rewrite":
        old, new = fault.body.split(b" ")
        reply = reply.replace(old, new)
    match fault.kind:
        case "drop_reply":
            _reset(writer)
            return False
        case "half_close":
            writer.write_eof()
            return False
        case "truncate":
            writer.write(reply[: len(reply) // 2])
            return False
        case "throttle":
            step = len(reply) // PIECES + 1
            for start in range(0, len(reply), step):
                writer.write(reply[start : start + step])
                await asyncio.sleep(fault.seconds / PIECES)
        case _:
            writer.write(reply)
    await writer.drain()
    call.outcome, call.status, call.reply = "ok", status_of(reply), body_of(reply)
    return True


def _reset(writer: asyncio.StreamWriter) -> None:
    """RST instead of FIN."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _drip(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000000\r\n\r\n")
    while True:  # until the caller hangs up
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.01)


async def _until_gone(reader: asyncio.StreamReader) -> None:
    while await reader.read(1 << 16):
        pass
