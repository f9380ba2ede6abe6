"""The reference of the HTTP APIs, from the servers' OpenAPI documents."""

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import httpx
from fastapi import FastAPI
from pydantic import BaseModel
from starlette.types import ASGIApp

from agent_server.app import build_app
from proctor.config.model_fields import describe
from proctor.config.tokens import AccessTokens
from proctor.http.auth import Access
from proctor.http.client import http_client
from proctor.observability.metrics import ProcessMetrics
from proctor.types import Summary
from proctor_bridges.mcp.server import McpEpisodes, add_routes
from task_server.controller.controller import Controller
from task_server.http.transport import Caller
from task_server.wire import messages, worker_messages
from task_server.wire.errors import ApiError
from tools.docs.markdown import cell, markdown
from tools.docs.schema import named

Json = Mapping[str, Any]
_RAISES = re.compile(r"\s*Raises\b.*", re.DOTALL)
URL, TOKEN = "http://localhost", "a token"


def documents() -> dict[str, Json]:
    """file of docs/reference/ -> the OpenAPI document of task servers and of agent servers, with all meanings"""
    return {
        "openapi-tasks.json": _described(asyncio.run(task_servers())),
        "openapi-agents.json": asyncio.run(agent_server()),
    }


def page() -> str:
    """docs/reference/http.md."""
    tasks, agents = documents().values()
    parts = [
        "# HTTP API",
        "For whoever writes a client of our servers: every route, and every type of error. The fields of each message, "
        "with types and meanings, are in the OpenAPI documents [openapi-tasks.json](openapi-tasks.json) and "
        "[openapi-agents.json](openapi-agents.json); all servers but the one for MCP serve theirs at `/openapi.json`. "
        "[Task servers](../how-to/task-servers.md) says what clients may rely on.",
        "## Controllers and workers",
        "A worker has no `/workers`.",
        *_server(tasks),
        "### Errors",
        "Each error of a controller or worker is a `Problem` of one of these types.",
        _errors(),
        "## Agent servers",
        *_server(agents),
        "## Gateways",
        "`proctor serve` serves other protocols, each under a prefix: `/agentbench/api`, `/agentrl/api` (under "
        "`/agentrl/renew/api` an empty message only keeps its session alive) and `/openenv/{task}`, whose WebSocket, "
        "frame by frame one episode, is at `/openenv/{task}/ws`. [AgentBench](../how-to/agentbench.md) and "
        "[OpenEnv](../how-to/openenv.md) describe how clients use them.",
        "## The viewer",
        "[Runs in a browser](../how-to/view.md#the-pages) has the pages of `proctor view` and its "
        "[JSON](../how-to/view.md#json); the files of its pages are under `/assets/`. `/login` is there only if the "
        "viewer has a token.",
        "## MCP server",
        "An agent of `kind: command` gets the URL of its episode at a server in the client's process. See [Coding "
        "agents](../how-to/coding-agents.md).",
        route_table(_mcp()),
    ]
    return markdown(parts)


def _mcp() -> Json:
    app = FastAPI()
    add_routes(app.router, McpEpisodes())
    return app.openapi()


async def task_servers() -> Json:
    """The document of a controller; a worker's is the same without its routes about workers."""
    async with http_client() as http:
        return await document(Controller(URL, Caller(http, TOKEN), access=Access(AccessTokens(TOKEN))).app())


async def agent_server() -> Json:
    """The document of an agent server without agents."""
    return await document(build_app({}, Access(), 1, ProcessMetrics("agent-server")))


async def document(app: ASGIApp) -> Json:
    """What an app serves at /openapi.json, to whoever has the token."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=URL) as client:
        found: Json = (await client.get("/openapi.json", headers=headers)).json()
    return found


def _described(api: Json) -> Json:
    """The document with what the models of task servers say of their fields."""
    named = (*vars(messages).values(), *vars(worker_messages).values())
    models: list[type[BaseModel]] = [
        Summary,
        *(each for each in named if isinstance(each, type) and issubclass(each, BaseModel)),
    ]
    describe(api["components"]["schemas"], *models)
    operations = (operation for path in api["paths"].values() for operation in path.values())
    for parameters in [each.get("parameters", []) for each in operations]:
        query = {one["name"]: one["schema"] for one in parameters if one["in"] == "query"}
        for model in (each for each in models if each.model_fields.keys() == query.keys()):
            describe({model.__name__: {"properties": query}}, model)
    return api


def _errors() -> str:
    rows = [
        f"| `{error.type}` | {error.status} | {'yes' if error.retryable else 'no'} | {cell(error.__doc__ or '')} |"
        for error in _leaves(ApiError)
    ]
    return "\n".join(["| type | status | a retry can help | meaning |", "|---|---|---|---|", *rows])


def _leaves(error: type[ApiError]) -> Iterator[type[ApiError]]:
    for each in error.__subclasses__():
        yield from _leaves(each) if each.__subclasses__() else [each]


def _server(api: Json) -> Iterator[str]:
    operations = [
        (f"{method.upper()} {path}", each) for path, on in api["paths"].items() for method, each in on.items()
    ]
    closed = [operation for _, operation in operations if "security" in operation]
    everywhere = sorted(set.intersection(*({*_failures(each)} for each in closed or [each for _, each in operations])))
    if everywhere:
        failures = _failures(closed[0])
        said = "; ".join(f"{status} ({failures[status]})" for status in everywhere)
        yield f"Every route that needs a token may answer {said}."
    rows = [_operation(name, operation, everywhere) for name, operation in operations]
    yield "\n".join(["| route | purpose | body, answer | may fail with |", "|---|---|---|---|", *rows])


def _operation(name: str, operation: Json, everywhere: Iterable[str]) -> str:
    """The row of a route."""
    body, answer = (_named(operation.get("requestBody", {})), _named(operation["responses"].get("200", {})))
    failures = ", ".join(status for status in _failures(operation) if status not in everywhere)
    return f"| `{name}` | {cell(operation['summary'])} | {', '.join(filter(None, (body, answer)))} | {failures} |"


def _named(message: Json) -> str:
    return ", ".join(f"`{name}`" for name in dict.fromkeys(named(message)))


def _failures(operation: Json) -> dict[str, str]:
    return {status: answer["description"] for status, answer in operation["responses"].items() if status >= "400"}


def route_table(api: Json) -> str:
    """Method, path and purpose of each route."""
    rows = [
        f"| {method.upper()} | `{path}` | {cell(_RAISES.sub('', operation['summary']))} |"
        for path, on in api["paths"].items()
        for method, operation in on.items()
    ]
    return "\n".join(["| method | path | purpose |", "|---|---|---|", *rows])
