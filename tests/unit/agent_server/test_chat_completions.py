"""Requests parsed, replies and errors written, in OpenAI's terms."""

import json

import pytest
from pydantic import JsonValue

from agent_server.agents.base import AgentReply
from agent_server.chat_completions import chunks, completion, parse_request
from agent_server.errors import RequestRefused
from proctor.llm.dialects import chat, messages
from proctor.llm.outcome import Outcome, outcome
from proctor.types import Action, Message, Tool, ToolCall, Usage

CALL = ToolCall(id="c1", name="run", arguments='{"a": ')
ACTION = Action(content="hi", tool_calls=(CALL,))


def test_what_the_chat_model_sends_is_what_the_agent_gets() -> None:
    messages = (
        Message(role="system", content="s"),
        Message(role="user", content="u"),
        Message(role="assistant", content="", tool_calls=(CALL.model_copy(update={"arguments": "{}"}),)),
        Message(role="tool", content="done", tool_call_id="c1"),
    )
    tools = (Tool(name="run", description="runs", parameters={"type": "object"}),)
    asked = parse_request(
        chat.request(messages, tools, {"temperature": 0, "model": "a", "metadata": {"task": "t"}}).body
    )
    ask = asked.agent_request()
    assert (asked.model, ask.messages, ask.tools) == ("a", messages, tools)
    assert (ask.metadata, ask.sampling) == ({"task": "t"}, {"temperature": 0})


def test_what_the_agent_answers_is_what_the_chat_model_reads() -> None:
    reply = chat.read(completion("a", AgentReply(ACTION, Usage(prompt_tokens=3, completion_tokens=4))))
    assert reply.action == ACTION
    assert reply.usage == Usage(prompt_tokens=3, completion_tokens=4)
    assert reply.stop == "tool_calls"


def test_content_parts_are_joined_and_developers_are_the_system() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    ask = parse_request(
        json.dumps({"model": "a", "messages": [{"role": "developer", "content": parts}]}).encode()
    ).agent_request()
    assert ask.messages == (Message(role="system", content="ab"),)


@pytest.mark.parametrize(
    ("body", "param", "says"),
    [
        ("{", None, "Invalid JSON"),
        ("[]", None, "should be an object"),
        ('{"messages": [{"role": "user"}]}', "model", "Field required"),
        ('{"model": "a", "messages": []}', "messages", "at least 1 item"),
        ('{"model": "a", "messages": [{"role": "king"}]}', "messages.0.role", "'assistant'"),
        ('{"model": "a", "messages": [{"role": "user"}], "n": 2}', "n", "should be 1"),
        ('{"model": "a", "messages": [{"role": "user"}], "metadata": {"seed": 1}}', "metadata.seed", "valid string"),
        (
            '{"model": "a", "messages": [{"role": "user", "content": [{"type": "image_url"}]}]}',
            "messages.0.content",
            "only text parts",
        ),
    ],
)
def test_a_bad_request_is_refused_naming_the_field(body: str, param: str | None, says: str) -> None:
    with pytest.raises(RequestRefused, match=says) as caught:
        parse_request(body.encode())
    assert (caught.value.status, caught.value.param) == (400, param)


def test_the_usage_of_a_model_behind_the_server_is_passed_on_with_its_details() -> None:
    usage = Usage(prompt_tokens=10, completion_tokens=4, cached_tokens=6, reasoning_tokens=3)
    assert chat.read(completion("a", AgentReply(ACTION, usage))).usage == usage


def test_what_a_dialect_behind_the_server_demands_back_comes_back() -> None:
    block = {"type": "thinking", "thinking": "hm", "signature": "s"}
    use: dict[str, JsonValue] = {"type": "tool_use", "id": "t", "name": "run", "input": {}}
    called = messages.read(json.dumps({"content": [block, use]}).encode()).action
    at_client = chat.read(completion("a", AgentReply(called))).action.message()
    told = Message(role="tool", content="done", tool_call_id="t")
    behind = parse_request(chat.request([at_client, told], [], {"model": "a"}).body).agent_request().messages
    turns = json.loads(messages.request(behind, [], {}).body)["messages"]
    assert turns[1]["content"] == [block, use]


def test_a_reply_without_a_model_is_told_to_cost_nothing() -> None:
    usage = chat.read(completion("a", AgentReply(ACTION))).usage
    assert usage == Usage()
    assert usage.counts, "a client estimates what is not told"


def test_an_empty_answer_without_a_model_is_an_answer() -> None:
    assert outcome(200, {}, completion("a", AgentReply(Action(content="")))) is Outcome.ANSWER


@pytest.mark.parametrize("usage", [True, False])
def test_a_stream_is_the_same_answer_in_pieces(usage: bool) -> None:
    events = [event.removeprefix(b"data: ") for event in chunks("a", AgentReply(ACTION), usage)]
    assert events.pop() == b"[DONE]\n\n"
    sent = [json.loads(event) for event in events]
    assert {chunk["id"] for chunk in sent} == {sent[0]["id"]}
    if usage:
        assert sent.pop()["usage"]["total_tokens"] == 0
    choices = [chunk["choices"][0] for chunk in sent]
    assert "".join(choice["delta"].get("content", "") for choice in choices) == "hi"
    assert [call["function"]["arguments"] for choice in choices for call in choice["delta"].get("tool_calls", ())] == [
        '{"a": '
    ]
    assert [choice["finish_reason"] for choice in choices] == [None, None, None, "tool_calls"]


def test_an_error_is_an_openai_error_object() -> None:
    refused = RequestRefused(404, "none", code="model_not_found", param="model")
    assert json.loads(refused.body()) == {
        "error": {"message": "none", "type": "invalid_request_error", "param": "model", "code": "model_not_found"}
    }
