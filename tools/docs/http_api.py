"""The reference of the HTTP APIs, from the servers' OpenAPI documents."""

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
from pydantic import BaseModel, SecretStr
from starlette.routing import BaseRoute, Route

from agent_server.app import build_app
from eval_client.mcp.app import routes as mcp_routes
from eval_client.mcp.server import McpEpisodes
from eval_client.view.access import ViewAccess
from eval_client.view.app import routes
from eval_client.view.events import EventStreams
from eval_client.view.rendering import assets
from eval_client.view.runs import FolderRuns
from eval_client.view.viewer import Viewer
from proctor.config.described import describe
from proctor.http.auth import Access
from proctor.http.client import http_client
from proctor.observability.process import ProcessMetrics
from task_server.client.client import TaskClient
from task_server.gateway.serve import WireServer
from task_server.gateway.wires import WIRES, load
from task_server.http.openapi import document
from task_server.http.operations import CONTROLLER_OPERATIONS
from task_server.wire.errors import ApiError
from task_server.wire.messages import Problem
from tools.docs.markdown import cell, markdown
from tools.docs.routes import route_table
from tools.docs.schema import Link, named, table

Json = Mapping[str, Any]


def page() -> str:
    """docs/reference/http.md."""
    task_servers = document("Controllers and workers", CONTROLLER_OPERATIONS, token=True)
    parts = [
        "# HTTP API",
        "Controllers, workers and agent servers also serve their part of this page as an OpenAPI document at "
        "`/openapi.json`. [Task servers](../how-to/task-servers.md) describes what clients may rely on, and every type "
        "of error. A worker has no `/workers`.",
        *_server(task_servers, _messages()),
        "### Errors",
        "Each error of a controller or worker is a [Problem](#problem) of one of these types.",
        _errors(),
        *_server(_with_named_schemas(asyncio.run(_agent_server())), []),
        "## Gateways",
        "`proctor serve` serves the protocols that its options name, each under a prefix of its own. "
        "[AgentBench](../how-to/agentbench.md) and [OpenEnv](../how-to/openenv.md) describe how clients use them. "
        "Under `/agentrl/renew/api` an empty message only keeps its session alive; otherwise the routes equal those "
        "under `/agentrl/api`.",
        route_table(asyncio.run(_gateway())),
        "## The viewer",
        "`proctor view` has these routes; the files of its pages are under `/assets/`. `/login` exists only if the "
        "viewer has a token. [Runs in a browser](../how-to/view.md#json) describes the JSON.",
        route_table(_viewer()),
        "## MCP server",
        "An agent of `kind: command` gets the URL of its episode at a server in the client's process. See [Coding "
        "agents](../how-to/coding-agents.md).",
        route_table(mcp_routes(McpEpisodes())),
    ]
    return markdown(parts)


async def _gateway() -> list[BaseRoute]:
    async with http_client() as http:
        return WireServer([load(name) for name in WIRES], TaskClient("http://localhost", http)).routes()


def _viewer() -> list[Route]:
    """The viewer's routes without those of assets."""
    viewer = Viewer(FolderRuns(Path()), ViewAccess((SecretStr("a token"),)), assets())
    return routes(viewer, {}, EventStreams())


async def _agent_server() -> Json:
    app = build_app({}, Access(), 1, ProcessMetrics("agent-server"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        found: Json = (await client.get("/openapi.json")).json()
    return found


def _with_named_schemas(api: Json) -> Json:
    """The document of the agent server with the schemas of its one body under names of their own."""
    (body,) = [each["requestBody"] for path in api["paths"].values() for each in path.values() if "requestBody" in each]
    content = body["content"]["application/json"]
    inner = content["schema"].pop("$defs")
    names = {name: f"Chat{name.lstrip('_')}" for name in inner if name != "JsonValue"}
    schemas = {names[name]: inner[name] for name in names} | {"ChatRequest": content["schema"]}
    content["schema"] = {"$ref": "ChatRequest"}
    text = json.dumps({**api, "components": {"schemas": schemas}})
    for name, ours in names.items():
        text = text.replace(f'/$defs/{name}"', f'/$defs/{ours}"')
    renamed: Json = json.loads(text)
    return renamed


def _messages() -> list[type[BaseModel]]:
    """The models of what task servers take and give."""
    models = [model for each in CONTROLLER_OPERATIONS for model in (each.request, each.reply)]
    return [Problem, *(model for model in models if isinstance(model, type) and issubclass(model, BaseModel))]


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
    yield f"## {api['info']['title']}"
    if "description" in api["info"]:
        yield api["info"]["description"]
    operations = [
        (f"{method.upper()} {path}", each) for path, on in api["paths"].items() for method, each in on.items()
    ]
    closed = [operation for _, operation in operations if "security" in operation]
    everywhere = sorted(set.intersection(*({*_failures(each)} for each in closed or [each for _, each in operations])))
    if everywhere:
        yield f"Every route that needs a token may answer {_statuses(closed[0], everywhere)}."
    for name, operation in operations:
        yield from _operation(name, operation, everywhere)
    for name, schema in sorted(schemas.items()):
        if schema.get("properties"):
            yield f"### {name}"
            yield schema.get("description", "")
            yield table(schema, _link(schemas))


def _operation(name: str, operation: Json, everywhere: Iterable[str]) -> Iterator[str]:
    yield f"### {name}"
    yield f"{operation['summary']}."
    queries = [each for each in operation.get("parameters", []) if each["in"] == "query"]
    if queries:
        yield table({"properties": {each["name"]: each["schema"] for each in queries}}, str)
    body, reply = (_named(operation.get("requestBody", {})), _named(operation["responses"].get("200", {})))
    sentences = [f"The body is a {body}."] if body else []
    sentences += [f"The answer is a {reply}."] if reply else []
    failures = [status for status in _failures(operation) if status not in everywhere]
    sentences += [f"May answer {_statuses(operation, failures)}."] if failures else []
    if sentences:
        yield " ".join(sentences)


def _named(message: Json) -> str:
    return "".join(f"[{name}](#{name.lower()})" for name in dict.fromkeys(named(message)))


def _link(schemas: Json) -> Link:
    def link(name: str) -> str:
        return f"[{name}](#{name.lower()})" if schemas.get(name, {}).get("properties") else "any JSON"

    return link


def _failures(operation: Json) -> dict[str, str]:
    return {status: answer["description"] for status, answer in operation["responses"].items() if status >= "400"}


def _statuses(operation: Json, statuses: Iterable[str]) -> str:
    failures = _failures(operation)
    return "; ".join(f"{status} ({failures[status]})" for status in statuses)
