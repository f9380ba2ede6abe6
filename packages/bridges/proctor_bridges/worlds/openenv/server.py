"""An OpenEnv server as a client sees it: what it says of its environment over HTTP, and sessions over WebSockets."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import quote

from pydantic import BaseModel, Field, JsonValue, TypeAdapter, ValidationError
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from proctor.environment import EnvironmentFault, ServiceAway
from proctor.http.client import HttpClient, HttpFailure, HttpReply, bounded_request, http_client
from proctor_bridges.worlds.openenv.wire import (
    OBJECT,
    Object,
    StepResult,
    complaint,
    read_frame,
    read_result,
    shown,
    written,
)

MAX_BYTES = 8 << 20
"""Of a frame and of an HTTP reply."""
DESCRIBE_S = 30.0
OPEN_S = 10.0
CLOSE_S = 5.0
"""Waited for the server to free the session's slot."""
MOST_SAMPLES = 1_000_000
NO_TASKS = (404, 405, 501)
"""Statuses of a task route that the server or its environment does not have."""


class _Schemas(BaseModel):
    action: Object
    observation: Object


class _Split(BaseModel):
    name: str


class _Count(BaseModel):
    num_tasks: int = Field(ge=0)


_NAMES = TypeAdapter(tuple[str, ...])
_SPLITS = TypeAdapter(tuple[_Split, ...])


@dataclass(frozen=True)
class ServedTasks:
    """The tasks that the server counts."""

    splits: tuple[str, ...]
    split: str
    count: int


@dataclass(frozen=True)
class ServedEnvironment:
    """What a server says of its environment."""

    metadata: Object
    schemas: Object
    action: Object
    observation: Object
    tasks: ServedTasks | None


class RejectedAction(Exception):
    """The environment does not take this action; the session goes on. The text is for the agent."""


async def described(url: str, *, with_tasks: bool, split: str | None) -> ServedEnvironment:
    """What the server at a URL says of its environment. Raises ValueError, which names the field to correct."""
    async with http_client() as http:
        server = _Http(http, url)
        try:
            schemas = OBJECT.validate_json(await server.body("/schema"))
            parts = _Schemas.model_validate(schemas)
            metadata = OBJECT.validate_json(await server.body("/metadata"))
            tasks = await _tasks(server, split) if with_tasks else None
        except HttpFailure as error:
            raise ValueError(f"url: {error}; is the OpenEnv server running?") from error
        except ValidationError as error:
            raise ValueError(f"url: {url} is no OpenEnv server: {error.errors()[0]['msg']}") from error
    return ServedEnvironment(metadata, schemas, parts.action, parts.observation, tasks)


class _Http:
    def __init__(self, http: HttpClient, url: str) -> None:
        self._http, self._url = http, url.rstrip("/")

    async def ask(self, path: str, body: Mapping[str, JsonValue] | None = None) -> HttpReply:
        method = "GET" if body is None else "POST"
        return await bounded_request(
            self._http, method, self._url + path, json=body, deadline_s=DESCRIBE_S, max_bytes=MAX_BYTES
        )

    async def body(self, path: str, body: Mapping[str, JsonValue] | None = None) -> bytes:
        """The body of a successful reply."""
        reply = await self.ask(path, body)
        if reply.status in NO_TASKS and path not in ("/schema", "/metadata"):
            raise ValueError("samples: the server has no task routes; give a number, whose seeds are played")
        if reply.status != 200:
            raise ValueError(f"url: {self._url}{path} answered {reply.status}: {shown(reply.body)}")
        return reply.body


async def _tasks(server: _Http, split: str | None) -> ServedTasks:
    names = _NAMES.validate_json(await server.body("/list_environments"))
    if not names:
        raise ValueError("samples: the server lists no environment; give a number, whose seeds are played")
    base = f"/{quote(names[0], safe='')}"
    splits = tuple(each.name for each in _SPLITS.validate_json(await server.body(f"{base}/splits")))
    if split is None and len(splits) == 1:
        split = splits[0]
    if split is None or split not in splits:
        raise ValueError(f"split: name one of those that the server has: {', '.join(splits)}")
    count = _Count.model_validate_json(await server.body(f"{base}/num_tasks", {"split": split})).num_tasks
    if count > MOST_SAMPLES:
        many = f"{count} tasks, more than {MOST_SAMPLES}"
        raise ValueError(f"samples: the server counts {many}; give a number, whose seeds are played")
    return ServedTasks(splits, split, count)


class EnvSession:
    """One session, over a WebSocket of its own. Its methods raise EnvironmentFault."""

    def __init__(self, socket: ClientConnection, limit_s: float) -> None:
        self._socket, self._limit_s = socket, limit_s

    async def reset(self, data: Object) -> StepResult:
        """Begin an episode."""
        try:
            return await self._ask("reset", data)
        except RejectedAction as error:
            raise EnvironmentFault(f"the server refuses to reset: {error}; correct the parameter `reset`") from error

    async def step(self, action: Object) -> StepResult:
        """Act. Raises RejectedAction where the server says that the action is invalid."""
        return await self._ask("step", action)

    async def close(self) -> None:
        """End the session, and wait until its slot is free."""
        async with asyncio.timeout(CLOSE_S):
            await self._socket.send('{"type": "close"}')
            await self._socket.wait_closed()

    async def _ask(self, type_: str, data: Object) -> StepResult:
        async with _faults(f"no answer to {type_!r} within {self._limit_s:g} s"), asyncio.timeout(self._limit_s):
            with suppress(ConnectionClosed):  # a server without a free slot says so and closes: `recv` gets its frame
                await self._socket.send(written(type_, data))
            frame = read_frame(await self._socket.recv())
            if frame.type != "error":
                return read_result(frame)
        if frame.data.get("code") == "VALIDATION_ERROR":
            raise RejectedAction(complaint(frame.data))
        raise EnvironmentFault(f"the OpenEnv server: {frame.data.get('code')}: {complaint(frame.data)}")


@asynccontextmanager
async def session(url: str, limit_s: float) -> AsyncIterator[EnvSession]:
    """A session at the server of a base URL; each of its answers must come within `limit_s`."""
    address = f"ws{url.rstrip('/').removeprefix('http')}/ws"
    async with _faults(f"no connection within {OPEN_S:g} s"):
        socket = await connect(address, max_size=MAX_BYTES, open_timeout=OPEN_S, close_timeout=CLOSE_S, proxy=None)
    opened = EnvSession(socket, limit_s)
    try:
        yield opened
        with suppress(Exception):
            await opened.close()
    finally:
        await socket.close()


@asynccontextmanager
async def _faults(late: str) -> AsyncIterator[None]:
    """Whatever goes wrong between us and the server is a fault; `late` says what a deadline means."""
    try:
        yield
    except TimeoutError as error:
        raise EnvironmentFault(f"the OpenEnv server: {late}") from error
    except (OSError, ValueError, WebSocketException) as error:
        kind = EnvironmentFault if isinstance(error, ValueError) else ServiceAway
        raise kind(f"the OpenEnv server: {type(error).__name__}: {error}") from error
