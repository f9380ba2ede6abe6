"""`proctor serve --openenv` in this process: a worker, a gateway and the server kit, on real sockets."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from websockets.asyncio.client import ClientConnection, connect

from proctor.config.task import TaskDefinition
from proctor.config.tokens import AccessTokens
from proctor.environment import Agent, Environment, EnvironmentFault
from proctor.http.client import HttpReply, bounded_request, http_client
from proctor.http.server import listen, url_of
from proctor.http.serving import EmbeddedServer, uvicorn_config
from proctor.http.tls import NO_TLS, ServerTls
from proctor.types import Action, Finish, FinishReason, Message, Observation
from proctor_bridges.gateway.openenv_routes import WIRE
from proctor_bridges.gateway.serve import GatewayAccess, WireServer, own_worker, tasks_tried
from task_server.client.client import TaskClient


class Digits(Environment):
    """The twin of the toy server's environment; `half` ends with half a point, `hang` never comes back."""

    live: ClassVar[int] = 0

    def samples(self) -> Sequence[str]:
        return tuple("0123456789")

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        Digits.live += 1
        try:
            return await self._played(sample, agent)
        finally:
            Digits.live -= 1

    async def _played(self, sample: str, agent: Agent) -> Finish:
        told = "guess a digit"
        while True:
            action: Action = await agent.act(Observation(messages=(Message(role="user", content=told),)))
            if action.content == "boom":
                raise EnvironmentFault("the toy broke")
            if action.content == "hang":
                await asyncio.Event().wait()
            if action.content in (sample, "half"):
                score = 1.0 if action.content == sample else 0.5
                return Finish(reason=FinishReason.COMPLETED, score=score, metrics={"guessed": 1.0})
            told = f"wrong: {action.content}"


@dataclass
class Served:
    """The base URL of the server, and its clients."""

    url: str
    token: str | None = None
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def connect(self, task: str = "toy", *, query: str = "", **options: Any) -> "Player":
        """A client of a task, connected until the server ends or `close`."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token is not None else {}
        address = f"{self.url.replace('http', 'ws', 1)}/openenv/{task}/ws{query}"
        socket = await connect(address, **{"additional_headers": headers, "max_size": 16 << 20, **options})
        return Player(await self.stack.enter_async_context(socket))

    async def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """(status, body) of an HTTP request below the task `toy`."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token is not None else {}
        async with http_client() as http:
            reply: HttpReply = await bounded_request(
                http, method, f"{self.url}/openenv/{path}", json=body, headers=headers, deadline_s=20, max_bytes=1 << 20
            )
        return reply.status, json.loads(reply.body)


class Player:
    """One WebSocket of a client."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def say(self, frame: object) -> dict[str, Any]:
        """The answer to a frame."""
        await self.socket.send(frame if isinstance(frame, str) else json.dumps(frame))
        answer: dict[str, Any] = json.loads(await self.socket.recv())
        return answer

    async def reset(self, **data: object) -> dict[str, Any]:
        return await self.say({"type": "reset", "data": data})

    async def step(self, **action: object) -> dict[str, Any]:
        return await self.say({"type": "step", "data": action})

    async def close(self) -> None:
        await self.socket.close()


@asynccontextmanager
async def served(*tasks: TaskDefinition, token: str | None = None, tls: ServerTls = NO_TLS) -> AsyncIterator[Served]:
    """A server of these tasks."""
    listener = listen("127.0.0.1", 0)
    url = url_of("127.0.0.1", listener, tls.scheme)
    access = GatewayAccess(AccessTokens.given(token))
    async with AsyncExitStack() as stack:
        worker_url, worker_token = await stack.enter_async_context(own_worker(tasks))
        http = await stack.enter_async_context(http_client())
        client = TaskClient(worker_url, http, worker_token)
        await tasks_tried(client)
        service = WireServer([WIRE], client)
        await stack.enter_async_context(service.running())
        settings = uvicorn_config(
            service.app(access, url),
            keep_alive_s=5,
            last_replies_s=1,
            tls=tls,
            knows=access.knows,
            max_message_bytes=WIRE.max_message_bytes,
        )
        server = EmbeddedServer(settings)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            async with AsyncExitStack() as clients:
                yield Served(url, token, clients)
        finally:
            server.should_exit = True
            await serving
            listener.close()
