"""Findings on endpoints that are to take tools, and which agents are asked."""

import json

import pytest

from eval_client.doctor.models import ProbeReply, judge_completion
from eval_client.doctor.tool_calls import MADE_UP, OPENING, judge_call, judge_history, players
from eval_client.plan.plan import Plan
from proctor.llm.outcome import MAX_TOKENS_FIX
from proctor.types import Message
from tests.tool_calls import invalid_history

ASKED = ProbeReply("a", "gpt", "http://e/v1", "KEY", True)
CALL = {"id": "c", "function": {"name": "report_ready", "arguments": "{}"}, "extra_content": {"signature": "s"}}


def body(**message: object) -> bytes:
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": None, **message}}]}).encode()


@pytest.mark.parametrize(
    ("status", "reply", "kind"),
    [
        (400, b'{"error": {"message": "gemma does not support tools"}}', "agent-tools-refused"),
        (500, b'{"error": {"message": "tools param requires --jinja flag"}}', "agent-tools-refused"),
        (400, b'{"error": {"message": "temperature must be at most 2"}}', "agent-refuses"),
        (200, b"<html>", "agent-reply"),
    ],
)
def test_without_a_completion_no_history_is_sent(status: int, reply: bytes, kind: str) -> None:
    called, found = judge_call(ASKED, status, reply)
    assert called is None
    assert [each.id for each in found] == [kind]


def test_the_history_holds_the_endpoints_own_call_with_what_it_demands_back() -> None:
    called, found = judge_call(ASKED, 200, body(tool_calls=[CALL], reasoning_content="r"))
    assert [(each.id, each.status.value) for each in found] == [("agent-tools", "ok")]
    assert called is not None
    assert called.echo == {"reasoning_content": "r"}
    assert called.tool_calls[0].echo == {"extra_content": {"signature": "s"}}
    answer = Message(role="tool", content="", tool_call_id=called.tool_calls[0].id)
    assert invalid_history([*OPENING, called.message(), answer]) is None


def test_a_reply_without_a_call_is_warned_of_and_a_call_is_made_up() -> None:
    called, found = judge_call(ASKED, 200, body(content="ready", reasoning_content="r"))
    assert [(each.id, each.status.value) for each in found] == [("agent-tools-unused", "warn")]
    assert called == MADE_UP.model_copy(update={"echo": {"reasoning_content": "r"}})


@pytest.mark.parametrize(
    ("status", "reply", "kind"),
    [
        (200, body(content="done"), "agent-tools"),
        (400, b'{"error": {"message": "reasoning_content must be passed back"}}', "agent-tools-history"),
        (503, b"", "agent-failing"),
    ],
)
def test_what_an_endpoint_may_reply_to_a_history(status: int, reply: bytes, kind: str) -> None:
    assert judge_history(ASKED, status, reply).id == kind


def test_a_refused_name_of_max_tokens_has_the_plans_line_as_its_fix() -> None:
    reply = b'{"error": {"message": "\'max_tokens\' is not supported. Use \'max_completion_tokens\' instead."}}'
    assert judge_completion(ASKED, 400, reply).fix == MAX_TOKENS_FIX


def test_only_agents_that_play_a_task_by_function_calls_are_asked() -> None:
    plan = Plan.model_validate(
        {
            "controller": "http://controller",
            "agents": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
            "tasks": [
                {"name": "calls", "environment": "db", "parameters": {"protocol": "tools"}},
                {"name": "texts", "environment": "db", "parameters": {"protocol": "text"}},
                {"name": "simple", "environment": "card_game"},
                {"name": "unknown", "environment": "of-nobody"},
                {"name": "remote"},
            ],
            "assignments": [
                {"agents": ["a"], "tasks": ["calls"]},
                {"agents": ["b"], "tasks": ["texts", "simple", "unknown", "remote"]},
                {"agents": ["c"], "tasks": ["texts", "calls"]},
            ],
        }
    )
    assert players(plan.pairs(), plan.definitions()) == {"a", "c"}
