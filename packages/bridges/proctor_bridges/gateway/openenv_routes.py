"""Serves tasks to OpenEnv clients: `/openenv/TASK` is the base URL of a task, a WebSocket plays its episodes."""

import asyncio
import itertools
import secrets
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress

from fastapi import APIRouter, Request, Response, WebSocket, WebSocketDisconnect
from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import to_json
from starlette.types import Message

from proctor.http.server import add_route
from proctor_bridges.gateway import openenv
from proctor_bridges.gateway.foreign_session import NoSlot, NoSuchSample, NotOffered, Offer
from proctor_bridges.gateway.gateway import Gateway
from proctor_bridges.gateway.openenv import EnvReset, Object
from proctor_bridges.gateway.openenv_client import EpisodeClient, Failure, is_close
from proctor_bridges.gateway.wires import BadBody, ForeignWire, body_of, reply
from task_server.wire.errors import TaskServerError
from task_server.wire.messages import MAX_REQUEST_BYTES, VERSION

IDLE_S = 1800.0
"""A connection without a frame for this long is closed."""
MOST_CLIENTS = 4096
"""Sessions of clients that play by HTTP; one more forgets the oldest."""
MOST_WAITING = 8
"""Frames of a client that are read while another is answered; the rest are read later."""
NO_STEPS = "a step needs a session; connect a WebSocket to /openenv/TASK/ws, and send a `reset` frame first"

Handler = Callable[[Request, Offer], Awaitable[Response]]


class _Action(BaseModel):
    action: dict[str, JsonValue]


class _Split(BaseModel):
    split: str


class _Index(_Split):
    index: int


class _Range(_Split):
    start: int | None = None
    stop: int | None = None


class _Tasks:
    """The routes of all tasks."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._turns: defaultdict[str, Iterator[int]] = defaultdict(itertools.count)
        self._clients: dict[tuple[str, str], EpisodeClient] = {}
        """Those that play by HTTP, by their task and their session's id."""

    def add_to(self, routes: APIRouter) -> None:
        """Add the routes below the wire's prefix."""
        gets = {"health": _health, "metadata": _metadata, "schema": _schema, "state": _state}
        posts = {"reset": self._reset, "step": _step, "mcp": self._mcp}
        lists = {"tasks": _list, "num_tasks": _count, "task": _one, "task_range": _some}
        routes.add_api_websocket_route("/{task}/ws", self._play)
        for name, handler in {**gets, "list_environments": _environments, "{environment}/splits": _splits}.items():
            add_route(routes, "GET", f"/{{task}}/{name}", self._asked(handler))
        for name, handler in {**posts, **{f"{{environment}}/{each}": on for each, on in lists.items()}}.items():
            add_route(routes, "POST", f"/{{task}}/{name}", self._asked(handler))

    def _asked(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """A handler of a task's requests, with the errors that all have."""

        async def answer(request: Request) -> Response:
            try:
                return await handler(request, await self._gateway.offer(request.path_params["task"]))
            except NotOffered as error:
                return reply({"detail": str(error)}, 404)
            except ValidationError as error:
                return reply({"detail": openenv.complaints(error)}, 422)
            except (BadBody, ValueError, NoSuchSample) as error:
                return reply({"detail": str(error)}, 422)
            except Failure as failure:
                return reply({"detail": failure.data}, 503)
            except (NoSlot, TaskServerError) as error:
                return reply({"detail": str(error)}, 503)

        answer.__doc__ = handler.__doc__
        return answer

    def _client(self, task: str) -> EpisodeClient:
        return EpisodeClient(self._gateway, task, self._turns[task])

    async def _reset(self, request: Request, offer: Offer) -> Response:
        """The first observation of an episode that goes no further."""
        asked = EnvReset.model_validate(await body_of(request, Object, empty=b"{}"))
        client = self._client(offer.catalogue.task)
        try:
            return reply(await client.reset(asked))
        finally:
            await client.end()

    async def _mcp(self, request: Request, offer: Offer) -> Response:
        """JSON-RPC of MCP, in a session that a client made by HTTP."""
        asked, task = await body_of(request, Object), offer.catalogue.task
        params = asked.get("params")
        id_ = str(params.get("session_id")) if isinstance(params, dict) else ""
        if asked.get("method") == "openenv/session/create":
            made = secrets.token_hex(16)
            self._clients[task, made] = self._client(task)
            if len(self._clients) > MOST_CLIENTS:
                await self._clients.pop(next(iter(self._clients))).end()
            return _result(asked, {"session_id": made})
        if asked.get("method") == "openenv/session/close":
            if closed := self._clients.pop((task, id_), None):
                await closed.end()
            return _result(asked, {"session_id": id_, "closed": closed is not None})
        client = self._clients.get((task, id_)) or self._client(task)
        if isinstance(params, dict):
            asked["params"] = {name: value for name, value in params.items() if name != "session_id"}
        return reply(await client.rpc(asked))

    async def _play(self, socket: WebSocket) -> None:
        """One episode, frame by frame."""
        await socket.accept()
        task, id_ = socket.path_params["task"], socket.query_params.get("session_id", "")
        try:
            await self._gateway.offer(task)
            await _talk(socket, self._clients.get((task, id_)) or self._client(task))
        except (NotOffered, TaskServerError) as error:
            with suppress(WebSocketDisconnect):
                await _send(socket, {"type": "error", "data": {"message": str(error), "code": "SESSION_ERROR"}})
        except WebSocketDisconnect:
            return
        finally:
            self._clients.pop((task, id_), None)
        with suppress(RuntimeError, WebSocketDisconnect):  # the client has closed it
            await socket.close()


async def _talk(socket: WebSocket, client: EpisodeClient) -> None:
    """Answer frames in turn. A client that goes or says `close` within a step ends its episode at once."""
    waiting, answering = deque[str | bytes](), None
    receiving = asyncio.create_task(socket.receive())
    try:
        while waiting or await _arrives(receiving):
            if not waiting:
                waiting.append(_text(receiving.result()))
                receiving = asyncio.create_task(socket.receive())
            answering = asyncio.create_task(client.answer(waiting.popleft()))
            while not answering.done():
                watched = {answering} if len(waiting) == MOST_WAITING else {answering, receiving}
                await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
                if receiving.done() and len(waiting) < MOST_WAITING:
                    if _is_end(receiving.result()) or is_close(_text(receiving.result())):
                        return
                    waiting.append(_text(receiving.result()))
                    receiving = asyncio.create_task(socket.receive())
            answer = answering.result()
            if answer is None:
                return
            await _send(socket, answer)
    finally:
        receiving.cancel()
        await client.end()
        if answering is not None:
            await asyncio.wait([answering])  # a reset that waits for a slot may still get one
            await client.end()


async def _arrives(receiving: asyncio.Task[Message]) -> bool:
    """Whether a frame comes before the connection ends or is idle for too long."""
    await asyncio.wait([receiving], timeout=IDLE_S)
    return receiving.done() and not _is_end(receiving.result())


def _is_end(message: Message) -> bool:
    return bool(message["type"] == "websocket.disconnect")


def _text(message: Message) -> str | bytes:
    text: str | bytes = message.get("text") or message.get("bytes") or ""
    return text


async def _send(socket: WebSocket, frame: dict[str, object]) -> None:
    await socket.send_text(to_json(frame).decode())


def _result(asked: Object, result: dict[str, object]) -> Response:
    return reply({"jsonrpc": "2.0", "id": asked.get("id"), "result": result})


async def _health(request: Request, offer: Offer) -> Response:
    """Whether the task can be played."""
    return reply({"status": "healthy"})


async def _metadata(request: Request, offer: Offer) -> Response:
    """The task's name, description and version."""
    what = f"The task {offer.catalogue.task} of Proctor's environment {offer.catalogue.environment}."
    known = {"name": offer.catalogue.task, "description": what, "version": VERSION}
    return reply(known | dict.fromkeys(("readme_content", "author", "documentation_url")))


async def _schema(request: Request, offer: Offer) -> Response:
    """The JSON schemas of actions, observations and states."""
    return reply(openenv.schemas())


async def _state(request: Request, offer: Offer) -> Response:
    """The state of an environment that has no episode."""
    return reply(openenv.state(None, offer.catalogue.task, None))


async def _step(request: Request, offer: Offer) -> Response:
    """Refused with 409: episodes are played by WebSocket or MCP."""
    openenv.read_action((await body_of(request, _Action)).action)
    return reply({"detail": NO_STEPS, "code": "EXECUTION_ERROR"}, 409)


async def _environments(request: Request, offer: Offer) -> Response:
    """The task's name, as a list."""
    return reply([offer.catalogue.task])


async def _splits(request: Request, offer: Offer) -> Response:
    """The only split, which has the task's name."""
    return reply([{"name": offer.catalogue.task, "type": "test"}])


async def _list(request: Request, offer: Offer) -> Response:
    """All samples of a split."""
    tasks = _of_split(offer, await body_of(request, _Split))
    return reply({"tasks": tasks, "env_name": offer.catalogue.task})


async def _count(request: Request, offer: Offer) -> Response:
    """The number of samples of a split."""
    return reply({"num_tasks": len(_of_split(offer, await body_of(request, _Split)))})


async def _one(request: Request, offer: Offer) -> Response:
    """The sample with an index."""
    asked = await body_of(request, _Index)
    tasks = _of_split(offer, asked)
    if not 0 <= asked.index < len(tasks):
        return reply({"detail": "Invalid task index"}, 400)
    return reply({"task": tasks[asked.index]})


async def _some(request: Request, offer: Offer) -> Response:
    """The samples in a range of indices."""
    asked = await body_of(request, _Range)
    return reply({"tasks": _of_split(offer, asked)[asked.start : asked.stop]})


def _of_split(offer: Offer, asked: _Split) -> list[dict[str, object]]:
    """The samples of a task as tasks of its only split, which has the task's name. Raises ValueError."""
    task = offer.catalogue.task
    if asked.split != task:
        raise ValueError(f"split: there is only {task!r}")
    return [{"id": sample, "index": index, "split": task} for index, sample in enumerate(offer.catalogue.samples)]


WIRE = ForeignWire(
    "OpenEnv: serve each task as an environment at /openenv/TASK.",
    "/openenv",
    IDLE_S,
    lambda routes, gateway: _Tasks(gateway).add_to(routes),
    max_message_bytes=MAX_REQUEST_BYTES,
)
