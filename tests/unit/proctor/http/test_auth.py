"""What the guard of a server lets pass. Which token opens which route: tests/unit/task_server/http/test_access.py."""

import httpx
import pytest
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message, Receive, Scope, Send

from proctor.config.tokens import AccessTokens
from proctor.http.auth import Access, AccessGuard


async def secret(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("secret")(scope, receive, send)


def refuse(scope: Scope, status: int, cause: str) -> Response:
    return PlainTextResponse(cause, status)


async def status_of(kind: str, access: Access, headers: list[tuple[bytes, bytes]]) -> int:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError("a guard reads no body")

    scope = {
        "type": kind,
        "method": "GET",
        "path": "/x",
        "headers": headers,
        "extensions": {"websocket.http.response": {}},
    }
    await AccessGuard(secret, access, refuse)(scope, receive, send)
    return int(sent[0]["status"])


@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_a_websocket_needs_what_a_request_needs(kind: str) -> None:
    token = [(b"authorization", b"Bearer t")]
    assert await status_of(kind, Access(AccessTokens("t")), token) == 200
    assert await status_of(kind, Access(AccessTokens("t")), []) == 401
    assert await status_of(kind, Access(AccessTokens("t")), [(b"authorization", b"Bearer x"), *token]) == 401
    assert await status_of(kind, Access(), []) == 200
    assert await status_of(kind, Access(), [(b"origin", b"https://elsewhere")]) == 403


@pytest.mark.parametrize(("access", "status"), [(Access(AccessTokens("t")), 401), (Access(), 403)])
async def test_the_body_of_a_refused_request_is_not_read(access: Access, status: int) -> None:
    transport = httpx.ASGITransport(AccessGuard(secret, access, refuse))
    async with httpx.AsyncClient(transport=transport, base_url="http://rebound.example") as http:
        reply = await http.post("/x", content=b"body")
    assert (reply.status_code, reply.headers["connection"]) == (status, "close")
    assert reply.headers.get("www-authenticate") == ("Bearer" if status == 401 else None)
