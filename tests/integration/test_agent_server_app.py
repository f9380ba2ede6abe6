"""Agents answer over HTTP, and every failure is an OpenAI error object."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
import yaml

from agent_server.agents.base import AgentReply, AgentRequest, ServedAgent
from agent_server.app import build_app
from agent_server.config import AgentServerConfig
from agent_server.errors import RequestRefused
from agent_server.serve import build_agents
from proctor.config.tokens import AccessTokens
from proctor.environment import ContextLimitExceeded, InputRefused
from proctor.http.auth import Access
from proctor.llm.config import ChatConfig
from proctor.llm.model import ChatModel
from proctor.llm.outcome import Outcome, Seen, outcome
from proctor.observability.metrics import ProcessMetrics
from proctor.types import Action, Message
from tests.support import ROOT, via
from tests.toy_environment import installed

ASKED = {"model": "ref", "messages": [{"role": "user", "content": "?"}], "metadata": {"task": "toy", "sample": "b"}}


def over(agents: Mapping[str, ServedAgent], token: str | None = None, max_bytes: int = 10_000) -> httpx.AsyncClient:
    access = Access(AccessTokens.given(token), metrics=AccessTokens("of-prometheus"))
    app = build_app(agents, access, max_bytes, ProcessMetrics("agent-server"))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")


@pytest_asyncio.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    config = AgentServerConfig.model_validate(
        {
            "tasks": [{"name": "toy", "environment": "toy-letters"}],
            "agents": [
                {"kind": "reference", "name": "ref"},
                {"kind": "random", "name": "small", "context_chars": 3, "concurrency": 1, "latency_s": 0.001},
            ],
        }
    )
    with installed(tmp_path):
        async with httpx.AsyncClient() as unused, over(build_agents(config, via(unused))) as client:
            yield client


class Raising(ServedAgent):
    def __init__(self, error: Exception) -> None:
        self._error = error

    async def answer(self, request: AgentRequest) -> AgentReply:
        raise self._error


async def ask(client: httpx.AsyncClient, **changes: object) -> tuple[int, dict[str, str]]:
    reply = await client.post("/v1/chat/completions", json={**ASKED, **changes})
    return reply.status_code, reply.json().get("error", {})


async def test_the_chat_model_gets_the_reference_answer(client: httpx.AsyncClient) -> None:
    model = ChatModel(ChatConfig(model="ref", base_url="http://127.0.0.1/v1", metadata=True), via(client))
    metadata = {"task": "toy", "sample": "c", "seed": "7"}
    completion = await model.complete([Message(role="user", content="?")], metadata=metadata)
    assert completion.action == Action(content="c7")


async def test_the_wrappers_of_the_configuration_are_in_force(client: httpx.AsyncClient) -> None:
    status, error = await ask(client, model="small", messages=[{"role": "user", "content": "long"}])
    assert (status, error["code"]) == (400, "context_length_exceeded")
    statuses = [status for status, _ in await asyncio.gather(*[ask(client, model="small") for _ in range(3)])]
    assert sorted(statuses) == [200, 429, 429]


async def test_a_request_without_metadata_is_told_how_to_have_them_sent(client: httpx.AsyncClient) -> None:
    status, error = await ask(client, metadata=None)
    assert (status, error["type"], error["code"]) == (400, "invalid_request_error", "metadata_needed")
    assert "set `metadata: true` at the agent in the plan" in error["message"]


async def test_an_unknown_model_lists_the_agents(client: httpx.AsyncClient) -> None:
    status, error = await ask(client, model="gpt-9")
    assert (status, error["code"]) == (404, "model_not_found")
    assert "agents here are: ref, small" in error["message"]
    assert (await client.get("/v1/models/gpt-9")).json()["error"]["code"] == "model_not_found"


async def test_a_failing_policy_is_a_500_whose_cause_stays_in_the_log(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        status, error = await ask(client, metadata={"task": "toy", "sample": "b", "conversation": "broken"})
    assert (status, error["code"]) == (500, "internal_error")
    assert "canary" not in json.dumps(error)
    assert "canary-traceback" in caplog.text


@pytest.mark.parametrize(
    ("raised", "status", "code", "comes_to"),
    [
        (ContextLimitExceeded(), 400, "context_length_exceeded", Outcome.CONTEXT_LIMIT),
        (InputRefused("it was flagged"), 400, "content_filter", Outcome.REFUSAL),
        (
            RequestRefused(429, "full", code="rate_limit_exceeded", headers={"Retry-After": "0.25"}),
            429,
            "rate_limit_exceeded",
            Outcome.TRANSIENT,
        ),
    ],
)
async def test_a_failure_has_its_status_and_comes_to_the_same_at_its_client_whether_streamed_or_not(
    raised: Exception, status: int, code: str, comes_to: Outcome
) -> None:
    async with over({"ref": Raising(raised)}) as client:
        for stream in (False, True):
            got, error = await ask(client, stream=stream)
            assert (got, error["code"]) == (status, code)
        reply = await client.post("/v1/chat/completions", json=ASKED)
        assert outcome(reply.status_code, reply.headers, reply.content, Seen(tools=True)) is comes_to
        assert reply.headers.get("retry-after") == ("0.25" if status == 429 else None)


async def test_a_body_is_capped_by_the_bytes_that_come_not_by_those_announced() -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1000

    async with over({"ref": Raising(AssertionError())}) as client:
        reply = await client.post("/v1/chat/completions", content=endless())
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "request_body_too_large")


async def test_only_the_health_routes_are_open_without_the_token() -> None:
    async with over({"ref": Raising(ContextLimitExceeded())}, token="secret") as client:
        for path in ("/v1/models", "/metrics", "/openapi.json", "/v1/chat/completions", "/nowhere"):
            for shown in ("", "Bearer wrong", "Bearer ", "secret", "Bearer sécret"):
                reply = await client.get(path, headers=[(b"Authorization", shown.encode())])
                assert (reply.status_code, reply.json()["error"]["code"]) == (401, "invalid_api_key")
        for path in ("/healthz", "/readyz"):
            assert (await client.get(path)).status_code == 200
        for token, path, status in [
            ("secret", "/v1/models", 200),
            ("secret", "/metrics", 200),
            ("of-prometheus", "/metrics", 200),
            ("of-prometheus", "/v1/models", 401),
        ]:
            assert (await client.get(path, headers={"Authorization": f"Bearer {token}"})).status_code == status


async def test_a_web_page_elsewhere_is_refused_where_no_token_is_asked_for(client: httpx.AsyncClient) -> None:
    for headers in ({"Host": "rebound.example"}, {"Origin": "http://page.example"}, {"Sec-Fetch-Site": "cross-site"}):
        for path in ("/v1/models", "/healthz"):
            reply = await client.get(path, headers=headers)
            assert reply.status_code == 403
            assert "set the variable that `token_env` names" in reply.json()["error"]["message"]
        async with over({}, token="secret") as closed:
            shown = {"Authorization": "Bearer secret", **headers}
            assert (await closed.get("/v1/models", headers=shown)).status_code == 200


async def test_requests_are_counted_by_agent_and_status(client: httpx.AsyncClient) -> None:
    for changes in ({}, {}, {"model": 'x"\n'}, {"metadata": None}):
        await ask(client, **changes)
    reply = await client.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain")
    counts = [line for line in reply.text.splitlines() if line.startswith("proctor_agent_requests_total")]
    assert sorted(counts) == [
        'proctor_agent_requests_total{agent="(unknown)",status="404"} 1.0',
        'proctor_agent_requests_total{agent="ref",status="200"} 2.0',
        'proctor_agent_requests_total{agent="ref",status="400"} 1.0',
    ]
    assert 'proctor_agent_request_seconds_count{agent="ref"} 3.0' in reply.text
    assert "proctor_agent_requests_in_flight 0.0" in reply.text


async def test_unknown_routes_and_methods_are_error_objects(client: httpx.AsyncClient) -> None:
    assert (await client.get("/nope")).json()["error"]["message"] == "GET /nope: Not Found"
    reply = await client.get("/v1/chat/completions")
    assert (reply.status_code, reply.json()["error"]["type"]) == (405, "invalid_request_error")


async def test_the_description_of_the_request_can_be_resolved(client: httpx.AsyncClient) -> None:
    described = (await client.get("/openapi.json")).json()
    body = described["paths"]["/v1/chat/completions"]["post"]["requestBody"]["content"]["application/json"]
    schemas = described["components"]["schemas"]
    request = schemas[body["schema"]["$ref"].rpartition("/")[2]]
    assert "role" in schemas[request["properties"]["messages"]["items"]["$ref"].rpartition("/")[2]]["properties"]


GUIDE = (ROOT / "docs" / "how-to" / "agents.md").read_text(encoding="utf-8")


def block(language: str, holding: str) -> str:
    blocks: list[str] = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    return next(text for text in blocks if holding in text)


def test_the_settings_shown_are_settings() -> None:
    config = AgentServerConfig.model_validate(yaml.safe_load(block("yaml", "token_env")))
    assert {agent.kind for agent in config.agents} == {"reference", "recorded", "proxied"}


async def test_the_program_shown_is_an_agent() -> None:
    names: dict[str, object] = {"my_agent": lambda messages, tools: f"{len(messages)} messages"}
    exec(block("python", "my_agent"), names)
    app = names["app"]
    assert callable(app)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:
        model = ChatModel(ChatConfig(model="mine", base_url="http://agent/v1"), via(client))
        completion = await model.complete([Message(role="user", content="hello")])
    assert (completion.action.content, completion.model) == ("1 messages", "mine")
