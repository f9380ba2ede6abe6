"""A double of an OpenEnv server: guess a digit, told as text or played by a tool.

It speaks the frames that were captured from the original; `test_toy_server.py` holds it to them. The digit is the last
one of the seed. Some guesses break things: `boom` raises, `hang` gets no answer, `leave` ends the connection, `big` is
answered with more than a client takes, `mute` ends the episode without a reward, `half` is worth -0.5.
"""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from proctor.http.server import listen, url_of
from proctor.http.serving import EmbeddedServer, uvicorn_config

MCP_ACTION = {"properties": {"type": {"const": "call_tool"}, "tool_name": {"type": "string"}, "arguments": {}}}
TOOLS = [
    {
        "name": "guess",
        "description": "Guess the digit.",
        "input_schema": {"type": "object", "properties": {"digit": {"type": "string"}}, "required": ["digit"]},
    }
]


class Forbidding(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ToyAction(Forbidding):
    metadata: dict[str, Any] = Field(default_factory=dict)
    content: str


class ToyObservation(Forbidding):
    done: bool = False
    reward: bool | int | float | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    text: str = ""


class ToyState(BaseModel):
    model_config = ConfigDict(extra="allow", title="State")

    episode_id: str | None = None
    step_count: Annotated[int, Field(ge=0)] = 0


class Message(Forbidding):
    type: str
    data: dict[str, Any] = Field(default_factory=dict)


class ToyTool(Forbidding):
    type: str
    tool_name: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict)


class Digit:
    """One environment."""

    def __init__(self) -> None:
        self.state = ToyState()
        self._digit = "7"

    def reset(self, data: dict[str, Any]) -> dict[str, Any]:
        self._digit = str(data.get("seed", data.get("index", 7)))[-1]
        self.state = ToyState(episode_id=data.get("episode_id"))
        extra = {"kw": sorted(data.keys() - {"seed", "episode_id"})}
        return _result({"metadata": extra, "text": "guess a digit"}, None, False) | {"metadata": extra}

    def step(self, guess: str) -> dict[str, Any]:
        if guess == "boom":
            raise RuntimeError("the toy broke")
        self.state.step_count += 1
        if guess == "mute":
            return _result({"metadata": {}, "text": "over"}, None, True)
        right = guess == self._digit
        reward = -0.5 if guess == "half" else float(right)
        return _result({"metadata": {}, "text": "right" if right else "wrong"}, reward, right)

    def call(self, data: dict[str, Any]) -> dict[str, Any]:
        """A step of the environment of tools."""
        asked = ToyTool.model_validate(data)
        if asked.type == "list_tools":
            return _result({"metadata": {}, "tools": TOOLS}, None, False)
        result = self.step(str(asked.arguments.get("digit")))
        text = result["observation"]["text"]
        content = {"content": [{"type": "text", "text": text}], "data": text}
        return result | {"observation": {"metadata": {}, "tool_name": asked.tool_name, "result": content}}


def _result(observation: dict[str, Any], reward: float | None, done: bool) -> dict[str, Any]:
    return {"observation": observation, "reward": reward, "done": done}


class ToyServer:
    """What the server holds; a test reads `most` and `resets`."""

    def __init__(self, slots: int, tasks: int | None, mcp: bool) -> None:
        self.slots, self.tasks, self.mcp = slots, tasks, mcp
        self.live = self.most = 0
        self.resets: list[dict[str, Any]] = []

    def app(self) -> Starlette:
        routes = [
            Route("/health", self._health),
            Route("/metadata", self._metadata),
            Route("/schema", self._schema),
            Route("/list_environments", self._environments),
            Route("/toy/splits", self._splits),
            Route("/toy/num_tasks", self._num_tasks, methods=["POST"]),
            WebSocketRoute("/ws", self._session),
        ]
        return Starlette(routes=routes)

    async def _health(self, _: Request) -> Response:
        return JSONResponse({"status": "healthy"})

    async def _metadata(self, _: Request) -> Response:
        known = {"name": "Toy", "description": "Toy environment", "version": "1.0.0"}
        return JSONResponse(known | dict.fromkeys(("readme_content", "author", "documentation_url")))

    async def _schema(self, _: Request) -> Response:
        observation = ToyObservation.model_json_schema()
        action = MCP_ACTION if self.mcp else ToyAction.model_json_schema()
        state = ToyState.model_json_schema()
        return JSONResponse(
            {"action": action, "observation": observation, "state": state, "reset_observation": observation}
        )

    async def _environments(self, _: Request) -> Response:
        return JSONResponse(["toy"])

    async def _splits(self, _: Request) -> Response:
        if self.tasks is None:
            return JSONResponse({"detail": "list_splits is not supported for this environment"}, 501)
        return JSONResponse([{"name": "train", "type": "train"}, {"name": "test", "type": "test"}])

    async def _num_tasks(self, request: Request) -> Response:
        return JSONResponse({"num_tasks": self.tasks if (await request.json())["split"] == "test" else 1})

    async def _session(self, socket: WebSocket) -> None:
        await socket.accept()
        if self.live >= self.slots:
            used = f"{self.live}/{self.slots}"
            message = f"Server at capacity: {used} sessions active. Cannot accept new connections."
            counts = {"active_sessions": self.live, "max_sessions": self.slots}
            await _fail(socket, message, "CAPACITY_REACHED", **counts)
            return await socket.close()
        self.live += 1
        self.most = max(self.most, self.live)
        try:
            await self._talk(socket, Digit())
        except WebSocketDisconnect:
            return None
        finally:
            self.live -= 1
        return await socket.close()

    async def _talk(self, socket: WebSocket, digit: Digit) -> None:
        while True:
            text = await socket.receive_text()
            try:
                found = json.loads(text)
                kind = found.get("type")
                if kind == "close":
                    return
                if kind not in ("reset", "step", "state"):
                    await _fail(socket, f"Unknown message type: {kind}", "UNKNOWN_TYPE")
                    continue
                data = Message.model_validate(found).data
                if kind == "state":
                    await socket.send_json({"type": "state", "data": digit.state.model_dump()})
                    continue
                if kind == "reset":
                    self.resets.append(data)
                await self._observe(socket, digit.reset(data) if kind == "reset" else await self._acted(digit, data))
            except json.JSONDecodeError as error:
                await _fail(socket, f"Invalid JSON: {error}", "INVALID_JSON")
            except ValidationError as error:
                await _fail(socket, "Invalid message", "VALIDATION_ERROR", errors=error.errors())
            except RuntimeError as error:
                await _fail(socket, str(error), "EXECUTION_ERROR")

    async def _acted(self, digit: Digit, data: dict[str, Any]) -> dict[str, Any]:
        if self.mcp:
            return digit.call(data)
        guess = ToyAction.model_validate(data).content
        if guess == "hang":
            await asyncio.Event().wait()
        if guess == "leave":
            raise WebSocketDisconnect
        if guess == "big":
            return _result({"metadata": {}, "text": "x" * (9 << 20)}, 0.0, False)
        return digit.step(guess)

    async def _observe(self, socket: WebSocket, result: dict[str, Any]) -> None:
        await socket.send_json({"type": "observation", "data": result})


async def _fail(socket: WebSocket, message: str, code: str, **more: object) -> None:
    await socket.send_text(json.dumps({"type": "error", "data": {"message": message, "code": code, **more}}))


@asynccontextmanager
async def toy_server(
    *, slots: int = 2, tasks: int | None = None, mcp: bool = False
) -> AsyncIterator[tuple[str, ToyServer]]:
    """Its base URL, and the server, which runs on a thread of its own: an environment's `samples` blocks its loop."""
    server = ToyServer(slots, tasks, mcp)
    listener = listen("127.0.0.1", 0)
    settings = uvicorn_config(server.app(), keep_alive_s=5, last_replies_s=1, max_message_bytes=16 << 20)
    serving = EmbeddedServer(settings)
    thread = threading.Thread(target=lambda: asyncio.run(serving.serve(sockets=[listener])))
    thread.start()
    try:
        yield url_of("127.0.0.1", listener), server
    finally:
        serving.should_exit = True
        await asyncio.to_thread(thread.join)
        listener.close()


def keys(value: object) -> object:
    """The shape of a JSON value: its keys, and those of the values and of a list's first item."""
    if isinstance(value, dict):
        return {name: keys(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [keys(item) for item in value[:1]]
    return None
