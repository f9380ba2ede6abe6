"""A worker in this process, and the app of the foreign wires over it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from proctor import registry
from proctor.config.task import TaskDefinition
from proctor.config.tokens import AccessTokens
from proctor.environment import Environment
from proctor_bridges.gateway.serve import GatewayAccess, WireServer
from proctor_bridges.gateway.wires import wires
from task_server.client.client import TaskClient
from task_server.wire.messages import TaskCapacity
from task_server.worker.worker import Worker
from tests.pace import slowly
from tests.support import via


def client_of(worker: Worker) -> TaskClient:
    """A client of a worker in this process."""
    http = httpx.AsyncClient(transport=httpx.ASGITransport(worker.app()))
    return TaskClient("http://worker", via(http), patience_s=0.0)


async def listed(client: TaskClient, true: Callable[[Sequence[TaskCapacity]], bool]) -> None:
    """Return once what the worker says of its tasks is so."""
    async with asyncio.timeout(slowly(60)):
        while not true((await client.tasks()).tasks):  # noqa: ASYNC110 - it is asked over HTTP
            await asyncio.sleep(0.001)


class ForeignWorld:
    """An app with one wire, and the worker behind it."""

    def __init__(self, wire: str, tasks: Mapping[str, tuple[type[Environment], int, dict[str, Any]]]) -> None:
        kinds = {name: kind for name, (kind, _, _) in tasks.items()}
        registry.load = lambda name: kinds[name]
        self.worker = Worker(
            "w",
            "http://worker",
            [
                TaskDefinition(name=name, environment=name, capacity=capacity, parameters=parameters)
                for name, (_, capacity, parameters) in tasks.items()
            ],
        )
        self.tasks = tuple(tasks)
        self.foreign = wires()[wire]
        self.client = client_of(self.worker)
        self.server = WireServer([self.foreign], self.client)
        self.app = self.server.app(GatewayAccess(AccessTokens()), "http://127.0.0.1")
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app), base_url=f"http://127.0.0.1{self.foreign.prefix}"
        )

    async def ready(self) -> None:
        """Return once the worker holds all its tasks."""
        await listed(self.client, lambda tasks: all(task.waiting is None for task in tasks))

    async def free(self, slots: int) -> None:
        """Return once all slots are free."""
        await listed(self.client, lambda tasks: sum(task.free for task in tasks) == slots)

    async def lost(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> None:
        """Post a request, and be gone when its answer comes."""
        events: list[dict[str, Any]] = [
            {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False},
            {"type": "http.disconnect"},
        ]

        async def receive() -> dict[str, Any]:
            return events.pop(0) if len(events) > 1 else events[0]

        async def send(_: Any) -> None:
            return None

        named = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
        scope = {
            "type": "http",
            "method": "POST",
            "path": f"{self.foreign.prefix}/{path}",
            "query_string": b"",
            "headers": [(b"host", b"127.0.0.1"), *named],
        }
        await self.app(scope, receive, send)


@asynccontextmanager
async def playing(
    monkeypatch: pytest.MonkeyPatch, wire: str, **tasks: tuple[type[Environment], int, dict[str, Any]]
) -> AsyncIterator[ForeignWorld]:
    """The world while its worker and its wire run."""
    monkeypatch.setattr(registry, "load", registry.load)
    world = ForeignWorld(wire, tasks)
    async with world.worker.running(), world.server.running(), world.http:
        await world.ready()
        yield world


def lines(path: Path) -> Sequence[dict[str, Any]]:
    """The lines of a capture."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
