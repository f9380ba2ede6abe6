"""A key in the wrong place is rejected, and no message shows any part of it."""

import base64
import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from eval_client.plan.load import load_plan
from proctor.config.yaml import FileError
from proctor.environment import AgentUnavailable
from proctor.llm.config import ChatConfig
from proctor.llm.model import ChatModel
from proctor.observability.redaction import is_real_key, looks_secret
from proctor.types import Action, Message, ToolCall
from tests.support import via

KEYS = (
    "gsk_q7WbX2mTn9LkP4sVh6RzYc3D",
    "sk-proj-q7WbX2mTn9LkP4sVh6RzYc3D",
    "AIzaSyq7WbX2mTn9LkP4sVh6RzYc3DeFgHiJ",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
    "q7WbX2mTn9LkP4sVh6RzYc3DeFgH",
)
KINDS = ("groq", "openai", "google", "hex", "unknown")
PLAN = {
    "name": "p",
    "endpoints": [{"name": "e", "base_url": "http://127.0.0.1:1/v1"}],
    "agents": [{"name": "a", "endpoint": "e", "model": "m"}],
    "tasks": [{"name": "db", "environment": "db"}],
}
PLACES = (
    "agents.a.api_key",
    "agents.a.model",
    "agents.a.sampling.api_key",
    "agents.a.price",
    "agents.a.concurrency",
    "endpoints.e.api_key",
    "endpoints.e.api_key_env",
    "endpoints.e.deadline_s",
    "api_key",
    "tasks.db.parameters",
)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.yaml"
    path.write_text(json.dumps(PLAN))
    return path


def assert_refused(path: Path, key: str, *overrides: str) -> None:
    with pytest.raises(FileError) as refused:
        load_plan(path, overrides)
    pieces = [key[start : start + 8] for start in range(len(key) - 8)]
    assert not [piece for piece in pieces if piece in str(refused.value)], refused.value


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("key", KEYS, ids=KINDS)
def test_by_set(plan: Path, place: str, key: str) -> None:
    assert_refused(plan, key, f"{place}={key}")


@pytest.mark.parametrize("key", KEYS, ids=KINDS)
def test_in_the_file(plan: Path, key: str) -> None:
    fields = (("agents", "api_key"), ("agents", "model"), ("endpoints", "api_key_env"), ("agents", "sampling"))
    for part, field in fields:
        changed = json.loads(json.dumps(PLAN))
        changed[part][0][field] = key
        plan.write_text(json.dumps(changed))
        assert_refused(plan, key)
    plan.write_text(json.dumps({**PLAN, "agents": [key]}))
    assert_refused(plan, key)
    plan.write_text(json.dumps({**PLAN, "agents": {"a": {"api_key": key}}}))
    assert_refused(plan, key)


@pytest.mark.parametrize("key", KEYS, ids=KINDS)
def test_in_the_query_of_a_url(plan: Path, key: str) -> None:
    assert_refused(plan, key, f"endpoints.e.base_url=https://127.0.0.1/v1?key={key}")
    assert_refused(plan, key, f"agents.a.endpoint=https://127.0.0.1/v1?api-version=1&api_key={key}")


@pytest.mark.parametrize(
    "name",
    [
        "gpt-4.1-mini-2025-04-14",
        "meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8",
        "Qwen/Qwen3-235B-A22B-Instruct-2507",
        "anthropic.claude-3-5-sonnet-20241022-v2:0",
        "ft:gpt-4o-2024-08-06:org:name:AbCdEf12",
        "hf_hub_download_of_a_model",
    ],
)
def test_names_of_models_are_no_keys(plan: Path, name: str) -> None:
    assert not looks_secret(name)
    assert load_plan(plan, (f"agents.a.model={name}",)).agents[0].model == name


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(character):04x}" for character in text)


def completion(said: str) -> str:
    arguments = json.dumps(f'{{"x": "{said}"}}')
    call = f'{{"id": "c", "type": "function", "function": {{"name": "f", "arguments": {arguments}}}}}'
    return f'{{"choices": [{{"message": {{"content": "it is {said}!\\n", "tool_calls": [{call}]}}}}]}}'


async def answer(key: str, body: str, asked: str = "hi") -> Action:
    """The model's answer where its endpoint sends a body."""
    transport = httpx.MockTransport(lambda request: httpx.Response(200, content=body.encode()))
    async with httpx.AsyncClient(transport=transport) as client:
        config = ChatConfig(base_url="http://127.0.0.1:1/v1", model="m", api_key_env="A_KEY", max_tries=2)
        return (await ChatModel(config, via(client)).complete([Message(role="user", content=asked)])).action


SPELLINGS: tuple[Callable[[str], str], ...] = (
    str,
    escaped,
    lambda key: escaped(key).upper().replace("U", "u"),
    lambda key: escaped(escaped(key)).replace("\\\\", "\\"),
    lambda key: "".join(f"%{ord(each):02x}" for each in key),
    lambda key: "".join(f"&#{ord(each)};" for each in key),
    lambda key: base64.b64encode(f"user:{key}".encode()).decode(),
    lambda key: f"'{key[:4]}'{key[4:]}",
    lambda key: f"{key[:4]}\\n  {key[4:]}",
)
"""As it is, and as JSON, a URL, HTML, a header, a shell and a narrow page write it, within JSON."""


@pytest.mark.parametrize("spell", SPELLINGS)
@pytest.mark.parametrize("key", [*KEYS, "zz/a-Key-of-no-known-kind", "my-secret-proxy", "hunter22"])
async def test_a_reply_that_repeats_a_real_key_is_no_answer(
    monkeypatch: pytest.MonkeyPatch, key: str, spell: Callable[[str], str]
) -> None:
    monkeypatch.setenv("A_KEY", key)
    thought = json.dumps({"choices": [{"message": {"content": "x", "reasoning": "SAID"}}]})
    declined = json.dumps({"choices": [{"finish_reason": "content_filter", "message": {"content": "SAID"}}]})
    told = r"repeats the key of variable A_KEY: not played \(after 2 tries\)"
    for body in (completion(spell(key)), *(each.replace("SAID", spell(key)) for each in (thought, declined))):
        with pytest.raises(AgentUnavailable, match=told) as refused:
            await answer(key, body)
        assert key not in str(refused.value)
    assert (await answer(key, completion("fine"))).content == "it is fine!\n"


PLACEHOLDERS = (
    *("none", "x", "e", "EMPTY", "ollama", "not-needed", "sk-no-key-required", "lm-studio", "dummy_key"),
    *(
        "sk-...",
        "changeme",
        "xxxxxxxx",
        "********",
        "<your-key>",
        "test-test",
        "undefined",
        "token-abc123",
        "sk-1234",
        "sk-xxxxxxxx",
        "your-api-key-here",
        "12345678",
        '{"name',
        '"role":',
    ),
)


def test_pieces_of_json_are_no_keys() -> None:
    assert not any(map(is_real_key, ("assistant", '"content":', '{"action": "', "[1,2,3,4,5]", *PLACEHOLDERS)))


@pytest.mark.parametrize("key", PLACEHOLDERS)
async def test_what_people_set_for_servers_without_keys_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("A_KEY", key)
    content = f"Operation\n```sql\nSELECT {key} FROM none\n``` execute {key}"
    function = {"name": f"execute_{key}", "arguments": json.dumps({key: key})}
    calls = [{"id": key, "type": "function", "function": function}]
    body = json.dumps({"choices": [{"message": {"content": content, "tool_calls": calls, "reasoning": key}}]})
    found = await answer(key, body)
    assert (found.content, found.reasoning) == (content, key)
    assert found.tool_calls == (ToolCall(id=key, name=f"execute_{key}", arguments=json.dumps({key: key})),)


async def test_what_the_request_says_too_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "execute_sql_2")
    assert (await answer("", completion("execute_sql_2"), "Call execute_sql_2.")).content == "it is execute_sql_2!\n"
