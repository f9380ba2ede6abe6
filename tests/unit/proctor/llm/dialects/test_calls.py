"""A model at endpoints of each dialect: keys, thoughts, pauses, and how calls end."""

from typing import Any

import httpx
import pytest

from proctor.environment import AgentUnavailable, ContextLimitExceeded, RequestRejected
from proctor.llm.config import ChatConfig
from proctor.llm.dialects import PATHS, DialectName, dialect_of
from proctor.llm.model import MOST_PAUSES, ModelRefused
from proctor.llm.outcome import Outcome, outcome
from proctor.types import Action, ToolCall, Usage
from tests.unit.proctor.llm.dialects.endpoint import DialectEndpoint
from tests.unit.proctor.llm.test_model import MESSAGES, Rig, rig

SEARCH = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}


def at(dialect: DialectName, *replies: httpx.Response) -> Rig:
    return rig(*replies, config=ChatConfig(model="m", base_url="http://host/v1", dialect=dialect, max_tries=1))


def message(*content: Any, stop: str = "end_turn") -> httpx.Response:
    usage = {"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 5}
    body = {"type": "message", "model": "m-1", "content": content, "stop_reason": stop, "usage": usage}
    return httpx.Response(200, json=body)


def failed(code: str, text: str = "no") -> httpx.Response:
    body = {"object": "response", "status": "failed", "output": [], "error": {"code": code, "message": text}}
    return httpx.Response(200, json=body)


@pytest.mark.parametrize("dialect", PATHS)
async def test_a_turn_costs_and_ends_alike_in_every_dialect(
    dialect: DialectName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(dialect_of(dialect).KEY_ENV, "k-0123456789")
    endpoint = DialectEndpoint()
    endpoint.next = Action(content="hm", tool_calls=(ToolCall(id="", name="run", arguments='{"a":1}'),))
    asked = dialect_of(dialect).request(MESSAGES, (), {"model": "m"})
    request = httpx.Request("POST", f"http://host/v1{asked.path}", content=asked.body, headers=dict(asked.headers))
    rigged = at(dialect, endpoint(request))
    completion = await rigged.model.complete(MESSAGES)
    assert (completion.action.content, completion.action.tool_calls[0].arguments) == ("hm", '{"a":1}')
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (100, 7)
    assert (completion.stop, completion.model, completion.metered) == ("tool_calls", "m", True)
    headers = rigged.requests[0].headers
    sent = headers.get("x-api-key"), headers.get("authorization"), headers.get("anthropic-version")
    anthropic = ("k-0123456789", None, "2023-06-01")
    assert sent == (anthropic if dialect == "messages" else (None, "Bearer k-0123456789", None))
    assert rigged.requests[0].url.path == f"/v1{dialect_of(dialect).PATH}"


async def test_a_paused_answer_is_sent_back_as_it_is_and_goes_on() -> None:
    rigged = at(
        "messages",
        message(SEARCH, stop="pause_turn"),
        message(FOUND, text("It says"), stop="pause_turn"),
        message(text(" yes.")),
    )
    completion = await rigged.model.complete(MESSAGES)
    sent = [httpx.Response(200, content=request.content).json()["messages"] for request in rigged.requests]
    assert [turn["content"] for turn in sent[1]][1:] == [[SEARCH]]
    assert [turn["content"] for turn in sent[2]][1:] == [[SEARCH, FOUND, text("It says")]]
    assert completion.action.content == "It says yes."
    assert completion.action.echo == {"content_blocks": [SEARCH, FOUND, text("It says"), text(" yes.")]}
    assert completion.usage == Usage(prompt_tokens=45, completion_tokens=6, cached_tokens=15)
    assert (completion.stop, completion.tries) == ("stop", 3)


async def test_an_answer_that_only_pauses_ends() -> None:
    rigged = at("messages", *[message(text("x"), stop="pause_turn") for _ in range(MOST_PAUSES + 1)])
    completion = await rigged.model.complete(MESSAGES)
    assert (completion.action.content, completion.stop) == ("x" * (MOST_PAUSES + 1), "pause_turn")


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


@pytest.mark.parametrize(
    ("dialect", "reply", "raised", "says"),
    [
        ("messages", message(stop="refusal"), ModelRefused, "refusal"),
        ("messages", message(text("x"), stop="model_context_window_exceeded"), ContextLimitExceeded, None),
        ("messages", httpx.Response(200, json={"content": 3}), AgentUnavailable, "not a messages completion"),
        (
            "messages",
            httpx.Response(200, json={"choices": [{"message": {"content": "x"}}]}),
            AgentUnavailable,
            "not a messages completion: content: Field required",
        ),
        ("responses", failed("server_error"), AgentUnavailable, "server_error"),
        ("responses", failed("invalid_image_url"), RequestRejected, "invalid_image_url"),
        ("responses", failed("bio_policy"), ModelRefused, "bio_policy"),
        ("responses", failed("context_length_exceeded"), ContextLimitExceeded, None),
        ("responses", httpx.Response(200, json={"output": 3}), AgentUnavailable, "not a responses completion"),
    ],
)
async def test_calls_end_as_their_outcome_says(
    dialect: DialectName, reply: httpx.Response, raised: type[Exception], says: str | None
) -> None:
    with pytest.raises(raised) as caught:
        await at(dialect, reply).model.complete(MESSAGES)
    assert type(caught.value) is raised
    assert says is None or says in (caught.value.why if isinstance(caught.value, ModelRefused) else str(caught.value))


@pytest.mark.parametrize(
    ("code", "found"),
    [
        *((code, Outcome.TRANSIENT) for code in ("server_error", "rate_limit_exceeded", "vector_store_timeout", "new")),
        *((code, Outcome.REJECTED) for code in ("invalid_prompt", "image_too_large", "empty_image_file")),
        ("unsupported_image_media_type", Outcome.REJECTED),
        ("misalignment_policy_violation", Outcome.REFUSAL),
        ("insufficient_quota", Outcome.UNPAID),
    ],
)
def test_a_failed_response_is_what_its_code_says(code: str, found: Outcome) -> None:
    assert outcome(200, {}, failed(code).content) is found


async def test_the_text_of_a_refusal_is_kept_with_its_cost() -> None:
    with pytest.raises(ModelRefused) as caught:
        await at("messages", message(text("I can't"), stop="refusal")).model.complete(MESSAGES)
    assert caught.value.completion is not None
    assert (caught.value.completion.action.content, caught.value.completion.usage.prompt_tokens) == ("I can't", 15)
