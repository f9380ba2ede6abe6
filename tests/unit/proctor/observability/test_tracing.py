"""Names by the conventions for generative AI, and what of a model call is recorded under them."""

import json

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.attributes import error_attributes
from pydantic import JsonValue

from proctor.llm.traces import messages_text, request_attributes
from proctor.observability import tracing
from proctor.types import Action, Message, ToolCall

KNOWN = {value for value in vars(gen_ai_attributes).values() if isinstance(value, str) and value.startswith("gen_ai.")}
KNOWN |= {error_attributes.ERROR_TYPE}


def test_every_name_of_an_attribute_is_one_of_the_conventions() -> None:
    ours = {
        value for value in vars(tracing).values() if isinstance(value, str) and value.startswith(("gen_ai.", "err"))
    }
    ours = (ours | set(tracing.REQUEST.values())) - {tracing.EVALUATION_EVENT}
    assert len(ours) > 20
    assert ours - KNOWN == set()


def test_every_provider_and_operation_is_one_of_the_conventions() -> None:
    providers = {each.value for each in gen_ai_attributes.GenAiProviderNameValues}
    assert set(tracing.PROVIDERS.values()) <= providers
    operations = {each.value for each in gen_ai_attributes.GenAiOperationNameValues}
    assert {tracing.CHAT, tracing.INVOKE_AGENT, tracing.EXECUTE_TOOL} <= operations


@pytest.mark.parametrize(
    ("host", "provider"),
    [
        ("api.openai.com", "openai"),
        ("127.0.0.1", "openai"),
        ("mine.openai.azure.com", "azure.ai.openai"),
        ("us-central1-aiplatform.googleapis.com", "gcp.vertex_ai"),
        ("bedrock-runtime.us-east-1.amazonaws.com", "aws.bedrock"),
        ("api.deepseek.com", "deepseek"),
        ("notapi.deepseek.com.example", "openai"),
    ],
)
def test_a_provider_is_known_by_its_host(host: str, provider: str) -> None:
    assert tracing.provider(host) == provider


def test_a_request_is_recorded_with_what_of_its_sampling_has_a_name() -> None:
    sampling: dict[str, JsonValue] = {
        "temperature": 0,
        "max_completion_tokens": 9,
        "stop": ["a", "b"],
        "logit_bias": {"1": 2},
        "top_p": True,
    }
    assert request_attributes("m", "http://127.0.0.1:1/v1/chat/completions", sampling) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
        "gen_ai.request.temperature": 0,
        "gen_ai.request.max_tokens": 9,
        "gen_ai.request.stop_sequences": ("a", "b"),
    }
    assert request_attributes("m", "", {"stop": "a"})["gen_ai.request.stop_sequences"] == ("a",)


def test_messages_have_the_shape_of_the_conventions_without_secrets_and_without_what_is_opaque() -> None:
    call = ToolCall(id="c", name="look", arguments="{}", echo={"extra_content": 1})
    action = Action(content="", tool_calls=(call,), echo={"reasoning_content": "r"})
    history = [
        Message(role="user", content="Bearer sk-canary1234567890abcdef"),
        action.message(),
        Message(role="tool", content="seen", tool_call_id="c"),
    ]
    told = json.loads(messages_text(history))
    assert "canary" not in str(told)
    called = {"type": "tool_call", "id": "c", "name": "look", "arguments": "{}"}
    assert told[1:] == [
        {"role": "assistant", "parts": [called]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "seen"}]},
    ]
    assert json.loads(messages_text([action.message()], finish_reason="tool_calls")) == [
        {"role": "assistant", "parts": [called], "finish_reason": "tool_calls"}
    ]
