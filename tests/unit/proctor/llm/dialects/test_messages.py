"""Anthropic's Messages: requests that its own types take, replies read, and what goes back."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from proctor.llm.dialects import messages
from proctor.llm.wire import Form
from proctor.types import Action, Message, Tool, ToolCall, Usage
from tests.unit.proctor.llm.dialects.endpoint import UNTYPED, assert_typed

TOOL = Tool(name="run", description="runs")
SYSTEM, USER = Message(role="system", content="s"), Message(role="user", content="u")
THOUGHT = {"type": "thinking", "thinking": "I think", "signature": "sig"}
HIDDEN = {"type": "redacted_thinking", "data": "zz"}
SAID = {"type": "text", "text": "Let me see."}
CALLED = {"type": "tool_use", "id": "toolu_1", "name": "run", "input": {"a": 1}}
CALL = ToolCall(id="toolu_1", name="run", arguments='{"a":1}')
EPHEMERAL = {"type": "ephemeral"}


def sent(conversation: list[Message], tools: list[Tool] | None = None, form: Form = Form(), **fields: Any) -> Any:
    request = messages.request(conversation, tools or [], {"model": "m", **fields}, form)
    assert (request.path, request.headers) == ("/messages", {"anthropic-version": "2023-06-01"})
    body = json.loads(request.body)
    assert_typed("messages", {name: value for name, value in body.items() if ("messages", name) not in UNTYPED})
    return body


def turns(conversation: list[Message], form: Form = Form()) -> list[tuple[str, list[Any]]]:
    return [(turn["role"], turn["content"]) for turn in sent(conversation, form=form)["messages"]]


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


def result(call: str, told: str) -> dict[str, str]:
    return {"type": "tool_result", "tool_use_id": call, "content": told}


def replied(*content: Any, stop: Any = "end_turn", **fields: Any) -> bytes:
    return json.dumps({"type": "message", "content": content, "stop_reason": stop, **fields}).encode()


def test_a_conversation_is_a_system_text_and_turns() -> None:
    body = sent([SYSTEM, USER, Message(role="assistant", content="a"), Message(role="system", content="more")], [TOOL])
    assert body == {
        "model": "m",
        "max_tokens": 4096,
        "system": "s\n\nmore",
        "messages": [{"role": "user", "content": [text("u")]}, {"role": "assistant", "content": [text("a")]}],
        "tools": [{"name": "run", "description": "runs", "input_schema": {"type": "object"}}],
    }


def test_neighbours_are_joined_and_results_come_first() -> None:
    other = CALL.model_copy(update={"id": "toolu_2"})
    conversation = [
        *(USER, USER, Message(role="assistant", content=" ", tool_calls=(CALL, other))),
        Message(role="tool", content="one", tool_call_id="toolu_1"),
        Message(role="user", content="also"),
        Message(role="tool", content="", tool_call_id="toolu_2"),
        Message(role="user", content=" \n"),
        *(Message(role="assistant", content=""), Message(role="assistant", content="b")),
    ]
    assert turns(conversation) == [
        ("user", [text("u"), text("u")]),
        ("assistant", [CALLED, {**CALLED, "id": "toolu_2"}]),
        ("user", [result("toolu_1", "one"), result("toolu_2", ""), text("also")]),
        ("assistant", [text("(no answer)"), text("b")]),
    ]


@pytest.mark.parametrize(
    ("conversation", "first"),
    [
        ([SYSTEM], [("user", [text("s")])]),
        ([Message(role="assistant", content="a")], [("user", [text("(nothing)")]), ("assistant", [text("a")])]),
        ([Message(role="user", content=" ")], [("user", [text("(nothing)")])]),
    ],
)
def test_the_first_turn_is_the_users(conversation: list[Message], first: list[tuple[str, list[Any]]]) -> None:
    assert turns(conversation) == first


def test_a_blank_turn_of_the_user_is_one() -> None:
    """A request that ends with the agent's turn has it go on with that one, or is refused."""
    conversation = [USER, Message(role="assistant", content="a"), Message(role="user", content=" ")]
    assert turns(conversation)[1:] == [("assistant", [text("a")]), ("user", [text("(nothing)")])]


def test_the_instruction_may_open_the_first_turn() -> None:
    assert turns([SYSTEM, USER], Form(system_role="user")) == [("user", [text("s\n\nu")])]


def test_sampling_has_its_names_here() -> None:
    thinking = {"type": "enabled", "budget_tokens": 1024}
    body = sent([USER], [TOOL], max_tokens=9, stop="x", thinking=thinking, tool_choice="required", temperature=0)
    del body["messages"], body["tools"], body["model"]
    assert body == {
        "max_tokens": 9,
        "stop_sequences": ["x"],
        "thinking": thinking,
        "tool_choice": {"type": "any"},
        "temperature": 0,
    }
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    assert sent([USER], [TOOL], tool_choice=choice)["tool_choice"] == choice
    assert "tool_choice" not in sent([USER], tool_choice="required")
    assert sent([USER], stop=["x", "y"])["stop_sequences"] == ["x", "y"]


def test_thoughts_go_back_in_their_place() -> None:
    reply = messages.read(replied(THOUGHT, HIDDEN, SAID, CALLED, stop="tool_use"))
    echo: Any = {"content_blocks": [THOUGHT, HIDDEN, SAID, CALLED]}
    assert reply.action == Action(content="Let me see.", tool_calls=(CALL,), echo=echo, reasoning="I think")
    assert reply.stop == "tool_calls"
    conversation = [USER, reply.action.message(), Message(role="tool", content="done", tool_call_id="toolu_1")]
    assert turns(conversation)[1:] == [
        ("assistant", [THOUGHT, HIDDEN, SAID, CALLED]),
        ("user", [result("toolu_1", "done")]),
    ]
    assert turns(conversation, Form(reasoning="never"))[1] == ("assistant", [SAID, CALLED])


def test_calls_that_did_not_come_with_an_answer_stand_behind_it() -> None:
    message = messages.read(replied(THOUGHT, SAID)).action.model_copy(update={"tool_calls": (CALL,)}).message()
    assert turns([USER, message])[1:] == [("assistant", [THOUGHT, SAID, CALLED])]


def test_a_reply_of_text_and_calls_needs_no_echo() -> None:
    assert messages.read(replied(SAID, CALLED)).action == Action(content="Let me see.", tool_calls=(CALL,))


def test_what_would_be_refused_does_not_go_back() -> None:
    read = messages.read(replied(text(""), THOUGHT, text(" \n"), CALLED, {**CALLED, "id": "toolu_2"}, HIDDEN)).action
    renamed = CALL.model_copy(update={"id": "toolu_1_2", "arguments": "[]"})
    message = read.model_copy(update={"tool_calls": (renamed,)}).message()
    assert turns([USER, message])[1:] == [
        ("assistant", [THOUGHT, {**CALLED, "id": "toolu_1_2", "input": {"malformed_arguments": "[]"}}])
    ]
    cut = messages.read(replied(THOUGHT, stop="max_tokens"))
    assert (cut.stop, turns([USER, cut.action.message()])[1:]) == ("length", [("assistant", [text("(no answer)")])])


def marked(value: Any) -> int:
    return json.dumps(value).count('"cache_control": {"type": "ephemeral"}')


def test_long_conversations_are_cached_at_four_places() -> None:
    conversation = [
        *(Message(role="system", content="s" * 4_000), USER, Message(role="assistant", content="", tool_calls=(CALL,))),
        *(Message(role="tool", content="done", tool_call_id="toolu_1"), Message(role="assistant", content="a")),
        USER,
    ]
    body = sent(conversation, [TOOL, TOOL])
    assert [marked(tool) for tool in body["tools"]] == [0, 1]
    assert marked(body["system"]) == 1
    assert [marked(turn) for turn in body["messages"]] == [0, 0, 1, 0, 1]
    assert marked(sent(conversation, [TOOL], Form(cached_from=None))) == 0
    assert marked(sent([USER], [TOOL])) == 0, "what is short is not cached anyway"


def test_what_is_cached_is_a_part_of_the_next_request() -> None:
    conversation = [Message(role="user", content="u" * 4_000)]
    before: list[Any] = []
    for turn in range(5):
        body = json.loads(
            json.dumps(sent(conversation)["messages"]).replace(f', "cache_control": {json.dumps(EPHEMERAL)}', "")
        )
        assert body[: len(before)] == before
        before = body
        conversation += [Message(role="assistant", content=f"a{turn}"), Message(role="user", content=f"u{turn}")]


@pytest.mark.parametrize(
    ("stop", "told"),
    [
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("refusal", "content_filter"),
        ("pause_turn", "pause_turn"),
        ("model_context_window_exceeded", "model_context_window_exceeded"),
        (None, None),
    ],
)
def test_ends_are_told_in_the_words_of_chat(stop: str | None, told: str | None) -> None:
    assert messages.read(replied(SAID, stop=stop)).stop == told


@pytest.mark.parametrize(
    ("blocks", "stop", "arguments"),
    [
        ([{**CALLED, "input": {}}], "max_tokens", ""),
        ([{**CALLED, "input": {}}, SAID], "max_tokens", "{}"),
        ([{**CALLED, "input": {}}], "tool_use", "{}"),
        ([CALLED], "max_tokens", '{"a":1}'),
    ],
)
def test_a_call_that_was_cut_before_its_arguments_has_none(blocks: list[Any], stop: str, arguments: str) -> None:
    (call,) = messages.read(replied(*blocks, stop=stop)).action.tool_calls
    assert (call.id, call.arguments) == ("toolu_1", arguments)


def test_odd_replies_are_answers_and_not_failures() -> None:
    odd = messages.read(
        replied(None, "x", {"type": "tool_use", "id": 7, "input": None}, {"text": 3}, stop="max_tokens")
    )
    assert (odd.action.content, odd.action.tool_calls) == ("", (ToolCall(id="7", name="", arguments=""),))
    assert odd.action.cut
    assert messages.read(replied({"type": "text", "text": 5}, usage="odd", model=None)).action.content == "5"


def test_the_prompt_is_what_was_read_anew_from_the_cache_and_into_it() -> None:
    usage = {
        **{"input_tokens": 3, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10, "output_tokens": 4},
        "output_tokens_details": {"thinking_tokens": 2},
    }
    assert messages.read(replied(SAID, usage=usage)).usage == Usage(
        prompt_tokens=73, completion_tokens=4, cached_tokens=60, cache_write_tokens=10, reasoning_tokens=2
    )
    plain = {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": None, "cache_creation_input_tokens": "x"}
    assert messages.read(replied(SAID, usage=plain)).usage == Usage(prompt_tokens=3, completion_tokens=4)
    assert messages.read(replied(SAID, usage={"input_tokens": -1})).usage is None


@pytest.mark.parametrize("body", [b"{", b"[]", b"{}", b'{"content": "x"}', b'{"type": "error", "error": {}}'])
def test_what_holds_no_answer_is_refused(body: bytes) -> None:
    with pytest.raises(ValidationError):
        messages.read(body)
