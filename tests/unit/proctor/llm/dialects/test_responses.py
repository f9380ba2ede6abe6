"""OpenAI's Responses: requests that its own types take, replies read, and what goes back."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from proctor.llm.dialects import responses
from proctor.llm.wire import Form
from proctor.types import Action, Message, Tool, ToolCall, Usage
from tests.unit.proctor.llm.dialects.endpoint import assert_typed

TOOL = Tool(name="run", description="runs", parameters={"type": "object", "properties": {}})
SYSTEM, USER = Message(role="system", content="s"), Message(role="user", content="u")
THOUGHT = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
SAID: dict[str, Any] = {
    **{"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "phase": "commentary"},
    "content": [{"type": "output_text", "text": "Let me see.", "annotations": [], "logprobs": []}],
}
CALLED = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "c1",
    "name": "run",
    "arguments": "{}",
    "status": "completed",
}


def sent(conversation: list[Message], tools: list[Tool] | None = None, form: Form = Form(), **fields: Any) -> Any:
    request = responses.request(conversation, tools or [], {"model": "m", **fields}, form)
    body = json.loads(request.body)
    assert_typed("responses", body)
    assert (request.path, request.headers, body.pop("store")) == ("/responses", {}, False)
    assert (body.pop("include"), body.pop("model")) == (["reasoning.encrypted_content"], "m")
    return body


def replied(*output: Any, **fields: Any) -> bytes:
    return json.dumps({"object": "response", "status": "completed", "output": output, **fields}).encode()


def test_a_conversation_is_instructions_and_items() -> None:
    call = ToolCall(id="c1", name="run", arguments='{"a": 1}')
    conversation = [
        SYSTEM,
        USER,
        Message(role="assistant", content="hm", tool_calls=(call,)),
        Message(role="tool", content="", tool_call_id="c1"),
        Message(role="assistant", content=""),
        Message(role="system", content="more"),
    ]
    assert sent(conversation, [TOOL]) == {
        "instructions": "s\n\nmore",
        "input": [
            {"type": "message", "role": "user", "content": "u"},
            {"type": "message", "role": "assistant", "content": "hm"},
            {"type": "function_call", "call_id": "c1", "name": "run", "arguments": '{"a": 1}'},
            {"type": "function_call_output", "call_id": "c1", "output": ""},
            {"type": "message", "role": "assistant", "content": "(no answer)"},
        ],
        "tools": [
            {"type": "function", "name": "run", "description": "runs", "parameters": TOOL.parameters, "strict": False}
        ],
    }


@pytest.mark.parametrize(
    ("form", "conversation", "items"),
    [
        (Form(system_role="developer"), [SYSTEM, USER], [("developer", "s"), ("user", "u")]),
        (Form(system_role="user"), [SYSTEM, USER], [("user", "s\n\nu")]),
        (Form(), [SYSTEM], [("user", "s")]),
    ],
)
def test_the_instruction_comes_in_the_role_that_the_endpoint_takes(
    form: Form, conversation: list[Message], items: list[tuple[str, str]]
) -> None:
    body = sent(conversation, form=form)
    assert "instructions" not in body
    assert [(item["role"], item["content"]) for item in body["input"]] == items


def test_sampling_has_its_names_here() -> None:
    thinks: dict[str, Any] = {"reasoning_effort": "low", "reasoning": {"summary": "auto"}}
    body = sent([USER], tool_choice="required", parallel_tool_calls=False, max_tokens=50, temperature=0, **thinks)
    assert body == {
        "input": [{"type": "message", "role": "user", "content": "u"}],
        "max_output_tokens": 50,
        "reasoning": {"effort": "low", "summary": "auto"},
        "temperature": 0,
    }
    assert sent([USER], [TOOL], tool_choice="required")["tool_choice"] == "required"


def test_output_items_go_back_in_their_order_and_place() -> None:
    reply = responses.read(replied(THOUGHT, SAID, CALLED))
    action = Action(
        content="Let me see.",
        tool_calls=(ToolCall(id="c1", name="run", arguments="{}"),),
        echo={"output_items": [THOUGHT, SAID, CALLED]},
    )
    assert (reply.action, reply.stop) == (action, "tool_calls")
    told = Message(role="tool", content="done", tool_call_id="c1")
    output = {"type": "function_call_output", "call_id": "c1", "output": "done"}
    conversation = [USER, action.message(), told]
    assert sent(conversation)["input"][1:] == [THOUGHT, SAID, CALLED, output]
    assert sent(conversation, form=Form(reasoning="never"))["input"][1:] == [SAID, CALLED, output]


def test_calls_go_back_as_the_conversation_has_them() -> None:
    odd = {**CALLED, "arguments": '{"a'}
    read = responses.read(replied(THOUGHT, odd, {**CALLED, "id": "fc_2"})).action
    assert [call.arguments for call in read.tool_calls] == ['{"a', "{}"], "the journal keeps what the model wrote"
    renamed = read.tool_calls[0].model_copy(update={"id": "c1_2"})
    items = sent([USER, read.model_copy(update={"tool_calls": (renamed,)}).message()])["input"][1:]
    assert items == [THOUGHT, {**CALLED, "call_id": "c1_2", "arguments": '{"malformed_arguments": "{\\"a"}'}]


def test_nulls_of_gateways_do_not_go_back() -> None:
    part = {**SAID["content"][0], "logprobs": None}
    odd = {**THOUGHT, "content": None, "status": None}, {**SAID, "content": [part]}, {**CALLED, "status": None}
    items = sent([USER, responses.read(replied(*odd)).action.message()])["input"][1:]
    plain = {name: value for name, value in part.items() if value is not None}
    called = {name: value for name, value in CALLED.items() if name != "status"}
    assert items == [THOUGHT, {**SAID, "content": [plain]}, called]


def test_calls_that_did_not_come_with_an_answer_stand_behind_it() -> None:
    made_up = ToolCall(id="c9", name="run", arguments="{}")
    message = responses.read(replied(THOUGHT, SAID)).action.model_copy(update={"tool_calls": (made_up,)}).message()
    call = {"type": "function_call", "call_id": "c9", "name": "run", "arguments": "{}"}
    assert sent([USER, message])["input"][1:] == [THOUGHT, SAID, call]


def test_a_thought_without_an_answer_does_not_go_back() -> None:
    reply = responses.read(replied(THOUGHT, status="incomplete", incomplete_details={"reason": "max_output_tokens"}))
    assert (reply.action.content, reply.stop) == ("", "length")
    assert sent([USER, reply.action.message()])["input"][1:] == [
        {"type": "message", "role": "assistant", "content": "(no answer)"}
    ]


@pytest.mark.parametrize(
    ("output", "fields", "stop", "content", "reasoning"),
    [
        ([SAID, SAID], {}, "stop", "Let me see.Let me see.", ""),
        ([SAID], {"incomplete_details": {"reason": "content_filter"}}, "content_filter", "Let me see.", ""),
        ([{"type": "message", "content": [{"type": "refusal", "refusal": "I can't"}]}], {}, "stop", "I can't", ""),
        ([{"type": "message", "content": None}, None, 3, {"type": "web_search_call"}], {}, "stop", "", ""),
        ([{**THOUGHT, "summary": [{"text": "a"}, {"text": "b"}]}], {}, "stop", "", "ab"),
        ([{**THOUGHT, "content": [{"type": "reasoning_text", "text": "open"}]}], {}, "stop", "", "open"),
        ([SAID], {"incomplete_details": "odd", "model": None, "usage": "odd"}, "stop", "Let me see.", ""),
    ],
)
def test_replies_are_read(output: list[Any], fields: Any, stop: str, content: str, reasoning: str) -> None:
    reply = responses.read(replied(*output, **fields))
    assert (reply.stop, reply.action.content, reply.action.reasoning) == (stop, content, reasoning)


def test_odd_calls_are_answers_and_not_failures() -> None:
    odd = [{"type": "function_call", "id": 7, "arguments": {"a": 1}}, {"type": "function_call", "name": None}]
    calls = responses.read(replied(*odd, incomplete_details={"reason": "max_output_tokens"})).action
    assert calls.tool_calls == (ToolCall(id="7", name="", arguments='{"a":1}'), ToolCall(id="", name="", arguments=""))
    assert calls.cut


def test_usage_is_read() -> None:
    usage = {
        **{"input_tokens": 10, "output_tokens": 4, "total_tokens": 14},
        "input_tokens_details": {"cached_tokens": 6, "cache_write_tokens": 2},
        "output_tokens_details": {"reasoning_tokens": 3},
    }
    assert responses.read(replied(SAID, usage=usage, model="m-1"))[1:3] == (
        Usage(prompt_tokens=10, completion_tokens=4, cached_tokens=6, cache_write_tokens=2, reasoning_tokens=3),
        "m-1",
    )
    assert responses.read(replied(SAID, usage={"input_tokens": -1})).usage is None
    assert responses.read(replied(SAID, usage={"input_tokens": 1})).usage == Usage(prompt_tokens=1)


@pytest.mark.parametrize("body", [b"{", b"[]", b"{}", b'{"output": 3}', b'{"choices": [{"message": {}}]}'])
def test_what_holds_no_answer_is_refused(body: bytes) -> None:
    with pytest.raises(ValidationError):
        responses.read(body)
