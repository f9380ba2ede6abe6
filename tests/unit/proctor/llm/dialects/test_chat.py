"""Requests and replies of OpenAI Chat Completions."""

import json
import math
from typing import Any

import pytest
from pydantic import JsonValue, ValidationError

from proctor.llm.dialects import chat
from proctor.llm.dialects.chat import MOST_REPLY_TOKENS
from proctor.llm.outcome import Outcome, outcome
from proctor.llm.wire import Reply
from proctor.types import Action, Message, Tool, ToolCall, Usage

CALL = ToolCall(id="c1", name="run", arguments='{"a": ')
CALL_SENT: JsonValue = {"id": "c1", "function": {"name": "run", "arguments": '{"a": '}}


def reply(message: JsonValue, **fields: JsonValue) -> Reply:
    body = {"choices": [{"message": message, "finish_reason": "stop"}], **fields}
    return chat.read(json.dumps(body).encode())


def test_a_request_has_the_protocols_shape() -> None:
    called = CALL.model_copy(update={"arguments": '{"a": 1}'})
    messages = [
        Message(role="system", content="s"),
        Message(role="assistant", content="", tool_calls=(called,)),
        Message(role="tool", content="done", tool_call_id="c1"),
    ]
    tools = [Tool(name="run", description="runs", parameters={"type": "object"})]
    body = json.loads(chat.request(messages, tools, {"temperature": 0, "model": "m"}).body)
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
    }


def test_what_is_not_given_is_not_sent() -> None:
    assert set(json.loads(chat.request([], [], {"model": "m"}).body)) == {"model", "messages"}


@pytest.mark.parametrize(
    ("message", "action"),
    [
        ({"content": "hi"}, Action(content="hi")),
        ({"role": "assistant"}, Action(content="")),
        ({"content": None}, Action(content="")),
        ({"content": None, "tool_calls": None}, Action(content="")),
        ({"content": [{"type": "text", "text": "a"}, {"type": "image"}, "x"]}, Action(content="a")),
        ({"content": {"type": "text", "text": "a"}}, Action(content="a")),
        ({"content": 5, "function_call": ""}, Action(content="5")),
        ({"content": "a", "function_call": {}}, Action(content="a")),
        ({"content": None, "refusal": "no"}, Action(content="no")),
        ({"tool_calls": [None, "x", CALL_SENT]}, Action(content="", tool_calls=(CALL,))),
        (
            {"tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "run", "input": "ls"}}]},
            Action(content="", tool_calls=(ToolCall(id="c1", name="", arguments=""),)),
        ),
        (
            {"content": None, "tool_calls": [CALL_SENT]},
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
    assert reply(message).action == action


@pytest.mark.parametrize(
    ("choice", "more", "stop"),
    [
        ({"finish_reason": {"type": "stop", "matched": 7}}, {}, "stop"),
        ({"finish_reason": {"type": "abort"}}, {}, "abort"),
        ({"finish_reason": 1}, {"model": 5}, None),
        ({}, {"choices": [{"broken": 1}]}, None),
        ({}, {"choices": [None, "x"]}, None),
    ],
)
def test_what_is_not_needed_of_an_answer_is_dropped(
    choice: dict[str, JsonValue], more: dict[str, Any], stop: str | None
) -> None:
    choices = [{"message": {"content": "hi"}, **choice}, *more.pop("choices", [])]
    read = chat.read(json.dumps({"choices": choices, **more}).encode())
    assert (read.action, read.model, read.stop) == (Action(content="hi"), None, stop)


@pytest.mark.parametrize("deep", [900, 1_000, 100_000])
def test_reasoning_that_is_nested_too_deep_is_dropped(deep: int) -> None:
    details = b'{"reasoning_details": ' + b'{"]": [' * deep + b"]}" * deep + b', "content": "hi"}'
    body = b'{"choices": [{"message": %s}]}' % details
    action = chat.read(body).action
    assert (action.content, Action.model_validate_json(action.model_dump_json())) == ("hi", action)
    assert outcome(200, {}, body) is Outcome.ANSWER


@pytest.mark.parametrize("body", ["{", "[]", "null", "{}", '{"choices": []}', '{"choices": [{"message": null}]}'])
def test_what_holds_no_answer_is_refused(body: str) -> None:
    with pytest.raises(ValidationError):
        chat.read(body.encode())


@pytest.mark.parametrize(
    ("usage", "used"),
    [
        (None, None),
        ({"prompt_tokens": 3, "completion_tokens": None, "total_tokens": 3}, Usage(prompt_tokens=3)),
        ({"prompt_tokens": 3, "completion_tokens": 4}, Usage(prompt_tokens=3, completion_tokens=4)),
        ({"input_tokens": 3, "output_tokens": 4, "total_tokens": 9}, Usage(prompt_tokens=3, completion_tokens=6)),
    ],
)
def test_usage_is_read(usage: JsonValue, used: Usage | None) -> None:
    assert reply({"content": ""}, usage=usage).usage == used


CACHED = {"prompt_tokens_details": {"cached_tokens": 6, "audio_tokens": 0}}
THOUGHT = {"completion_tokens_details": {"reasoning_tokens": 3}}


@pytest.mark.parametrize(
    ("details", "cached", "thought"),
    [
        (CACHED, 6, 0),
        (THOUGHT, 0, 3),
        (CACHED | THOUGHT, 6, 3),
        ({"prompt_cache_hit_tokens": 7, "prompt_cache_miss_tokens": 3}, 7, 0),
        ({"prompt_cache_hit_tokens": 6} | CACHED, 6, 0),
        ({"cached_tokens": 6}, 6, 0),
        ({"prompt_cache_hit_tokens": 5, "prompt_tokens_details": {}}, 5, 0),
        ({"prompt_tokens_details": None, "completion_tokens_details": None}, 0, 0),
        ({"prompt_tokens_details": {"cached_tokens": None}}, 0, 0),
        ({"prompt_tokens_details": {"cached_tokens": 11}}, 0, 0),
    ],
)
def test_usage_tells_what_was_cached_and_what_was_thought(
    details: dict[str, JsonValue], cached: int, thought: int
) -> None:
    read = reply({"content": ""}, usage={"prompt_tokens": 10, "completion_tokens": 4, **details})
    assert read.usage == Usage(prompt_tokens=10, completion_tokens=4, cached_tokens=cached, reasoning_tokens=thought)


@pytest.mark.parametrize("count", [10**23, 2**53 + 1, -1, 1.5, "many", [], {}, float("inf")])
@pytest.mark.parametrize("name", ["prompt_tokens_details", "completion_tokens_details", "prompt_cache_hit_tokens"])
def test_details_of_usage_that_are_no_counts_are_0_and_leave_the_rest_metered(name: str, count: JsonValue) -> None:
    wrongs: list[JsonValue] = [count, {"cached_tokens": count, "reasoning_tokens": count}, [{"cached_tokens": 1}]]
    for details in wrongs:
        read = reply({"content": "hi"}, usage={"prompt_tokens": 10, "completion_tokens": 4, name: details})
        assert (read.action, read.usage) == (Action(content="hi"), Usage(prompt_tokens=10, completion_tokens=4))


@pytest.mark.parametrize(
    ("finish_reason", "calls", "cut"),
    [("length", 1, True), ("length", 0, False), ("tool_calls", 1, False), (None, 1, False)],
)
def test_a_reply_with_tool_calls_that_was_cut_by_max_tokens_says_so(
    finish_reason: str | None, calls: int, cut: bool
) -> None:
    message = {"content": "", "tool_calls": [{"id": "c", "function": {"name": "run", "arguments": '{"a": '}}] * calls}
    body = {"choices": [{"message": message, "finish_reason": finish_reason}]}
    assert chat.read(json.dumps(body).encode()).action.cut is cut


@pytest.mark.parametrize("count", [10**23, 2**53 + 1, -1, 1.5, "many", [], {}])
def test_an_answer_whose_counts_are_no_counts_is_taken_as_unmetered(count: JsonValue) -> None:
    for usage in ({"prompt_tokens": count}, {"prompt_tokens": 3, "completion_tokens": count}, "none"):
        read = reply({"content": "hi"}, usage=usage)
        assert (read.action, read.usage) == (Action(content="hi"), None)


@pytest.mark.parametrize(
    ("choice", "token_ids", "logprobs"),
    [
        ({}, (), ()),
        ({"token_ids": [5, 6], "logprobs": {"content": [{"token": "a", "logprob": -0.5}]}}, (5, 6), (-0.5,)),
        ({"token_ids": None, "logprobs": None}, (), ()),
        ({"token_ids": ["x"], "logprobs": {"content": [{"token": "a"}]}}, (), ()),
        ({"token_ids": [1], "logprobs": {"content": None, "refusal": []}}, (1,), ()),
        ({"logprobs": {"tokens": ["a"], "token_logprobs": [-1.0]}}, (), ()),
        ({"logprobs": {"content": [{"logprob": math.inf}]}}, (), ()),
        ({"token_ids": [1] * (MOST_REPLY_TOKENS + 1)}, (), ()),
    ],
)
def test_token_ids_and_log_probabilities_are_kept_where_they_can_be_read(
    choice: dict[str, JsonValue], token_ids: tuple[int, ...], logprobs: tuple[float, ...]
) -> None:
    body = json.dumps({"choices": [{"message": {"content": "hi"}, **choice}]}).encode()
    action = chat.read(body).action
    assert (action.content, action.token_ids, action.logprobs) == ("hi", token_ids, logprobs)
    assert action.without_echo() == Action(content="hi"), "they are no environment's business"
    assert Action.model_validate_json(action.model_dump_json()) == action
