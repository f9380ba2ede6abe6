"""The foreign wires, by the names of their options, and what their routes share."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from fastapi import APIRouter, Request, Response
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from proctor.http.server import BodyError, read_body
from proctor.observability.redaction import redacted
from proctor.registry import entry_points
from proctor_bridges.gateway.foreign_session import ForeignSession, GatewayError, SessionGone
from proctor_bridges.gateway.gateway import Gateway
from task_server.wire.errors import TaskServerError
from task_server.wire.messages import MAX_REQUEST_BYTES

Body = TypeVar("Body")
Handler = Callable[[Request], Awaitable[Response]]
WIRES = "proctor.wires"
"""The group of entry points."""


@dataclass(frozen=True)
class ForeignWire:
    """A protocol of other programs' clients."""

    help: str
    """What its option of `proctor serve` does."""
    prefix: str
    """The path that all its routes begin with."""
    idle_s: float
    """A session without a request for this long is ended."""
    add_routes: Callable[[APIRouter, Gateway], None]
    """Adds its routes, whose paths have no prefix yet."""
    max_message_bytes: int | None = None
    """The longest message of a WebSocket; None where the protocol uses none."""


def wires() -> dict[str, ForeignWire]:
    """The wires by the names of their options, sorted: those of all packages with an entry point of this group."""
    return {entry.name: entry.load() for entry in sorted(entry_points(WIRES), key=lambda entry: entry.name)}


class BadBody(ValueError):
    """The body of a request is no value of its type, too large or too slow."""


async def body_of(
    request: Request, kind: type[Body], max_bytes: int = MAX_REQUEST_BYTES, *, empty: bytes = b""
) -> Body:
    """The JSON body of a request; one without a byte is read as `empty`. Raises BadBody."""
    try:
        return TypeAdapter(kind).validate_json(await read_body(request.receive, max_bytes) or empty)
    except BodyError as error:
        raise BadBody(str(error)) from error
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise BadBody(f"{'.'.join(map(str, problem['loc'])) or 'the body'}: {problem['msg']}") from error


def reply(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON reply; secrets in an error are redacted."""
    body = to_json(value)
    body = redacted(body.decode()).encode() if status >= 400 else body
    return Response(body, status, headers, media_type="application/json")


class Refusal(Exception):
    """A request that is answered by an error."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


def refused(status: int, detail: object) -> Response:
    """An error as AgentBench's servers send it."""
    return reply({"detail": detail}, status)


def answering(handler: Handler) -> Handler:
    """A handler whose errors become answers, as AgentBench's servers send them."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except Refusal as refusal:
            return refused(refusal.status, refusal.detail)
        except BadBody as error:
            return refused(422, [{"loc": ["body"], "msg": str(error), "type": "value_error"}])
        except SessionGone:
            return refused(400, "Error: Session does not exist")
        except (GatewayError, TaskServerError) as error:
            return refused(400, f"Error: {error}")

    answer.__doc__ = handler.__doc__
    return answer


async def note_delivery(request: Request, session: ForeignSession) -> None:
    """Note on the session whether the client is still there to get the answer to its step."""
    session.answer_lost = await request.is_disconnected()


async def cancel_if_lost(request: Request, session: ForeignSession, gateway: Gateway) -> None:
    """End a session whose client has gone before the answer to its start: nobody knows its id."""
    if await request.is_disconnected():
        await gateway.cancel(session)
