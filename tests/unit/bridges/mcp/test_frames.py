"""The captured frames of an MCP client and server get answers with the same keys; anything else gets an error."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from proctor.environment import Agent, Environment
from proctor.session.play import play_to_finish
from proctor.tools import arguments_schema
from proctor.types import Finish, FinishReason, Message, Observation, Tool
from proctor_bridges.mcp.episode import CalledEpisode
from proctor_bridges.mcp.frames import McpFrameError, McpOffer, answer, read_call, read_frame
from proctor_bridges.mcp.server import KEPT_OVER, MAX_BODY_BYTES, McpEpisodes, episodes_app
from tests.support import SHARED_DATA

CAPTURED = SHARED_DATA / "interop" / "mcp" / "mcp.jsonl"
BASH = Tool(name="bash_action", description="Run.", parameters=arguments_schema(script={"type": "string"}))


class Counting(Environment):
    """Answers calls with their number, for as long as the agent likes."""

    def samples(self) -> Sequence[str]:
        return ("s",)

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        message, number = Message(role="user", content="Task: count files."), 0
        while number < 100:
            action = await agent.act(Observation(messages=(message,), tools=(BASH,)))
            number += 1
            call = action.tool_calls[0]
            message = Message(role="tool", content=f"{call.name} #{number}", tool_call_id=call.id)
        return Finish(reason=FinishReason.COMPLETED, score=1.0)


@dataclass(frozen=True)
class Served:
    """An episode that is served."""

    http: httpx.AsyncClient
    url: str

    async def send(self, body: str | bytes, *, method: str = "POST", **headers: str) -> httpx.Response:
        return await self.http.request(method, self.url, content=body, headers=headers)


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    """An episode of `Counting`."""
    episodes, episode = McpEpisodes(), CalledEpisode()
    episodes.base_url = "http://127.0.0.1"
    playing = asyncio.create_task(play_to_finish(Counting(), "s", episode))
    url = episodes.add("toy", episode)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(episodes_app(episodes))) as client:
        yield Served(client, url)
    playing.cancel()


def shape(value: Any) -> Any:
    """A JSON value with its keys and without its texts and numbers."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items() if key != "inputSchema"}
    return [shape(each) for each in value] if isinstance(value, list) else None


def data(response: str) -> Any:
    """The frame in a captured response, which may be an event."""
    return json.loads(response.partition("data: ")[2] if response.startswith("event:") else response)


@pytest.mark.shared
async def test_captured_requests_get_the_same_status_and_keys(served: Served) -> None:
    captured = [json.loads(line) for line in CAPTURED.read_text(encoding="utf-8").splitlines()]
    assert len(captured) == 9
    for each in captured:
        reply = await served.send(each["request"], method=each["method"], **each["headers"])
        status, headers, *body = each["response"]
        if each["method"] == "GET":
            assert (reply.status_code, reply.headers["allow"]) == (405, "POST, DELETE")  # no event streams here
            continue
        assert reply.status_code == status
        if body:
            assert shape(reply.json()) == shape(data(body[0]))
        if json.loads(each["request"] or "{}").get("method") == "initialize":
            assert "mcp-session-id" in headers
            assert len(reply.headers["mcp-session-id"]) == 32


async def post(served: Served, body: str, **headers: str) -> tuple[int, Any]:
    reply = await served.send(body, **headers)
    return reply.status_code, reply.json() if reply.content else None


def request(method: str, revision: str | None = None, **params: Any) -> str:
    if revision is not None:
        params["_meta"] = {"io.modelcontextprotocol/protocolVersion": revision}
    return json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ("{", 400, -32700),
        ("[" * 100_000, 400, -32700),
        ("[]", 400, -32600),
        ('{"jsonrpc": "2.0", "id": 1, "result": {}}', 400, -32600),
        ('{"jsonrpc": "2.0", "id": {}, "method": "ping"}', 400, -32600),
        ('{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}', 400, -32600),
        (request("tools/call"), 200, -32602),
        (request("tools/call", name="bash_action", arguments="ls"), 200, -32602),
        (request("tools/call", "2026-07-28"), 400, -32602),
        (request("resources/list"), 200, -32601),
        (request("resources/list", "2026-07-28"), 404, -32601),
        (request("tools/list", "2031-01-01"), 400, -32022),
    ],
)
async def test_a_broken_frame_is_refused_and_costs_no_turn(served: Served, body: str, status: int, code: int) -> None:
    got, answered = await post(served, body)
    assert (got, answered["error"]["code"]) == (status, code)
    _, played = await post(served, request("tools/call", name="bash_action", arguments={"script": "ls"}))
    assert played["result"]["content"][0]["text"] == "bash_action #1"


async def test_headers_that_contradict_the_body_are_refused(served: Served) -> None:
    status, answered = await post(served, request("tools/list", "2026-07-28"), **{"mcp-method": "tools/call"})
    assert (status, answered["error"]["code"]) == (400, -32020)


async def test_a_revision_that_is_not_served_names_those_that_are(served: Served) -> None:
    _, answered = await post(served, request("server/discover", "2031-01-01"))
    assert answered["error"]["data"]["supported"] == ["2026-07-28", "2025-03-26", "2025-06-18", "2025-11-25"]


@pytest.mark.parametrize(
    ("wanted", "given"), [("2025-03-26", "2025-03-26"), ("2025-06-18", "2025-06-18"), ("2024-11-05", "2025-11-25")]
)
def test_the_handshake_agrees_on_the_revision_asked_for_or_else_the_newest(wanted: str, given: str) -> None:
    frame = read_frame(request("initialize", protocolVersion=wanted).encode(), {})
    result = answer(frame, McpOffer("", ()))["result"]
    assert isinstance(result, dict)
    assert result["protocolVersion"] == given


async def test_too_long_a_body_and_a_page_of_another_site_are_refused(served: Served) -> None:
    assert (await served.send(b" " * (MAX_BODY_BYTES + 1))).status_code == 413
    assert (await served.send("{}", origin="http://evil.example")).status_code == 403


async def test_an_unknown_episode_is_404(served: Served) -> None:
    for url in (f"{served.url}0", "http://127.0.0.1/mcp/toy/" + "0" * 32, served.url.replace("toy", "t")):
        for method in ("POST", "GET", "DELETE"):
            assert (await served.http.request(method, url)).status_code == 404


VERSION = '{"io.modelcontextprotocol/protocolVersion": %s}'
OF_VERSION = '{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": ' + VERSION + "}}"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"jsonrpc": "2.0", "id": NaN, "method": "ping"}', "id"),
        ('{"jsonrpc": "2.0", "id": 1e400, "method": "ping"}', "id"),
        ('{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}', "id"),
        (OF_VERSION % '"\\ud800"', "params._meta"),
        (OF_VERSION % '{"a": [-1e400]}', "params._meta"),
    ],
)
async def test_what_no_answer_can_repeat_is_refused(served: Served, body: str, field: str) -> None:
    status, answered = await post(served, body)
    assert (status, answered["error"]["code"], answered["id"]) == (400, -32600, None)
    assert answered["error"]["message"].startswith(f"{field}")


async def test_of_many_finished_episodes_the_last_are_known() -> None:
    episodes = McpEpisodes()
    urls = []
    for _ in range(KEPT_OVER + 3):
        episode = CalledEpisode()
        urls.append(episodes.add("toy", episode))
        episode.end()
    urls.append(episodes.add("toy", CalledEpisode()))
    assert [episodes.knows("POST", url, b"") for url in urls] == [False] * 3 + [True] * (KEPT_OVER + 1)


def test_a_call_without_arguments_has_none() -> None:
    assert read_call(read_frame(request("tools/call", name="leave").encode(), {})).arguments == {}
    with pytest.raises(McpFrameError, match="name: must be"):
        read_call(read_frame(request("tools/call", name=3).encode(), {}))
