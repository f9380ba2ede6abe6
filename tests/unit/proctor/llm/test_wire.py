"""Requests and replies of OpenAI Chat Completions."""

import json

import pytest
from pydantic import JsonValue, ValidationError

from proctor.llm.wire import ChatReply, Usage, request_body
from proctor.types import Action, Message, Tool, ToolCall

CALL = ToolCall(id="c1", name="run", arguments='{"a": ')


def reply(message: JsonValue, **fields: JsonValue) -> ChatReply:
    body = {"choices": [{"message": message, "finish_reason": "stop"}], **fields}
    return ChatReply.model_validate_json(json.dumps(body))


def test_a_request_has_the_protocols_shape() -> None:
    called = CALL.model_copy(update={"arguments": '{"a": 1}'})
    messages = [
        Message(role="system", content="s"),
        Message(role="assistant", content="", tool_calls=(called,)),
        Message(role="tool", content="done", tool_call_id="c1"),
    ]
    tools = [Tool(name="run", description="runs", parameters={"type": "object"})]
    body = json.loads(request_body("m", messages, tools, {"temperature": 0}, {"task": "t"}))
    assert body == {
        "model": "m",
        "temperature": 0,
        "messages": [
            {"role": "system", "content": "s"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "run", "arguments": '{"a": 1}'}}],
            },
            {"role": "tool", "content": "done", "tool_call_id": "c1"},
        ],
        "tools": [
            {"type": "function", "function": {"name": "run", "description": "runs", "parameters": {"type": "object"}}}
        ],
        "metadata": {"task": "t"},
    }


def test_what_is_not_given_is_not_sent() -> None:
    assert set(json.loads(request_body("m", [], [], {}, None))) == {"model", "messages"}


@pytest.mark.parametrize(
    ("message", "action"),
    [
        ({"content": "hi"}, Action(content="hi")),
        ({"role": "assistant"}, Action(content="")),
        ({"content": None}, Action(content="")),
        ({"content": None, "tool_calls": None}, Action(content="")),
        ({"content": [{"type": "text", "text": "a"}, {"type": "image"}, "x"]}, Action(content="a")),
        ({"content": None, "refusal": "no"}, Action(content="no")),
        (
            {"content": None, "tool_calls": [{"id": "c1", "function": {"name": "run", "arguments": '{"a": '}}]},
            Action(content="", tool_calls=(CALL,)),
        ),
        (
            {"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}, {"function": {"name": "g"}}]},
            Action(
                content="",
                tool_calls=(
                    ToolCall(id="", name="f", arguments='{"a":1}'),
                    ToolCall(id="", name="g", arguments=""),
                ),
            ),
        ),
    ],
)
def test_an_answer_is_read(message: JsonValue, action: Action) -> None:
    assert reply(message).action() == action


@pytest.mark.parametrize("body", ["{", "[]", "null", "{}", '{"choices": []}', '{"choices": [{"message": null}]}'])
def test_what_holds_no_answer_is_refused(body: str) -> None:
    with pytest.raises(ValidationError):
        ChatReply.model_validate_json(body)


@pytest.mark.parametrize(
    ("usage", "used"),
    [
        (None, Usage()),
        ({"prompt_tokens": 3, "completion_tokens": None, "total_tokens": 3}, Usage(prompt_tokens=3)),
        ({"prompt_tokens": 3, "completion_tokens": 4}, Usage(prompt_tokens=3, completion_tokens=4)),
    ],
)
def test_usage_is_read(usage: JsonValue, used: Usage) -> None:
    assert reply({"content": ""}, usage=usage).used() == used


@pytest.mark.parametrize("count", [10**23, 2**53 + 1, -1, 1.5, "many", [], {}])
def test_an_answer_whose_counts_are_no_counts_is_taken_as_unmetered(count: JsonValue) -> None:
    for usage in ({"prompt_tokens": count}, {"prompt_tokens": 3, "completion_tokens": count}, "none"):
        read = reply({"content": "hi"}, usage=usage)
        assert (read.action(), read.usage, read.used()) == (Action(content="hi"), None, Usage())
