"""The HTTP app of a task service: routes, tokens, size limits, and a problem document for every error."""

import asyncio
import functools
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlsplit

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from proctor.http.auth import Access, AccessGuard
from proctor.http.body import BodyError, read_body
from proctor.observability import tracing
from proctor.observability.metrics import EXPOSITION
from proctor.types import Value
from task_server.http.service import TaskService
from task_server.wire.errors import (
    ApiError,
    BadRequest,
    Forbidden,
    Internal,
    NotReady,
    ServerUnreachable,
    TooLarge,
    Unauthorized,
)
from task_server.wire.messages import MAX_REQUEST_BYTES, TaskList

log = logging.getLogger(__name__)

LARGE_BODY_BYTES = 1 << 20
"""Larger bodies are parsed in a thread, so that they don't block the event loop."""

Request_ = TypeVar("Request_", bound=Value)
Service_contra = TypeVar("Service_contra", bound=TaskService, contravariant=True)


class RequestContext(NamedTuple):
    """The parts of a request besides its body or query."""

    path: Mapping[str, str]
    """The parameters in its path."""
    peer: str | None
    """The address that the connection comes from."""


class EmptyRequest(Value):
    """A request without fields."""


@dataclass(frozen=True)
class Operation(Generic[Service_contra, Request_]):
    """One route: its request, its answer, its handler, and its errors besides those that all routes have."""

    method: str
    path: str
    meaning: str
    request: type[Request_]
    """The type of the JSON body for a POST, else of the query."""
    reply: type[Value] | type[str] | None
    handle: Callable[[Service_contra, RequestContext, Request_], Awaitable[Value | str | None]]
    refusals: tuple[type[ApiError], ...] = ()
    max_bytes: int = MAX_REQUEST_BYTES

    @property
    def open(self) -> bool:
        """True if no token is needed."""
        return self.path in Access.open_paths


def build_app(
    service: Service_contra,
    operations: Sequence[Operation[Service_contra, Any]],
    access: Access,
    document: Callable[[], Mapping[str, object]],
) -> ASGIApp:
    """The app that serves the operations, and their OpenAPI document at /openapi.json, built at its first request."""

    @functools.cache
    def described() -> Response:
        return JSONResponse(document())

    async def openapi(_: Request) -> Response:
        return described()

    routes = [
        Route(operation.path, _Endpoint(operation, service), methods=[operation.method]) for operation in operations
    ]
    routes.append(Route("/openapi.json", openapi, methods=["GET"]))
    app = Starlette(routes=routes, exception_handlers={HTTPException: _no_route})
    app.router.redirect_slashes = False
    return AccessGuard(app, access, functools.partial(_without_access, access), urlsplit(service.alive().url).hostname)


class _Endpoint(Generic[Service_contra, Request_]):
    """Wraps a handler: reads and validates the request, sends the answer. Only here do exceptions become problems."""

    def __init__(self, operation: Operation[Service_contra, Request_], service: Service_contra) -> None:
        self._operation = operation
        self._service = service
        self._span = f"{operation.method} {operation.path}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with tracing.received(self._span, scope["headers"]):
            await self._respond(scope, receive, send)

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            request = await self._request(scope, receive)
            context = RequestContext(scope["path_params"], scope["client"][0] if scope["client"] else None)
            reply = await self._operation.handle(self._service, context, request)
        except ApiError as refusal:
            await _problem(refusal)(scope, receive, send)
        except ServerUnreachable as error:
            await _problem(NotReady(str(error), retry_after_s=0.5))(scope, receive, send)
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            await _problem(Internal("see the server's log"))(scope, receive, send)
        else:
            await _answer(send, reply)

    async def _request(self, scope: Scope, receive: Receive) -> Request_:
        kind = self._operation.request
        try:
            if self._operation.method == "POST":
                body = await read_body(receive, self._operation.max_bytes)
                if len(body) > LARGE_BODY_BYTES:
                    return await asyncio.to_thread(kind.model_validate_json, body, strict=True)
                return kind.model_validate_json(body, strict=True)
            return kind.model_validate(dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)))
        except ValidationError as error:
            raise BadRequest(_explain(error)) from error
        except BodyError as error:
            raise (TooLarge if error.status == TooLarge.status else BadRequest)(str(error)) from error


async def _answer(send: Send, reply: Value | str | None) -> None:
    if reply is None:
        await _send(send, 204, b"", [])
    elif isinstance(reply, str):
        await _send(send, 200, reply.encode(), [(b"content-type", EXPOSITION.encode())])
    else:
        body = reply.body if isinstance(reply, TaskList) else reply.model_dump_json().encode()
        await _send(send, 200, body, [(b"content-type", b"application/json")])


async def _send(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    if status != 204:
        headers = [*headers, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _without_access(access: Access, _scope: Scope, status: int, cause: str) -> Response:
    if status == 403:
        fix = "set PROCTOR_TOKEN, or announce the Host that clients use (--advertise URL)"
        return _problem(Forbidden(f"{cause}, and this server has no token; {fix}"))
    if access.pending:
        return _problem(NotReady("the controller has not accepted this worker yet", retry_after_s=0.5))
    return _problem(Unauthorized("send `Authorization: Bearer <token>` with a token for this route"))


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    answer = _problem(BadRequest(f"{request.method} {request.url.path}: {error.detail}"))
    answer.status_code = error.status_code
    answer.headers.update(error.headers or {})
    return answer


def _problem(refusal: ApiError) -> Response:
    headers = {"connection": "close"} if isinstance(refusal, TooLarge) else {}  # the rest of the body is not read
    if refusal.retry_after_s is not None:
        headers["retry-after"] = str(math.ceil(refusal.retry_after_s))
    problem = refusal.problem().model_dump_json()
    return Response(problem, refusal.status, headers, media_type="application/problem+json")


def _explain(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_input=False, include_context=False)[:3]
    return "; ".join(f"{'.'.join(map(str, problem['loc'])) or 'the body'}: {problem['msg']}" for problem in problems)
