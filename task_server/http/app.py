"""The HTTP app of a task service: tokens, size limits, strict bodies, and a problem document for every error."""

import asyncio
import functools
import logging
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from fastapi import Depends, FastAPI, Request, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic import BaseModel, ValidationError
from pydantic.warnings import UnsupportedFieldAttributeWarning
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from proctor.http.auth import Access, AccessGuard
from proctor.http.server import BodyError, authorization, http_app, read_body
from proctor.observability import tracing
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
from task_server.wire.messages import (
    MAX_LARGE_BYTES,
    MAX_REQUEST_BYTES,
    Problem,
    Sender,
    StartSession,
    SummarizeRequest,
)

log = logging.getLogger(__name__)

LARGE_BODY_BYTES = 1 << 20
"""Larger bodies are parsed in a thread, so that they don't block the event loop."""
LARGE: tuple[type[BaseModel], ...] = (StartSession, SummarizeRequest)
"""Bodies that may have MAX_LARGE_BYTES."""
PROBLEM = "application/problem+json"
TOKEN = HTTPBearer(scheme_name="token", auto_error=False)
"""Only described: a request without a token never gets to a route."""

Body = TypeVar("Body", bound=BaseModel)
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class TaskApp(FastAPI):
    """An app without routes; `access` says whose requests are answered, which `guarded` sees to."""

    def __init__(self, title: str, access: Access) -> None:
        super().__init__(**http_app(title), version="1", separate_input_output_schemas=False)
        self.access = access
        self.router.route_class = ProblemRoute
        self.router.redirect_slashes = False

    def operation(
        self, method: str, path: str, summary: str, *kinds: type[ApiError], **more: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """Adds the decorated endpoint; `kinds` are its errors besides those that all routes have."""
        is_open = path in Access.open_paths
        known: list[type[ApiError]] = [BadRequest, Internal, *kinds, *([TooLarge] if method == "POST" else [])]
        known += ([] if is_open else [Unauthorized]) if self.access.closed else [Forbidden]
        responses: dict[int | str, dict[str, Any]] = {
            status: {"model": Problem, "description": "; or: ".join(_titles(known, status))}
            for status in sorted({kind.status for kind in known})
        }
        token = [Depends(TOKEN)] if self.access.closed and not is_open else []
        return self.api_route(path, methods=[method], summary=summary, responses=responses, dependencies=token, **more)

    def openapi(self) -> dict[str, Any]:
        """FastAPI's document, with the errors as they are sent, and what must be there though it has a default."""
        with warnings.catch_warnings(action="ignore", category=UnsupportedFieldAttributeWarning):  # FastAPI's own
            document = super().openapi()
        for operation in (each for path in document["paths"].values() for each in path.values()):
            operation["responses"].pop("422", None)
            for status, reply in operation["responses"].items():
                if status >= "400":
                    reply["content"] = {PROBLEM: next(iter(reply["content"].values()))}
        schemas = document["components"]["schemas"]
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        for schema in schemas.values():
            tags = [name for name, field in schema.get("properties", {}).items() if "const" in field]
            schema["required"] = list(dict.fromkeys([*tags, *schema.get("required", [])]))
        return document

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """FastAPI's without middleware: our routes answer all their own errors."""
        scope["app"] = self
        try:
            await self.router.app(scope, receive, send)
        except HTTPException as error:
            await _no_route(scope, error)(scope, receive, send)

    def guarded(self, host: str | None) -> ASGIApp:
        """This app, whole, behind its tokens; `host` is the name that clients use."""
        return AccessGuard(self, self.access, functools.partial(_without_access, self.access), host)


class ProblemRoute(APIRoute):
    """What the endpoint raises is answered with a problem document.

    FastAPI describes the routes, which are called here: its solving of dependencies would cost more than a turn.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **settings: Any) -> None:
        super().__init__(path, endpoint, **settings)
        self._span = f"{', '.join(self.methods or ())} {path}"

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in (self.methods or ()):
            await super().handle(scope, receive, send)
            return
        with tracing.received(self._span, scope["headers"]):
            try:
                answer = await self.endpoint(**await self._arguments(Request(scope, receive)))
            except Exception as error:
                answer = answer_to(error, scope)
        if isinstance(answer, Response):
            await answer(scope, receive, send)
            return
        status, body = (204, b"") if answer is None else (200, answer.model_dump_json().encode())
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))] if answer else []
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _arguments(self, request: Request) -> dict[str, Any]:
        """What the endpoint takes: the parameters of its path, its query, its body, the request. Raises ApiError."""
        values: dict[str, Any] = {}
        for field in self.dependant.path_params:
            values[field.name], problems = field.validate(request.path_params[field.name], {}, loc=(field.name,))
            if problems:
                raise _bad_request(problems)
        for field in self.dependant.query_params:
            query: Any = field.field_info.annotation
            try:
                values[field.name] = query.model_validate(dict(request.query_params))
            except ValidationError as error:
                raise _bad_request(error.errors()) from error
        if self.body_field is not None:
            body: Any = self.body_field.field_info.annotation
            values[self.body_field.name] = await parsed(body, request.receive)
        return values if self.dependant.request_param_name is None else {"request": request, **values}


async def parsed(kind: type[Body], receive: Receive) -> Body:
    """The body of a request, which is JSON of this kind to the letter. Raises TooLarge, BadRequest."""
    try:
        body = await read_body(receive, MAX_LARGE_BYTES if kind in LARGE else MAX_REQUEST_BYTES)
        if len(body) > LARGE_BODY_BYTES:
            return await asyncio.to_thread(kind.model_validate_json, body, strict=True)
        return kind.model_validate_json(body, strict=True)
    except ValidationError as error:
        raise _bad_request(error.errors(include_url=False, include_input=False, include_context=False)) from error
    except BodyError as error:
        raise (TooLarge if error.status == TooLarge.status else BadRequest)(str(error)) from error


def sender_of(request: Request) -> Sender:
    """Who sent the request: the user by the token's name, the rest as far as it says."""
    said = Sender.of(request.scope["headers"])
    user = request.scope["app"].access.user(authorization(request.scope["headers"]))
    return said._replace(user=user) if user else said


def answer_to(error: Exception, scope: Scope) -> Response:
    """The problem document for what handling a request raised; what was not foreseen is logged."""
    if isinstance(error, ApiError):
        return _problem(error)
    if isinstance(error, ServerUnreachable):
        return _problem(NotReady(str(error), retry_after_s=0.5))
    log.error("%s %s failed", scope["method"], scope["path"], exc_info=error)
    return _problem(Internal("see the server's log"))


def _titles(kinds: Iterable[type[ApiError]], status: int) -> list[str]:
    return [kind.title for kind in dict.fromkeys(kinds) if kind.status == status]


def _without_access(access: Access, _scope: Scope, status: int, cause: str) -> Response:
    if status == 403:
        fix = "set PROCTOR_TOKEN, or announce the Host that clients use (--advertise URL)"
        return _problem(Forbidden(f"{cause}, and this server has no token; {fix}"))
    if access.pending:
        return _problem(NotReady("the controller has not accepted this worker yet", retry_after_s=0.5))
    return _problem(Unauthorized("send `Authorization: Bearer <token>` with a token for this route"))


def _no_route(scope: Scope, error: HTTPException) -> Response:
    answer = _problem(BadRequest(f"{scope['method']} {scope['path']}: {error.detail}"))
    answer.status_code = error.status_code
    answer.headers.update(error.headers or {})
    return answer


def _problem(refusal: ApiError) -> Response:
    headers = {"connection": "close"} if isinstance(refusal, TooLarge) else {}  # the rest of the body is not read
    if refusal.retry_after_s is not None:
        headers["retry-after"] = str(math.ceil(refusal.retry_after_s))
    return Response(refusal.problem().model_dump_json(), refusal.status, headers, media_type=PROBLEM)


def _bad_request(problems: Sequence[Any]) -> BadRequest:
    """What is wrong with the first three fields."""
    told = (f"{'.'.join(map(str, each['loc'])) or 'the body'}: {each['msg']}" for each in problems[:3])
    return BadRequest("; ".join(told))
