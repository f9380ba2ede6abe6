"""Functions are declared, checked and read; every call is answered; policies for text play tools."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.tools import (
    CallReader,
    Function,
    ReplyReader,
    TextReader,
    Toolset,
    UnreadableCall,
    arguments_schema,
    in_tools,
)
from proctor.tools.readers import NOT_EXECUTED
from proctor.types import Action, FinishReason, Message, ToolCall
from tests.tool_calls import invalid_history


class Run(NamedTuple):
    code: str


class Say(NamedTuple):
    words: list[str]


class Step(NamedTuple):
    way: str
    far: int


Act = Run | Say | Step
RUN = Function[Act](
    "run",
    "Runs code.",
    arguments_schema(code={"type": "string"}),
    lambda given: Run(str(given["code"])),
    lambda act: {"code": act.code} if isinstance(act, Run) else None,
)
SAY = Function[Act](
    "say",
    "Says words.",
    arguments_schema(words={"type": "array", "items": {"type": "string"}}),
    lambda given: Say(given["words"]),  # type: ignore[arg-type]
    lambda act: {"words": list(act.words)} if isinstance(act, Say) else None,
)
STEP = Function[Act](
    "step",
    "Goes.",
    arguments_schema(way={"type": "string", "enum": ["up", "down"]}, far={"type": "integer"}),
    lambda given: Step(str(given["way"]), int(given["far"])),  # type: ignore[arg-type]
    lambda act: {"way": act.way, "far": act.far} if isinstance(act, Step) else None,
)
FIRST = Toolset[Act]((RUN, SAY, STEP))
ALL = Toolset[Act]((RUN, SAY, STEP), several="in order")


def calls(*texts: tuple[str, str]) -> Action:
    listed = tuple(ToolCall(id=f"c{n}", name=name, arguments=text) for n, (name, text) in enumerate(texts))
    return Action(content="", tool_calls=listed)


def read_one(name: str, arguments: str, *, strict: bool = True, toolset: Toolset[Act] = FIRST) -> object:
    return CallReader(toolset, strict=strict).read(calls((name, arguments))).actions[0]


def test_a_declaration_is_a_closed_object_that_requires_every_argument() -> None:
    assert STEP.tool().model_dump() == {
        "name": "step",
        "description": "Goes.",
        "parameters": {
            "type": "object",
            "properties": {"way": {"type": "string", "enum": ["up", "down"]}, "far": {"type": "integer"}},
            "required": ["way", "far"],
            "additionalProperties": False,
        },
    }


@pytest.mark.parametrize(
    ("name", "arguments", "action"),
    [
        ("run", '{"code": "ls"}', Run("ls")),
        ("run", '{"code": 5}', Run("5")),
        ("run", '{"code": 1.5}', Run("1.5")),
        ("run", '{"code": "\\ud800"}', Run("?")),
        ("say", '{"words": ["a", "b"]}', Say(["a", "b"])),
        ("say", '{"words": "a"}', Say(["a"])),
        ("say", '{"words": [1]}', Say(["1"])),
        ("step", '{"way": "up", "far": 3}', Step("up", 3)),
        ("step", '{"way": "up", "far": "3"}', Step("up", 3)),
        ("run", '{"code": "ls", "why": "x"}', Run("ls")),
        ("run", '{"why": "x", "code": "ls"}', Run("ls")),
        ("run", '"{\\"code\\": \\"ls\\"}"', Run("ls")),
        ("run", "{'code': 'ls'}", Run("ls")),
        ("run", '```json\n{"code": "ls"}\n```', Run("ls")),
        ("run", '{"code": "ls\npwd"}', Run("ls\npwd")),
    ],
)
def test_arguments_are_read_by_their_schema(name: str, arguments: str, action: Act) -> None:
    assert read_one(name, arguments) == action


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("run", '{"code": "', "no JSON"),
        ("run", "", "code is missing"),
        ("run", "[]", "no JSON object"),
        ("run", '"[]"', "no JSON object"),
        ("run", "{}", "code is missing"),
        ("run", '{"command": "ls"}', "code is missing, there is no argument 'command'"),
        ("run", '{"code": null}', "code must be of type string"),
        ("run", '{"code": true}', "code must be of type string"),
        ("run", '{"code": ["ls"]}', "code must be of type string"),
        ("run", '{"code": "' + "x" * 65_537 + '"}', "code is longer than 64 KiB"),
        ("run", "[" * 100_000, "no JSON"),
        ("say", '{"words": [null]}', "words[0] must be of type string"),
        ("step", '{"way": "left", "far": 1}', "way must be one of up, down"),
        ("step", '{"way": "up", "far": true}', "far must be of type integer"),
        ("step", '{"way": "up", "far": 1.5}', "far must be of type integer"),
    ],
)
def test_bad_arguments_are_told_with_the_arguments_there_are(name: str, arguments: str, told: str) -> None:
    read = read_one(name, arguments)
    assert isinstance(read, UnreadableCall)
    assert (read.kind, told in read.why) == ("bad_arguments", True)
    assert "They are: " in read.why


NAMED = Toolset[Act]((replace(RUN, by_name=True),))
NEEDLESS = Toolset[Act]((replace(RUN, needs_none=True, read=lambda given: Say([*given])),))
ONLY = Toolset[Act]((RUN,), any_name=True)


@pytest.mark.parametrize(
    ("toolset", "name", "arguments", "lenient", "strict"),
    [
        (FIRST, "run", '{"command": "ls"}', Run("ls"), None),
        (FIRST, "run", '{"a": "ls", "code": "x"}', Run("ls"), Run("x")),
        (FIRST, "run", "{}", None, None),
        (FIRST, "step", '{"way": "up"}', None, None),
        (FIRST, "step", '{"why": "so", "way": "up", "far": 1}', Step("up", 1), Step("up", 1)),
        (NAMED, "run", '{"command": "ls"}', None, None),
        (NAMED, "run", '{"a": "ls", "code": "x"}', Run("x"), Run("x")),
        (NEEDLESS, "run", "{}", Say([]), Say([])),
        (NEEDLESS, "run", '{"code": "x"}', Say(["code"]), Say(["code"])),
        (ONLY, "rum", '{"code": "ls"}', Run("ls"), None),
        (FIRST, "run", '"{\\"code\\": 1}"', None, Run("1")),
        (FIRST, "run", "{'code': 'ls'}", None, Run("ls")),
        (FIRST, "run", '{"code": "ls\npwd"}', None, Run("ls\npwd")),
        (FIRST, "run", "", None, None),
        (FIRST, "run", "say {}", None, None),
    ],
)
def test_a_session_that_is_not_strict_takes_json_alone_and_the_first_argument_for_a_single_parameter(
    toolset: Toolset[Act], name: str, arguments: str, lenient: Act | None, strict: Act | None
) -> None:
    for is_strict, action in ((False, lenient), (True, strict)):
        read = read_one(name, arguments, strict=is_strict, toolset=toolset)
        assert isinstance(read, UnreadableCall) if action is None else read == action


@pytest.mark.parametrize("strict", [True, False])
def test_arguments_that_are_not_declared_are_counted(strict: bool) -> None:
    reader = CallReader(FIRST, strict=strict)
    reader.read(calls(("run", '{"code": "ls", "why": "x"}')))
    reader.read(calls(("run", "{")))
    assert reader.metrics()["extra_arguments"] == 1.0


def test_an_unknown_function_is_told() -> None:
    why = "Invalid function call: there is no function 'rum'. There are: run, say, step."
    assert read_one("rum", "{}") == UnreadableCall(why, "unknown_function")


def test_only_the_first_call_is_executed_and_every_call_is_answered() -> None:
    reader = CallReader(FIRST, strict=True)
    reply = calls(("run", '{"code": "a"}'), ("run", '{"code": "b"}'))
    parsed = reader.read(reply)
    assert parsed.actions == (Run("a"),)
    answered = parsed.answered(["done"])
    assert [(each.role, each.tool_call_id, each.content) for each in answered] == [
        ("tool", "c0", "done"),
        ("tool", "c1", NOT_EXECUTED),
    ]
    assert invalid_history([Message(role="user", content="go"), reply.message(), *answered]) is None
    counted = {"extra_calls": 1, "calls": 2}
    assert {name: count for name, count in reader.metrics().items() if count} == counted
    kinds = {"no_call", "bad_arguments", "unknown_function", "extra_arguments"}
    assert reader.metrics().keys() == kinds | counted.keys()


def test_all_calls_are_executed_where_a_toolset_says_in_order() -> None:
    parsed = CallReader(ALL, strict=True).read(
        calls(("run", '{"code": "a"}'), ("none", "{}"), ("say", '{"words": []}'))
    )
    assert [type(action) for action in parsed.actions] == [Run, UnreadableCall, Say]
    assert [each.tool_call_id for each in parsed.answered(["1", "2", "3"])] == ["c0", "c1", "c2"]


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ("", UnreadableCall),
        ('{"words": ["a"], "more": {"words": ["b"]}, "x', UnreadableCall),
        ('{"words": ["a"]}', Say),
    ],
)
def test_a_call_that_was_cut_at_the_limit_of_tokens_is_no_other_one(arguments: str, read: type[object]) -> None:
    done = replace(SAY, needs_none=True, read=lambda given: Say([str(word) for word in given.values()]))
    reader = CallReader(Toolset[Act]((done,)), strict=True)
    (action,) = reader.read(calls(("say", arguments)).model_copy(update={"cut": True})).actions
    assert isinstance(action, read)
    assert reader.metrics()["bad_arguments"] == (read is UnreadableCall)


def test_a_reply_without_a_call_is_answered_by_a_users_message() -> None:
    reader = CallReader(FIRST, strict=False)
    parsed = reader.read(Action(content="I think"))
    (action,) = parsed.actions
    assert isinstance(action, UnreadableCall)
    assert [(each.role, each.content) for each in parsed.answered([action.why])] == [
        ("user", "Your reply calls no function. Call one of: run, say, step.")
    ]
    assert reader.metrics()["no_call"] == 1


def test_a_toolset_may_read_an_action_in_a_reply_without_calls() -> None:
    toolset = Toolset[Act]((RUN,), without_call=lambda text: Say([text]) if text.startswith("Final") else None)
    reader = CallReader(toolset, strict=True)
    assert reader.read(Action(content="Final #1")).actions == (Say(["Final #1"]),)
    assert (reader.metrics()["no_call"], reader.limit_reason()) == (0, FinishReason.TURN_LIMIT)


def limit_after(*replies: Action, strict: bool = True) -> FinishReason:
    reader = CallReader(FIRST, strict=strict)
    for reply in replies:
        reader.read(reply)
    return reader.limit_reason()


def test_the_reason_at_the_limit_says_what_was_wrong_with_most_replies() -> None:
    words, unknown, broken = Action(content="hm"), calls(("rum", "{}")), calls(("run", "{"))
    assert limit_after(words, words) is FinishReason.INVALID_FORMAT
    assert limit_after(words, broken, unknown) is FinishReason.INVALID_FORMAT
    assert limit_after(words, unknown) is FinishReason.INVALID_ACTION
    assert limit_after(words, words, calls(("run", '{"code": "a"}'))) is FinishReason.TURN_LIMIT
    assert limit_after(words, words, strict=False) is FinishReason.TURN_LIMIT
    assert limit_after() is FinishReason.TURN_LIMIT


def test_a_text_reader_reads_the_text_alone() -> None:
    reader: ReplyReader[Act] = TextReader(Run)
    parsed = reader.read(Action(content="ls", tool_calls=calls(("run", "{}")).tool_calls))
    assert parsed.actions == (Run("ls"),)
    assert parsed.answered(["done"]) == (Message(role="user", content="done"),)
    assert (reader.tools, reader.metrics(), reader.limit_reason()) == ((), {}, FinishReason.TURN_LIMIT)


def test_a_policy_for_text_plays_tools() -> None:
    seen: list[list[tuple[str, str]]] = []

    def policy(_: str, transcript: Sequence[Message]) -> Action:
        seen.append([(each.role, each.content) for each in transcript])
        return Action(content="RUN ls" if len(seen) < 3 else "I give up")

    def parse(text: str) -> Act:
        return Run(text.removeprefix("RUN ")) if text.startswith("RUN ") else Say([text])

    act = in_tools(
        policy, parse, lambda action: f"RUN {action.code}" if isinstance(action, Run) else "?", Toolset((RUN,))
    )
    transcript = [Message(role="system", content="s"), Message(role="user", content="u")]
    for _ in range(2):
        action = act("main", transcript)
        transcript += [action.message(), Message(role="tool", content="out", tool_call_id=action.tool_calls[0].id)]
    assert [call.id for each in transcript for call in each.tool_calls] == ["call00001", "call00002"]
    assert invalid_history(transcript) is None
    unreadable = calls(("run", "{")).message()
    answer = Message(role="tool", content="what?", tool_call_id="c0")
    assert act("main", [*transcript, unreadable, answer]) == Action(content="I give up")
    assert seen.pop()[-2:] == [("assistant", ""), ("user", "what?")], "a call that can't be read stays as it is"
    assert act("main", transcript) == Action(content="I give up")
    assert seen[-1] == [("system", "s"), ("user", "u"), *[("assistant", "RUN ls"), ("user", "out")] * 2]


@pytest.mark.thorough
@given(
    st.text(max_size=40), st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists)
)
def test_any_arguments_are_an_action_or_told(name: str, value: object) -> None:
    for text in (json.dumps({name: value}), json.dumps({"code": value}), json.dumps(value), name):
        for function in ("run", "say", "step"):
            for strict in (True, False):
                read = read_one(function, text, strict=strict)
                assert isinstance(read, Run | Say | Step | UnreadableCall)
