"""What is read of a request's body."""

import asyncio

import pytest
from starlette.requests import Request
from starlette.types import Message, Receive

from proctor.http.server import BodyError, read_body
from proctor_bridges.gateway.wires import BadBody, body_of
from proctor_bridges.mcp.episode import CalledEpisode
from proctor_bridges.mcp.server import McpEpisodes, episodes_app


def sending(*messages: Message) -> Receive:
    """A client that sends these, and then nothing more."""
    left = list(messages)

    async def receive() -> Message:
        if not left:
            await asyncio.Event().wait()
        return left.pop(0)

    return receive


def part(body: bytes, *, more: bool = True) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


GONE = {"type": "http.disconnect"}


async def test_a_body_may_come_in_parts_up_to_the_limit() -> None:
    assert await read_body(sending(part(b"ab"), part(b""), part(b"c", more=False)), 3) == b"abc"


async def test_a_body_over_the_limit_is_not_read_to_its_end() -> None:
    with pytest.raises(BodyError, match="over 3 bytes"):
        await read_body(sending(part(b"ab"), part(b"cd")), 3)


async def test_a_body_that_never_ends_is_given_up() -> None:
    with pytest.raises(BodyError, match=r"over 0\.01 s"):
        await read_body(sending(part(b"ab")), 3, 0.01)


async def test_a_broken_connection_is_no_end_of_a_body() -> None:
    with pytest.raises(BodyError, match="the connection broke"):
        await read_body(sending(part(b"ab"), GONE), 3)


async def test_a_gateway_gives_up_a_body_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.http.server.BODY_S", 0.01)
    with pytest.raises(BadBody, match=r"over 0\.01 s"):
        await body_of(Request({"type": "http"}, sending(part(b"{"))), dict)


async def test_the_mcp_server_gives_up_a_body_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.http.server.BODY_S", 0.01)
    episodes, sent = McpEpisodes(), list[Message]()
    path = episodes.add("doors", CalledEpisode(60))

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "headers": [],
        "query_string": b"",
    }
    await episodes_app(episodes)(scope, sending(part(b"{")), send)
    assert sent[0]["status"] == 408
