"""Protocol `tools`: which actions the calls are."""

import pytest

from environments.operating_system.functions import toolset
from environments.operating_system.reply import MAX_ANSWER_BYTES, Bash, Commit, Invalid
from proctor.tools import CallReader, UnreadableCall
from proctor.types import Action
from tests.tool_calls import call, calls


def read(action: Action, *, strict: bool) -> object:
    return CallReader(toolset(thought_answers=not strict), strict=strict).read(action).actions[0]


def test_calls_are_the_actions_of_text_replies() -> None:
    assert read(call("bash_action", script="ls"), strict=True) == Bash("ls")
    assert read(call("bash_action", command="ls"), strict=False) == Bash("ls")
    assert read(call("answer_action", answer="4"), strict=True) == Commit("4")
    assert read(calls(("answer_action", '{"answer": 4}')), strict=True) == Commit("4")
    assert read(call("answer_action", answer=""), strict=True) == Commit("")


def test_the_thought_of_finish_action_is_the_answer_in_compat_only() -> None:
    assert read(call("finish_action", thought="42"), strict=False) == Commit("42")
    assert read(call("finish_action", thought="42"), strict=True) == Commit(None)


def test_a_finish_without_arguments_ends_the_session_in_every_profile() -> None:
    for strict in (True, False):
        assert read(call("finish_action"), strict=strict) == Commit(None)
        assert isinstance(read(call("answer_action"), strict=strict), UnreadableCall)
    assert read(call("finish_action", reason="done"), strict=True) == Commit(None)


def test_arguments_beside_the_declared_one_are_no_fault() -> None:
    both = calls(("bash_action", '{"script": "ls", "thought": "I look."}'))
    assert [read(both, strict=strict) for strict in (True, False)] == [Bash("ls")] * 2
    turned = calls(("bash_action", '{"thought": "I look.", "script": "ls"}'))
    assert [read(turned, strict=strict) for strict in (True, False)] == [Bash("ls"), Bash("I look.")]


@pytest.mark.parametrize("name", ["answer_action", "finish_action"])
def test_an_answer_that_no_checker_can_get_is_invalid(name: str) -> None:
    argument = name.replace("answer_action", "answer").replace("finish_action", "thought")
    assert read(call(name, **{argument: "a\0b"}), strict=False) == Invalid("invalid_action")
    longest = "x" * MAX_ANSWER_BYTES
    assert read(call(name, **{argument: longest}), strict=False) == Commit(longest)
    assert not isinstance(read(call(name, **{argument: longest + "x"}), strict=False), Commit)
