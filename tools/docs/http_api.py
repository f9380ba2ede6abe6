"""The reference of the HTTP APIs, from the servers' OpenAPI documents."""

import asyncio
import itertools
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
from tools.docs.schema import Link, fields, named

Json = Mapping[str, Any]
_RAISES = re.compile(r"\s*Raises\b.*", re.DOTALL)
URL, TOKEN = "http://localhost", "a token"
OF_WORKERS = {"Heartbeat", "HeartbeatAck", "Hold"}
"""What workers and controllers say to each other, which no client needs."""


def page() -> str:
    """docs/reference/http.md."""
    of_tasks = {**asyncio.run(task_servers()), "info": {"title": "Controllers and workers"}}
    parts = [
        "# HTTP API",
        "All servers but the one for MCP also serve their part of this page as an OpenAPI document at "
        "`/openapi.json`. [Task servers](../how-to/task-servers.md) describes what clients may rely on, and every type "
        "of error. A worker has no `/workers`.",
        *_server(of_tasks, _messages()),
        "### Errors",
        "Each error of a controller or worker is a [Problem](#problem) of one of these types.",
        _errors(),
        *_server(asyncio.run(agent_server()), []),
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


def _messages() -> list[type[BaseModel]]:
    """The models of what task servers take and give."""
    named = (*vars(messages).values(), *vars(worker_messages).values())
    return [Summary, *(each for each in named if isinstance(each, type) and issubclass(each, BaseModel))]


def _errors() -> str:
    rows = [
        f"| `{error.type}` | {error.status} | {'yes' if error.retryable else 'no'} | {cell(error.__doc__ or '')} |"
        for error in _leaves(ApiError)
    ]
    return "\n".join(["| type | status | a retry can help | meaning |", "|---|---|---|---|", *rows])


def _leaves(error: type[ApiError]) -> Iterator[type[ApiError]]:
    for each in error.__subclasses__():
        yield from _leaves(each) if each.__subclasses__() else [each]


def _server(api: Json, models: Iterable[type[BaseModel]]) -> Iterator[str]:
    schemas: dict[str, dict[str, Any]] = api["components"]["schemas"]
    describe(schemas, *models)
    for query, model in itertools.product(_queries(api), models):
        if query.keys() == model.model_fields.keys():
            describe({model.__name__: {"properties": query}}, model)
    yield f"## {api['info']['title']}"
    if "description" in api["info"]:
        yield api["info"]["description"]
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
    for name, operation in operations:
        queries = {each["name"]: each["schema"] for each in operation.get("parameters", []) if each["in"] == "query"}
        if queries:
            yield f"Parameters of `{name}`:"
            yield fields({"properties": queries}, str)
    for name, schema in sorted(schemas.items()):
        if schema.get("properties") and name not in OF_WORKERS:
            yield f"### {name}"
            yield schema.get("description", "")
            yield fields(schema, _link(schemas))


def _operation(name: str, operation: Json, everywhere: Iterable[str]) -> str:
    """The row of a route."""
    body, answer = (_named(operation.get("requestBody", {})), _named(operation["responses"].get("200", {})))
    failures = ", ".join(status for status in _failures(operation) if status not in everywhere)
    return f"| `{name}` | {cell(operation['summary'])} | {', '.join(filter(None, (body, answer)))} | {failures} |"


def _queries(api: Json) -> Iterator[dict[str, Any]]:
    """The query parameters of each operation, by name."""
    for each in (operation for path in api["paths"].values() for operation in path.values()):
        yield {one["name"]: one["schema"] for one in each.get("parameters", []) if one["in"] == "query"}


def _named(message: Json) -> str:
    names = dict.fromkeys(named(message))
    return "".join(f"`{name}`" if name in OF_WORKERS else f"[{name}](#{name.lower()})" for name in names)


def _link(schemas: Json) -> Link:
    def link(name: str) -> str:
        told = schemas.get(name, {}).get("properties") and name not in OF_WORKERS
        return f"[{name}](#{name.lower()})" if told else "any JSON"

    return link


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
