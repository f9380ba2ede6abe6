"""An HTTP endpoint that misbehaves on purpose."""

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.e2e.proctor import Server
from tests.pace import slowly

ANSWER = "Action: Answer\nFinal Answer: []"
GOOD = json.dumps(
    {
        "id": "1",
        "object": "chat.completion",
        "model": "scripted",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": f"Thinking.\n{ANSWER}"}}
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }
).encode()


def reply(status: int, body: bytes, *headers: str) -> bytes:
    """A whole HTTP reply."""
    lines = [f"HTTP/1.1 {status} X", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _anywhere() -> socket.socket:
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    return bound


class ScriptedEndpoint:
    """Answers each request with `bad` while any is left, then with a good completion; None never answers."""

    def __init__(self) -> None:
        self.bad: list[bytes | None] = []
        self.always: bytes | bool = False
        """What every request gets; True: no answer ever; False: a good one once `bad` is used up."""
        self.rule: Callable[[dict[str, Any]], bytes | None] = lambda _request: None
        """What a request gets before anything else; None: what comes otherwise."""
        self.requests: list[dict[str, Any]] = []
        self.headers: list[str] = []
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.url = ""
        self.bound: socket.socket | None = None
        """Where to listen; None: anywhere."""

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._connected, sock=self.bound or _anywhere())
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for connection in list(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    def hang_up(self) -> None:
        """End all connections, and answer well from now on. May be called from another thread."""
        self.always = False
        for connection in list(self._connections):
            self.soon(connection.cancel)

    def soon(self, do: Callable[[], object]) -> None:
        """Do it in the thread of the endpoint."""
        assert self._server is not None
        self._server.get_loop().call_soon_threadsafe(do)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                asked = not head.startswith("GET ")  # as for the list of models
                if asked:
                    length = next(
                        int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:")
                    )
                    self.headers.append(head)
                    self.requests.append(json.loads(await reader.readexactly(length)))
                answer = await self.replied(asked=asked)
                if answer is None:
                    await asyncio.Event().wait()
                    return
                writer.write(answer)
                await writer.drain()

    async def replied(self, *, asked: bool) -> bytes | None:
        """What a request gets: the latest of `requests`, where it was `asked`."""
        told = self.rule(self.requests[-1]) if asked else None
        return told or self._answer()

    def _answer(self) -> bytes | None:
        if self.always is not False:
            return None if self.always is True else self.always
        return self.bad.pop(0) if self.bad else self._good()

    def _good(self) -> bytes:
        """The reply to the latest request, once nothing bad is left to say."""
        return reply(200, GOOD)


@contextlib.contextmanager
def listening(scripted: ScriptedEndpoint) -> Iterator[None]:
    """The endpoint answers, in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(scripted.open(), loop).result(slowly(10))
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(scripted.close(), loop).result(slowly(10))
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(slowly(10))
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def write_plan(folder: Path, worker: Server, url: str, *more: str, **fields: object) -> None:
    """A plan of one model, two trials at once, on the worker's task; `fields` are those of its endpoint at this URL."""
    endpoint = json.dumps({"name": "scripted", "base_url": url, "api_key_env": "SCRIPTED_KEY", **fields})
    agents, tasks = "agents: [{name: model, endpoint: scripted, concurrency: 2}]", "tasks: [{name: db-own}]"
    lines = [f"controller: {worker.url}", f"endpoints: [{endpoint}]", agents, tasks, *more]
    (folder / "plan.yaml").write_text("\n".join(lines) + "\n")
