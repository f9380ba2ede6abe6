"""What an endpoint of any dialect answers comes to the same for a client of the agent server before it."""

import functools
import json
from importlib.resources import files
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_server.agents.base import ServedAgent
from agent_server.agents.proxied import ProxiedAgent
from agent_server.app import build_app
from proctor.environment import AgentStopped, AgentUnavailable
from proctor.http.auth import Access
from proctor.llm.config import ChatConfig
from proctor.llm.dialects import PATHS, DialectName
from proctor.llm.model import ChatModel, ModelRefused
from proctor.observability.metrics import ProcessMetrics
from proctor.types import Message, Tool
from tests.support import via

PUBLISHED = [
    reply
    for line in files("proctor.llm").joinpath("published_replies.jsonl").read_text(encoding="utf-8").splitlines()
    for reply in [json.loads(line)]
    if not (isinstance(reply["body"], str) and reply["body"].startswith(("data:", ":")))
]
GOOD: dict[str, object] = {
    "chat": {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}},
    "responses": {
        "object": "response",
        "status": "completed",
        "output": [{"type": "message", "content": [{"text": "hi"}]}],
    },
    "messages": {"type": "message", "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"},
}
WAITS = ("retry-after", "retry-after-ms", "x-ratelimit-reset-requests", "x-ratelimit-reset-tokens")
REMAINING = ("x-ratelimit-remaining-requests", "x-ratelimit-remaining-tokens")
CONFIG = ChatConfig(model="m", base_url="http://host/v1")
ASKED = [Message(role="user", content="?")]
TOOLS = [Tool(name="look", description="Looks.", parameters={"type": "object", "properties": {}})]


class Endpoint:
    """Answers as it is told, the last of it for ever."""

    def __init__(self, *replies: httpx.Response | Exception) -> None:
        self.replies, self.requests = [*replies], 0

    def __call__(self, _request: httpx.Request) -> httpx.Response:
        self.requests += 1
        told = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(told, Exception):
            raise told
        return httpx.Response(told.status_code, headers=told.headers, content=told.content)


class Behind:
    """An app that serves an endpoint of each dialect under the dialect's name."""

    def __init__(self) -> None:
        self.endpoint = Endpoint()
        upstream = httpx.AsyncClient(transport=httpx.MockTransport(self._ask))
        models = {name: ChatModel(CONFIG.model_copy(update={"dialect": name}), via(upstream)) for name in PATHS}
        agents: dict[str, ServedAgent] = {name: ProxiedAgent(model) for name, model in models.items()}
        self.app = build_app(agents, Access(), 10_000, ProcessMetrics("agent-server"))

    def _ask(self, request: httpx.Request) -> httpx.Response:
        return self.endpoint(request)


behind_server = functools.cache(Behind)


async def comes_to(endpoint: Endpoint, dialect: DialectName, *, behind: bool, calls: int, stream: bool) -> object:
    """What calls of one model come to: answers or failures, requests, waits."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        if seconds:  # else it only lets others go on
            slept.append(seconds)

    client = httpx.AsyncClient(transport=httpx.MockTransport(endpoint))
    config = CONFIG.model_copy(update={"dialect": dialect, "max_tries": 2})
    if behind:
        behind_server().endpoint = endpoint
        client = httpx.AsyncClient(transport=httpx.ASGITransport(behind_server().app))
        config = ChatConfig(model=dialect, base_url="http://127.0.0.1/v1", max_tries=2, stream=stream)
    model = ChatModel(config, via(client), sleep=sleep, random=lambda: 0.5, wall_clock=lambda: 1.7e9)
    came: list[object] = []
    for _ in range(calls):
        try:
            done = await model.complete(ASKED, TOOLS)
            came.append((done.action.content, done.action.tool_calls, done.usage, done.metered, done.stop))
        except ModelRefused as refused:
            paid = refused.completion and (refused.completion.action.content, refused.completion.usage)
            came.append(("refused", paid))
        except (AgentStopped, AgentUnavailable) as failed:
            came.append((type(failed), failed.reason if isinstance(failed, AgentStopped) else None))
    return came, endpoint.requests, slept


def replied(reply: dict[str, Any]) -> httpx.Response:
    body = reply["body"] if isinstance(reply["body"], str) else json.dumps(reply["body"])
    return httpx.Response(reply["status"], headers=reply.get("headers", {}), content=body.encode())


async def assert_alike(*replies: httpx.Response | Exception, dialect: DialectName = "chat", calls: int = 1) -> None:
    directly = await comes_to(Endpoint(*replies), dialect, behind=False, calls=calls, stream=False)
    for stream in (False, True):
        assert await comes_to(Endpoint(*replies), dialect, behind=True, calls=calls, stream=stream) == directly


@pytest.mark.thorough
@pytest.mark.parametrize("place", range(len(PUBLISHED)))
async def test_every_published_reply_comes_to_the_same_before_and_after_an_answer(place: int) -> None:
    dialect: DialectName = PUBLISHED[place].get("dialect", "chat")
    await assert_alike(replied(PUBLISHED[place]), dialect=dialect)
    await assert_alike(httpx.Response(200, json=GOOD[dialect]), replied(PUBLISHED[place]), dialect=dialect, calls=2)


@given(
    status=st.sampled_from([429, 500, 503, 529]),
    waits=st.dictionaries(
        st.tuples(st.sampled_from(["", "llm_provider-"]), st.sampled_from(WAITS)),
        st.sampled_from(
            ["0", "2", "1500", "1.5s", "6m0s", "Tue, 14 Nov 2023 22:13:25 GMT", "2023-11-14T22:13:25Z", "no"]
        ),
    ),
    remaining=st.dictionaries(
        st.tuples(st.sampled_from(["", "llm_provider-"]), st.sampled_from(REMAINING)), st.sampled_from(["0", "9"])
    ),
    more=st.sampled_from([{}, {"x-should-retry": "false"}, {"x-should-retry": "true"}]),
)
async def test_every_wait_that_an_endpoint_asks_for_is_kept(
    status: int, waits: dict[tuple[str, str], str], remaining: dict[tuple[str, str], str], more: dict[str, str]
) -> None:
    headers = {"".join(name): value for name, value in [*waits.items(), *remaining.items()]} | more
    await assert_alike(httpx.Response(status, headers=headers, json={"error": {"message": "busy"}}))


@pytest.mark.parametrize("status", [201, 204, 205, 301, 304, 418, 499, 520, 600, 999])
@pytest.mark.parametrize("body", [b"", b"null", b"\xff{", b'{"error": "oops"}', b'["oops"]'])
async def test_any_status_comes_to_the_same(status: int, body: bytes) -> None:
    await assert_alike(httpx.Response(status, content=body))


@pytest.mark.parametrize("failure", [httpx.ConnectError("refused"), httpx.ReadError("reset"), TimeoutError()])
async def test_a_request_without_a_reply_comes_to_the_same(failure: Exception) -> None:
    await assert_alike(failure)
