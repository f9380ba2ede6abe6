"""The HTTP application: agents as an OpenAI-compatible endpoint."""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any, TypeAlias

from fastapi import FastAPI, Request, Response
from fastapi.responses import PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Scope

from agent_server.agents.base import ServedAgent
from agent_server.chat_completions import ChatRequest, chunks, completion, parse_request
from agent_server.errors import RequestRefused
from agent_server.metrics import UNKNOWN_AGENT, AgentMetrics
from proctor.environment import ContextLimitExceeded, InputRefused
from proctor.http.auth import Access, AccessGuard
from proctor.http.server import BodyError, http_app, read_body
from proctor.observability import tracing
from proctor.observability.metrics import EXPOSITION, ProcessMetrics, expose

log = logging.getLogger(__name__)
Agents: TypeAlias = Mapping[str, ServedAgent]
CHAT, MODEL, CONVERSATION = "/v1/chat/completions", "/v1/models/{name}", "/v1/conversations/{session}"
BODY_DEADLINE_S = 60.0
_REFUSALS: dict[int | str, dict[str, object]] = {
    400: {"description": "The request is invalid for this agent, or exceeds its context"},
    401: {"description": "The bearer token is missing or wrong"},
    403: {"description": "A web page of another site may have sent it, and the server has no token"},
    404: {"description": "No agent of this name"},
    408: {"description": "The body came too slowly"},
    409: {"description": "A later turn of a conversation that this stateful agent does not know"},
    413: {"description": "The body is too large"},
    429: {"description": "The agent's limit of concurrent or queued requests is reached"},
    500: {"description": "The agent failed; the server's log says why"},
    502: {"description": "The endpoint behind the agent broke off, or its terminal was closed"},
    503: {"description": "The endpoint behind the agent can't be reached"},
    504: {"description": "The endpoint behind the agent did not answer before its deadline"},
}


class _App(FastAPI):
    """Adds the schema of the chat request's body, which we parse without FastAPI: that saves a third of the CPU."""

    def openapi(self) -> dict[str, Any]:
        document = super().openapi()
        schema = ChatRequest.model_json_schema(ref_template="#/components/schemas/{model}")
        document["components"]["schemas"] = {**schema.pop("$defs"), "ChatRequest": schema}
        for path, method in ((MODEL, "get"), (CONVERSATION, "delete")):
            document["paths"][path][method]["responses"].pop("422", None)  # any text is a name
        reference = {"schema": {"$ref": "#/components/schemas/ChatRequest"}}
        document["paths"][CHAT]["post"]["requestBody"] = {"required": True, "content": {"application/json": reference}}
        return document


def build_app(agents: Agents, access: Access, max_request_bytes: int, process: ProcessMetrics) -> ASGIApp:
    """The app that serves these agents to those that `access` admits."""
    meaning = "Agents as an OpenAI-compatible endpoint; the model of a request is the agent's name."
    app = _App(**http_app("Proctor agent server", meaning))
    counters = AgentMetrics()
    _add_chat(app, agents, max_request_bytes, counters)
    _add_models(app, agents)
    _add_conversations(app, agents)
    _add_state(app, agents, counters, process)
    app.add_exception_handler(HTTPException, _no_such_route)
    app.add_exception_handler(RequestRefused, _refused)
    return AccessGuard(app, access, _without_access)


def _add_chat(app: FastAPI, agents: Agents, max_request_bytes: int, counters: AgentMetrics) -> None:
    """Add the route that answers transcripts."""

    @app.post(CHAT, summary="The agent's answer to a transcript", responses=_REFUSALS, response_class=Response)
    async def chat(request: Request) -> Response:
        with tracing.received(f"POST {CHAT}", request.scope["headers"]) as span:
            with counters.request() as counted:
                counted.agent, response = await _answer(agents, request, max_request_bytes)
                counted.status = response.status_code
            span.note(agent=counted.agent, status=response.status_code)
        return response


def _add_models(app: FastAPI, agents: Agents) -> None:
    """Add the routes that name the agents."""
    started = int(time.time())

    def listed(name: str) -> dict[str, object]:
        return {"id": name, "object": "model", "created": started, "owned_by": "proctor", **agents[name].shown()}

    @app.get("/v1/models", summary="The agents served here")
    async def models() -> dict[str, object]:
        return {"object": "list", "data": [listed(name) for name in agents]}

    @app.get(MODEL, summary="One agent; an error where the endpoint behind it fails")
    async def model(name: str) -> dict[str, object]:
        if (refused := await _find(agents, name).failing()) is not None:
            raise refused
        return listed(name)


def _add_conversations(app: FastAPI, agents: Agents) -> None:
    """Add the route that ends what stateful agents remember."""

    @app.delete(
        CONVERSATION, status_code=204, summary="A session's conversations are over; stateful agents forget them"
    )
    async def end(session: str) -> None:
        known = [await agent.end(session) for agent in agents.values()]
        if not any(known):
            raise RequestRefused(404, "no stateful agent knows this session; it may have been ended before")


def _add_state(app: FastAPI, agents: Agents, counters: AgentMetrics, process: ProcessMetrics) -> None:
    """Add the routes for health and metrics."""

    @app.get("/healthz", summary="The process runs")
    @app.get("/readyz", summary="The agents are loaded")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/metrics", summary="Metrics in the Prometheus text format", response_class=PlainTextResponse)
    async def metrics() -> PlainTextResponse:
        failing = await asyncio.gather(*(agent.failing() for agent in agents.values()))
        for name, refused in zip(agents, failing, strict=True):
            counters.up.labels(name).set(refused is None)
        return PlainTextResponse(expose([*counters.collect(), *process.collect()]), media_type=EXPOSITION)


async def _answer(agents: Agents, request: Request, max_bytes: int) -> tuple[str, Response]:
    """The requested agent's name, and the response. Failures of agents are classified here alone."""
    name = UNKNOWN_AGENT
    try:
        chat = parse_request(await _body(request, max_bytes))
        agent = _find(agents, chat.model)
        name = chat.model
        answer = await agent.answer(chat.agent_request(request.client.host if request.client else ""))
        if chat.stream:
            include_usage = chat.stream_options is not None and chat.stream_options.include_usage
            return name, Response(b"".join(chunks(name, answer, include_usage)), media_type="text/event-stream")
        return name, Response(completion(name, answer), media_type="application/json")
    except RequestRefused as refused:
        return name, _error(refused)
    except ContextLimitExceeded:
        message = "the messages don't fit this model's context"
        return name, _error(RequestRefused(400, message, code="context_length_exceeded", param="messages"))
    except InputRefused as declined:
        return name, _error(RequestRefused(400, declined.why, code="content_filter", param="messages"))
    except Exception:
        log.exception("agent %s failed", name)
        message = "the agent failed; the server's log says why"
        return name, _error(RequestRefused(500, message, code="internal_error", type="server_error"))


async def _body(request: Request, max_bytes: int) -> bytes:
    try:
        return await read_body(request.receive, max_bytes, BODY_DEADLINE_S)
    except BodyError as error:
        if error.status == 413:
            message = f"the request is larger than {max_bytes} bytes"
            raise RequestRefused(413, message, code="request_body_too_large") from None
        raise RequestRefused(error.status, f"the request was not complete within {BODY_DEADLINE_S:g} s") from None


def _find(agents: Agents, name: str) -> ServedAgent:
    if name not in agents:
        message = f"The model {name!r} does not exist; agents here are: {', '.join(agents)}"
        raise RequestRefused(404, message, code="model_not_found", param="model")
    return agents[name]


def _error(refused: RequestRefused) -> Response:
    return Response(refused.body(), refused.status, dict(refused.headers), media_type="application/json")


def _without_access(_scope: Scope, status: int, cause: str) -> Response:
    if status == 401:
        return _error(RequestRefused(401, "the bearer token is missing or wrong", code="invalid_api_key"))
    fix = "set the variable that `token_env` names, PROCTOR_TOKEN where none is"
    return _error(RequestRefused(403, f"{cause}, and this server has no token; {fix}"))


async def _no_such_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _error(RequestRefused(error.status_code, f"{request.method} {request.url.path}: {error.detail}"))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestRefused)
    return _error(error)
