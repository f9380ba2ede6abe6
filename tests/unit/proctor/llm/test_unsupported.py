# ruff: noqa: E501 (error bodies are whole lines)
"""Which error replies refuse tools, or want another name for `max_tokens`; and which only look like it."""

import json

import pytest

from proctor.environment import AgentRefused, AgentUnavailable, ContextLimitExceeded, ToolsRefused
from proctor.llm.config import ChatConfig
from proctor.llm.outcome import read_error, refuses_max_tokens, refuses_tools
from proctor.types import Message, Tool
from tests.unit.proctor.llm.test_model import MESSAGES, answer, error, rig

TOOL = Tool(name="look")


def openai(message: str, code: object = None, type: str = "invalid_request_error") -> object:
    return {"error": {"message": message, "type": type, "param": None, "code": code}}


TOOLS_REFUSED = {
    "vLLM": (400, {"object": "error", "message": '"auto" tool choice requires --enable-auto-tool-choice and '
                   "--tool-call-parser to be set", "type": "BadRequestError", "param": None, "code": 400}),
    "vLLM, required": (400, openai('tool_choice="required" requires --tool-call-parser to be set', 400, "BadRequestError")),
    "Ollama": (400, {"error": {"message": "registry.ollama.ai/library/stablelm2:latest does not support tools",
                               "type": "api_error", "param": None, "code": None}}),
    "Ollama, its own API": (400, {"error": "hf.co/empower/llama3:latest does not support tools"}),
    "llama.cpp": (500, {"error": {"code": 500, "message": "tools param requires --jinja flag", "type": "server_error"}}),
    "llama.cpp, later": (400, {"error": {"code": 400, "message": "tools param requires --jinja flag",
                                         "type": "invalid_request_error"}}),
    "llama.cpp, tool_choice": (400, {"error": {"code": 400, "message": "tool_choice param requires --jinja flag"}}),
    "llama.cpp, 2024": (500, {"code": 500, "message": "Unsupported param: tools", "type": "server_error"}),
    "OpenRouter": (404, {"error": {"message": "No endpoints found that support tool use. To learn more about provider "
                                   "routing, visit: https://openrouter.ai/docs/provider-routing", "code": 404}}),
    "OpenRouter, tool_choice": (404, {"error": {"message": "No endpoints found that support the provided 'tool_choice' "
                                                "value. To learn more about provider routing, visit: ...", "code": 404}}),
    "OpenRouter, Novita behind it": (400, {"error": {"message": "Provider returned error", "code": 400, "metadata": {
        "raw": '{"code":400, "reason":"INVALID_REQUEST_BODY", "message":"model features function calling not support"}',
        "provider_name": "Novita"}}}),
    "DeepSeek": (400, openai("deepseek-reasoner does not support Function Calling", "invalid_request_error")),
    "DeepSeek, tool_choice": (400, openai("deepseek-reasoner does not support this tool_choice", "invalid_request_error")),
    "OpenAI": (400, openai("tools is not supported in this model. For a list of supported models, refer to "
                           "https://platform.openai.com/docs/guides/function-calling#models-supporting-function-calling.")),
    "OpenAI, o1": (400, openai("Unsupported parameter: 'tools' is not supported with this model.", "unsupported_parameter")),
    "Azure": (400, {"error": {"requestid": "7eaa7bfc", "code": 400, "message": "Functions are not supported for this API "
                              "version or this model version. To learn how to user use function calling, refer to ..."}}),
    "Azure, older": (404, openai("Unrecognized request argument supplied: tools")),
    "Groq": (400, openai("`tools` is not supported with this model", None)),
    "Groq, later": (400, openai("`tool calling` is not supported with this model", None)),
    "Gemini": (400, [{"error": {"code": 400, "message": "Function calling is not enabled for models/gemma-3-27b-it",
                                "status": "INVALID_ARGUMENT"}}]),
    "Mistral": (400, {"object": "error", "message": "Function calling is not enabled for this model",
                      "type": "invalid_request_error", "code": "3051"}),
    "Bedrock": (400, {"message": "This model doesn't support tool use."}),
    "xAI": (400, {"code": "Client specified an invalid argument", "error": "Invalid request content: The model does not "
                  "support tool use or function calling but tools or tool_choice have been specified on the request."}),
    "DeepInfra": (405, openai("Tool calling is not supported for model: mistralai/Mistral-Small-24B-Instruct-2501", "405")),
    "LiteLLM": (400, openai("litellm.UnsupportedParamsError: ollama does not support parameters: ['tools'], for "
                            "model=gemma. To drop these, set `litellm.drop_params=True`.", "400")),
    "NVIDIA NIM": (400, {"object": "error", "message": "Tool use has not been enabled, because it is unsupported by this "
                         "model.", "code": 400}),
    "strict validation": (422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "tools"],
                                            "msg": "Extra inputs are not permitted", "input": [{"type": "function"}]}]}),
    "a schema it takes none of": (400, openai("Invalid schema for function 'look': In context=(), object schema missing "
                                              "properties.", "invalid_function_parameters")),
    "not implemented": (501, "tools"),
}  # fmt: skip

TOOLS_NOT_REFUSED = {
    "OpenAI, a call without its answer": (400, openai(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The "
        "following tool_call_ids did not have response messages: call_x")),
    "OpenAI, an answer without its call": (400, openai(
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")),
    "OpenAI, a long id": (400, openai("Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with "
                                      "maximum length 40, but got a string with length 44 instead.")),
    "Mistral, an id": (400, openai("Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.", "3280")),
    "Mistral, a pair": (400, openai("Not the same number of function calls and responses", "3230")),
    "Mistral, order": (400, openai("Unexpected role 'user' after role 'tool'", "3230")),
    "Gemini, a signature": (400, [{"error": {"code": 400, "message": "Function call is missing a thought_signature in "
                                             "functionCall parts. This is required for tools to work correctly."}}]),
    "Gemini, order": (400, [{"error": {"code": 400, "message": "Please ensure that function call turn comes immediately "
                                       "after a user turn or after a function response turn."}}]),
    "Kimi": (400, openai("thinking is enabled but reasoning_content is missing in assistant tool call message at index 2")),
    "DeepSeek": (400, openai("The `reasoning_content` in the thinking mode must be passed back to the API.")),
    "Anthropic": (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "messages.3: `tool_use` ids "
                        "were found without `tool_result` blocks immediately after: toolu_01"}}),
    "Groq, the model's own reply": (400, openai("Failed to call a function. Please adjust your prompt. See "
                                                "'failed_generation' for more details.", "tool_use_failed")),
    "Groq, an unknown tool": (400, openai("tool call validation failed: attempted to call tool 'x' which was not in "
                                          "request.tools", "tool_use_failed")),
    "llama.cpp, a history": (500, openai("Failed to parse tool call arguments as JSON: [json.exception.parse_error.101]")),
    "vLLM, a template": (400, openai("conversation roles must alternate user and assistant roles except for tool calls "
                                     "and results.", 400, "BadRequestError")),
    "a traceback": (500, openai("'NoneType' object is no function", None, "server_error")),
    "a cloud's route": (404, "The requested function was not found"),
    "an unknown model": (404, openai("The model `gpt-9` does not exist", "model_not_found")),
    "a content filter": (400, openai("The response was filtered due to the prompt triggering Azure OpenAI's content "
                                     "management policy.", "content_filter")),
    "another field, the request beside it": (422, {"detail": [{
        "type": "missing", "loc": ["body", "user"], "msg": "Field required",
        "input": {"tools": [{"type": "function", "function": {"name": "look"}}]}}]}),
    "a wrong key": (401, openai("no tools for this key")),
    "a rate": (429, openai("too many requests with tools")),
}  # fmt: skip


def raw(body: object) -> bytes:
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


@pytest.mark.parametrize("name", TOOLS_REFUSED)
def test_a_server_that_takes_no_tools_is_recognised(name: str) -> None:
    status, body = TOOLS_REFUSED[name]
    assert refuses_tools(status, read_error(raw(body)))


@pytest.mark.parametrize("name", TOOLS_NOT_REFUSED)
def test_a_refusal_of_a_history_or_of_something_else_is_not_taken_for_one(name: str) -> None:
    status, body = TOOLS_NOT_REFUSED[name]
    assert not refuses_tools(status, read_error(raw(body)))


async def test_tools_are_refused_after_one_request_with_what_to_do() -> None:
    rigged = rig(error(500, "tools param requires --jinja flag"))
    with pytest.raises(ToolsRefused) as refused:
        await rigged.model.complete(MESSAGES, [TOOL])
    assert "requires --jinja flag" in str(refused.value)
    assert "start the server with its tool parser, or play the task with `parameters: {protocol: text}`" in str(
        refused.value
    )
    assert len(rigged.requests) == 1


async def test_a_request_without_tools_refuses_none() -> None:
    with pytest.raises(AgentUnavailable) as failed:
        await rig(error(400, "m does not support tools")).model.complete(MESSAGES)
    assert not isinstance(failed.value, AgentRefused)


async def test_an_endpoint_that_took_tools_refuses_a_history_at_most() -> None:
    model = rig(answer(), error(400, "invalid tool result")).model
    await model.complete(MESSAGES, [TOOL])
    with pytest.raises(AgentUnavailable) as failed:
        await model.complete(MESSAGES, [TOOL])
    assert not isinstance(failed.value, AgentRefused)


async def test_a_context_that_is_too_long_with_its_functions_stays_a_context_limit() -> None:
    too_long = (
        "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens "
        "(4900 in the messages, 100 in the functions)."
    )
    with pytest.raises(ContextLimitExceeded):
        await rig(error(400, too_long)).model.complete(MESSAGES, [TOOL])


WANTS_THE_OTHER_NAME = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
)


async def test_a_refused_name_of_max_tokens_names_the_line_to_write() -> None:
    rigged = rig(error(400, WANTS_THE_OTHER_NAME, code="unsupported_parameter"))
    with pytest.raises(AgentRefused, match="write `max_tokens_field: max_completion_tokens`"):
        await rigged.model.complete(MESSAGES)
    assert len(rigged.requests) == 1


@pytest.mark.parametrize(
    "message",
    [
        "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
        "'max_tokens' or 'max_completion_tokens' is too large: 9000.",
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
    ],
)
def test_other_complaints_about_max_tokens_name_no_line(message: str) -> None:
    assert not refuses_max_tokens(400, read_error(raw(openai(message))))


@pytest.mark.parametrize(
    ("field", "written", "more", "sent"),
    [
        (None, {"max_tokens": 5}, None, {"max_tokens": 5}),
        ("max_completion_tokens", {"max_tokens": 5, "top_p": 1}, None, {"max_completion_tokens": 5, "top_p": 1}),
        ("max_tokens", {"max_completion_tokens": 5}, None, {"max_tokens": 5}),
        ("max_tokens", {"max_tokens": 5}, {"max_completion_tokens": 7}, {"max_tokens": 7}),
        ("max_completion_tokens", {"seed": 1}, None, {"seed": 1}),
    ],
)
async def test_the_limit_of_tokens_is_sent_under_its_field(
    field: str | None, written: dict[str, int], more: dict[str, int] | None, sent: dict[str, int]
) -> None:
    config = ChatConfig.model_validate(
        {"model": "m", "base_url": "http://host/v1", "sampling": written, "max_tokens_field": field}
    )
    rigged = rig(answer(), config=config)
    await rigged.model.complete((Message(role="user", content="hello"),), sampling=more)
    body = json.loads(rigged.requests[0].content)
    assert {name: value for name, value in body.items() if name not in ("model", "messages")} == sent


def test_a_limit_of_tokens_given_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="holds both 'max_tokens' and 'max_completion_tokens'; remove one"):
        ChatConfig.model_validate(
            {"model": "m", "sampling": {"max_tokens": 1, "max_completion_tokens": 1}, "max_tokens_field": "max_tokens"}
        )
