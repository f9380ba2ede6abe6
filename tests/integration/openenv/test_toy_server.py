"""The double of an OpenEnv server answers as the original was captured."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from proctor.http.client import bounded_request, http_client
from tests.integration.openenv.toy_server import toy_server
from tests.support import SHARED_DATA

pytestmark = pytest.mark.shared
CAPTURED = SHARED_DATA / "interop" / "openenv" / "frames.jsonl"


def captured() -> list[dict[str, Any]]:
    return [json.loads(line) for line in CAPTURED.read_text(encoding="utf-8").splitlines()]


def exchanges() -> Iterator[tuple[Any, Any]]:
    """(frame of the client, the server's answer, None for `close`)"""
    frames = [each for each in captured() if each.get("via") == "ws"]
    for asked, answer in zip(frames, [*frames[1:], {"dir": ""}], strict=True):
        if asked["dir"] == "client->server":
            yield asked["frame"], answer["frame"] if answer["dir"] == "server->client" else None


def without_url(value: Any) -> Any:
    """The captured JSON without the address of pydantic's page for each error, which names its version."""
    if isinstance(value, dict):
        return {name: without_url(item) for name, item in value.items() if name not in ("url", "description")}
    return [without_url(item) for item in value] if isinstance(value, list) else value


async def test_http_replies_are_the_captured_ones() -> None:
    async with toy_server() as (url, _), http_client() as http:
        read = ("/health", "/metadata", "/schema")  # by our client
        played = [each for each in captured() if each["dir"] == "http" and each["path"] in read]
        for each in played:
            reply = await bounded_request(
                http, each["method"], url + each["path"], json=each["request"], deadline_s=10, max_bytes=1 << 20
            )
            expected = each["response"]
            assert reply.status == each["status"]
            assert without_url(json.loads(reply.body)) == without_url(expected), each["path"]
        assert len(played) == 3


async def test_frames_are_the_captured_ones() -> None:
    async with toy_server(slots=2) as (url, _):
        address = url.replace("http", "ws") + "/ws"
        async with connect(address) as first, connect(address):
            now: ClientConnection = first
            answered = 0
            for asked, answer in exchanges():
                if answer is None:
                    await now.send(json.dumps(asked))
                    await now.wait_closed()
                    now = await connect(address)
                    continue
                if answer["data"].get("code") == "CAPACITY_REACHED":
                    async with connect(address) as third:
                        got = await third.recv()
                else:
                    await now.send(asked if isinstance(asked, str) else json.dumps(asked))
                    got = await now.recv()
                assert without_url(json.loads(got)) == without_url(answer)
                answered += 1
            await now.close()
    assert answered == 12
