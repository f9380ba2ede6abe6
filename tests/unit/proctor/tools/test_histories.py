"""Calls made whole, histories that endpoints take, and what goes back to them."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.json_objects import is_object
from proctor.llm.dialects import chat
from proctor.llm.wire import MOST_ARGUMENTS, MOST_CALLS, MOST_ECHO_BYTES, Form
from proctor.session.transcript import Transcript
from proctor.tools.functions import given_arguments
from proctor.tools.histories import normalised, sendable, sendable_arguments, sendable_name
from proctor.types import Action, Message, Observation, Tool, ToolCall
from tests.support import SHARED_DATA
from tests.tool_calls import invalid_history
from tests.unit.proctor.tools.provider_rules import refused

TOOL = Tool(name="f")


def call(id_: str = "a", arguments: str = "{}", **echo: Any) -> ToolCall:
    return ToolCall(id=id_, name="f", arguments=arguments, echo=echo)


def read(message: Mapping[str, Any]) -> Action:
    body = json.dumps({"choices": [{"message": {"role": "assistant", **message}}]}).encode()
    return chat.read(body).action


NEWER = {"call_0": "call00001", "call_1": "call00002", "a_2": "call00002"}
"""The ids that earlier versions made, and ours."""


@pytest.mark.shared
def test_replies_of_real_servers_are_read_as_the_table_says() -> None:
    lines = (SHARED_DATA / "interop/fc/quirks.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 21
    for line in lines:
        case = json.loads(line)
        action = normalised(chat.read(json.dumps(case["reply"]).encode()).action, ())
        expected = case["expect"]
        assert action.content == expected["content"], case["case"]
        calls = [[call.id, call.name, call.arguments] for call in action.tool_calls]
        assert calls == [[NEWER.get(id_, id_), *rest] for id_, *rest in expected["calls"]], case["case"]
        assert action.echo == expected.get("echo", {}), case["case"]
        echoes = [call.echo for call in action.tool_calls if call.echo]
        assert echoes == expected.get("call_echo", []), case["case"]


def test_odd_replies_are_answers_and_not_failures() -> None:
    assert read(
        {"content": None, "tool_calls": [{"id": 7, "function": {"name": None, "arguments": None}}]}
    ).tool_calls == (ToolCall(id="7", name="", arguments=""),)
    assert read({"function_call": {"name": "f", "arguments": {"x": 1}}}).tool_calls == (
        ToolCall(id="", name="f", arguments='{"x":1}'),
    )
    assert read({"content": 5}).content == "5"
    assert read({"content": None, "refusal": "no"}).content == "no"
    assert read({"content": "yes", "tool_calls": {}}).tool_calls == ()
    custom = {"id": "a", "type": "custom", "custom": {"name": "f", "input": "x"}}
    assert read({"tool_calls": [custom]}).tool_calls == (ToolCall(id="a", name="", arguments=""),)
    many = read({"tool_calls": [{"function": {"name": "f", "arguments": "x" * 100_000}}] * 40})
    assert len(many.tool_calls) == MOST_CALLS
    assert 0 <= sum(len(call.arguments) for call in many.tool_calls) - MOST_ARGUMENTS < MOST_CALLS
    for cut in [call for call in many.tool_calls if len(call.arguments) < 100_000]:
        with pytest.raises(ValueError, match="no JSON"):
            given_arguments(cut.arguments, strict=True)


def test_calls_are_numbered_through_the_conversation_and_no_id_comes_twice() -> None:
    history = [Message(role="assistant", content="", tool_calls=(call("call_0"), call("a")))]
    action = Action(
        content="", tool_calls=(call(""), call("a"), call("a"), ToolCall(id="b", name="f\n\0g", arguments=""))
    )
    whole = normalised(action, history)
    assert [call.id for call in whole.tool_calls] == ["call00003", "call00004", "call00005", "b"]
    assert whole.tool_calls[3].name == "fg"
    assert normalised(whole, history[:0]) == whole, "what is whole stays as it is"
    assert normalised(Action(content="x"), history) == Action(content="x")


@given(st.text(max_size=50))
def test_arguments_of_a_history_are_always_an_object(text: str) -> None:
    sent = sendable_arguments(text)
    assert is_object(sent)
    assert sent == text or json.loads(sent) == {"malformed_arguments": text}


def test_malformed_arguments_go_back_as_an_object_and_stay_as_they_came() -> None:
    asked = Message(role="assistant", content="", tool_calls=(call(arguments='{"script": "' + "x" * 5_000),))
    (sent,) = json.loads(chat.request([asked], [TOOL], {}).body)["messages"]
    arguments = json.loads(sent["tool_calls"][0]["function"]["arguments"])
    assert arguments == {"malformed_arguments": asked.tool_calls[0].arguments[:2_000]}


ECHO = {"reasoning_content": "I think", "reasoning_details": [{"data": "zz"}]}
SIGNED = {"extra_content": {"google": {"thought_signature": "s"}}}


@pytest.mark.parametrize(
    ("reasoning", "with_calls", "without_calls"),
    [("auto", True, False), ("always", True, True), ("never", False, False)],
)
def test_reasoning_goes_back_where_it_is_wanted_and_signatures_always(
    reasoning: Any, with_calls: bool, without_calls: bool
) -> None:
    called = read({"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}, **SIGNED}], **ECHO})
    said = read({"content": "yes", **ECHO})
    assert (called.reasoning, called.echo, said.echo) == ("I think", ECHO, ECHO)
    messages = [called.message(), Message(role="tool", content="1", tool_call_id="a"), said.message()]
    body = json.loads(chat.request(messages, [TOOL], {}, Form(reasoning)).body)
    first, _, last = body["messages"]
    assert (ECHO.items() <= first.items()) is with_calls
    assert (ECHO.items() <= last.items()) is without_calls
    assert SIGNED.items() <= first["tool_calls"][0].items()


def test_unknown_fields_and_large_ones_do_not_go_back() -> None:
    assert read({"content": "", "audio": {"id": 1}, "reasoning": None}).echo == {}
    large = read(
        {"content": "x", "reasoning_content": "y" * (MOST_ECHO_BYTES + 1), "tool_calls": [{"id": "a", **SIGNED}]}
    )
    assert (large.echo, large.reasoning, large.tool_calls[0].echo) == ({}, "", {})


def test_environments_and_digests_never_see_an_echo() -> None:
    action = read({"tool_calls": [{"id": "a", "function": {"name": "f"}, **SIGNED}], **ECHO})
    assert action.without_echo() == Action(content="", tool_calls=(ToolCall(id="a", name="f", arguments=""),))
    assert len({action, action.without_echo(), action.message()}) == 3, "values with an echo can be keys"
    cut = action.model_copy(update={"cut": True})
    assert cut.without_echo().cut, "that a reply was cut is the environment's business"
    assert "cut" not in action.model_dump_json()
    assert Action.model_validate_json(cut.model_dump_json()) == cut
    plain = Message(role="user", content="hello")
    assert plain.model_dump_json() == '{"role":"user","content":"hello","tool_calls":[],"tool_call_id":null}'
    assert Observation(messages=(plain,)).digest() == "9883c174403d097a"


@pytest.mark.parametrize(
    ("role", "shown"),
    [
        ("system", [("system", "rules"), ("user", "task"), ("assistant", "yes")]),
        ("developer", [("developer", "rules"), ("user", "task"), ("assistant", "yes")]),
        ("user", [("user", "rules\n\ntask"), ("assistant", "yes")]),
    ],
)
def test_the_instruction_comes_in_the_role_that_the_endpoint_takes(role: Any, shown: list[tuple[str, str]]) -> None:
    messages = [
        Message(role="system", content="rules"),
        Message(role="user", content="task"),
        Message(role="assistant", content="yes"),
    ]
    sent = json.loads(chat.request(messages, [], {}, Form(system_role=role)).body)["messages"]
    assert [(message["role"], message["content"]) for message in sent] == shown


def test_choices_of_tools_are_sent_only_where_there_are_tools() -> None:
    sampling: dict[str, Any] = {"tool_choice": "required", "parallel_tool_calls": False, "temperature": 0}
    with_tools = json.loads(chat.request([], [TOOL], sampling).body)
    assert sampling.items() <= with_tools.items()
    without = json.loads(chat.request([], [], sampling).body)
    assert without == {"temperature": 0, "messages": []}


TOLD = Message(role="tool", content="1", tool_call_id="a")
ASKED = Message(role="assistant", content="", tool_calls=(call("a"),))
USER = Message(role="user", content="x")


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([USER, ASKED, TOLD], None),
        ([USER, ASKED, TOLD, ASKED.model_copy(update={"tool_calls": ()})], None),
        ([ASKED], "the last calls have no answer: a"),
        ([TOLD], "answers no call"),
        ([ASKED, TOLD, TOLD], "answers no call"),
        ([ASKED, Message(role="user", content="x"), TOLD], "calls before it have no answer"),
        ([ASKED, TOLD, ASKED, TOLD], "stands twice"),
        ([Message(role="assistant", content="", tool_calls=(call("a"), call("a")))], "stands twice"),
        ([Message(role="assistant", content="", tool_calls=(call(""),))], "has no id"),
    ],
)
def test_histories_that_endpoints_refuse_are_known(messages: Sequence[Message], why: str | None) -> None:
    found = invalid_history(messages)
    assert found is None if why is None else why in str(found)


def test_an_id_that_the_endpoint_did_not_give_has_nine_letters_and_digits() -> None:
    assert "Mistral" in str(invalid_history([USER, ASKED, TOLD], own_ids=()))
    made = normalised(Action(content="", tool_calls=(call(""),)), [USER])
    told = Message(role="tool", content="1", tool_call_id=made.tool_calls[0].id)
    assert invalid_history([USER, made.message(), told], own_ids=()) is None


@given(st.text(max_size=90))
def test_a_name_is_one_that_endpoints_take_and_a_good_one_stays(name: str) -> None:
    sent = sendable_name(name)
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", sent)
    assert sent == name or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name)
    assert sent == sendable_name(name) == sendable_name(sent)


ODD_CALLS = st.lists(
    st.builds(
        ToolCall,
        id=st.sampled_from(["", "a", "b", "call00001", "x" * 60]),
        name=st.sampled_from(["f", "functions.f", "", "x" * 99, "f\n", "\u67e5"]),
        arguments=st.sampled_from(["{}", "", "[]", '{"a": ', "NaN"]),
    ),
    max_size=3,
)
ODD_ANSWERS = st.builds(
    lambda content, calls: Action(content=content, tool_calls=tuple(calls)),
    st.sampled_from(["", " \n", "yes"]),
    ODD_CALLS,
)


@given(st.lists(st.tuples(ODD_ANSWERS, st.booleans()), max_size=6))
def test_whatever_is_answered_five_providers_take_the_next_request_and_the_history_stays(
    turns: list[tuple[Action, bool]],
) -> None:
    """`True`: the world offers no functions, and answers no calls."""
    transcript, told, own_ids = Transcript(), [USER], set[str]()
    for answer, in_text in turns:
        observation = Observation(messages=tuple(told))
        history = transcript.observe(observation)
        kept = [message.model_copy(deep=True) for message in history]
        request = {"messages": chat.messages_json(sendable(history)), "tools": [TOOL]}
        assert refused(request, own_ids) is None
        assert sendable(history) == sendable(list(history)), "a resumed history is the same"
        assert history == kept
        own_ids |= {call.id for call in answer.tool_calls}
        action = normalised(answer, history)
        assert [call.arguments for call in action.tool_calls] == [call.arguments for call in answer.tool_calls]
        transcript.answer(observation, action)
        told = [] if in_text else [Message(role="tool", content="1", tool_call_id=c.id) for c in action.tool_calls]
        told = told or [USER]


def test_what_is_sent_is_made_once() -> None:
    transcript, observation = Transcript(), Observation(messages=(USER,))
    history = transcript.observe(observation)
    first = sendable(history)
    assert first[0] is USER
    transcript.answer(observation, Action(content=""))
    transcript.observe(observation)
    assert sendable(history) is first
    assert [message.content for message in first] == ["x", "(no answer)", "x"]
