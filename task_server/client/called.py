"""Calls a task service of this process in place of posting to it: the same operations, answers and errors."""

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import BaseModel

from proctor.session.time_limit import TIME_LIMIT
from task_server.http.transport import NONE, Done
from task_server.wire.errors import ApiError, BadRequest, Internal
from task_server.wire.messages import (
    RenewLeases,
    SamplesQuery,
    Sender,
    StartSession,
    SummarizeRequest,
    TasksQuery,
    TurnRequest,
)

if TYPE_CHECKING:
    from task_server.http.routes import TaskService

log = logging.getLogger(__name__)

Answer = TypeVar("Answer", bound=BaseModel)
Request = TypeVar("Request", bound=BaseModel)


class Called:
    """A `Caller` of one service, to which nothing is written and from which nothing is read: values pass as they are.

    What it raises is what a server would have answered with. A session does not inherit its caller's time limit.
    """

    def __init__(self, service: "TaskService", sender: Sender) -> None:
        self._service, self._sender = service, sender

    async def call(
        self,
        method: str,
        url: str,
        answer: type[Answer],
        request: BaseModel | str | None = None,
        *,
        deadline_s: float,
        headers: Mapping[str, str] = NONE,
    ) -> Answer:
        """The service's answer to what `method` and `url` ask for. Raises ApiError.

        Each operation ends by itself, or says that it is at work, so nothing keeps `deadline_s`.
        """
        sender = self._sender
        if headers:
            said = {**sender.headers(), **headers}
            sender = Sender.of((name.encode(), value.encode("latin-1")) for name, value in said.items())
        try:
            answered = await self._asked(method, url, request, sender)
        except ApiError:
            raise
        except Exception as error:
            log.exception("%s %s failed", method, url)
            raise Internal("see the log") from error
        assert isinstance(answered, answer)
        return answered

    def _asked(self, method: str, url: str, request: BaseModel | str | None, sender: Sender) -> Awaitable[Any]:
        """The operation behind a route of `task_server.http.routes`."""
        service, parts = self._service, urlsplit(url)
        match method, parts.path.split("/")[1:]:
            case "POST", ["sessions", session, "turns"]:
                return service.turn(session, _of(TurnRequest, request), sender)
            case "POST", ["sessions"]:
                context = copy_context()
                context.run(TIME_LIMIT.set, None)
                return asyncio.create_task(service.start(_of(StartSession, request), sender), context=context)
            case "DELETE", ["sessions", session]:
                return _done(service.end(session, sender))
            case "POST", ["leases"]:
                return service.renew(_of(RenewLeases, request), sender)
            case "GET", ["tasks"]:
                return service.tasks(TasksQuery.model_validate(dict(parse_qsl(parts.query))), sender)
            case "GET", ["tasks", task, "samples"]:
                return service.samples(unquote(task), SamplesQuery.model_validate(dict(parse_qsl(parts.query))))
            case "POST", ["tasks", task, "summary"]:
                return service.summarize(unquote(task), _of(SummarizeRequest, request))
        raise BadRequest(f"{method} {parts.path}: no such route")


def _of(kind: type[Request], request: BaseModel | str | None) -> Request:
    if isinstance(request, str):
        return kind.model_validate_json(request)
    assert isinstance(request, kind)
    return request


async def _done(ending: Awaitable[None]) -> Done:
    await ending
    return Done()
