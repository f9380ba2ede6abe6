"""Protocol `tools`: the function, how a session reads calls, and what the environment refuses."""

import json

import pytest

from environments.mind2web.functions import TOOLSET
from environments.mind2web.reply import StepReply, read, written
from proctor.tools import UnreadableCall
from proctor.tools.readers import CallReader
from tests.tool_calls import calls

(CHOOSE,) = TOOLSET.functions


def one(text: str) -> StepReply | UnreadableCall:
    return CallReader(TOOLSET, strict=True).read(calls(("choose", text))).actions[0]


@pytest.mark.parametrize(
    ("arguments", "reply", "text"),
    [
        ({"answer": "A"}, StepReply("A", " ", True), "Answer: A."),
        ({"answer": "C", "action": "CLICK"}, StepReply("C", "CLICK ", True), "Answer: C.\nAction: CLICK"),
        (
            {"answer": "F", "action": "TYPE", "value": "March 5"},
            StepReply("F", "TYPE March 5", True),
            "Answer: F.\nAction: TYPE\nValue: March 5",
        ),
    ],
)
def test_a_call_is_the_answer_that_its_text_is(arguments: dict[str, str], reply: StepReply, text: str) -> None:
    assert one(json.dumps(arguments)) == reply == read(text)
    assert CHOOSE.write(reply) == arguments
    assert written(reply) == text


def test_values_are_stripped_cut_and_may_be_numbers() -> None:
    assert one('{"answer": "B", "action": "TYPE", "value": "  5 \\n"}') == StepReply("B", "TYPE 5", True)
    assert one('{"answer": "B", "action": "TYPE", "value": 5}') == StepReply("B", "TYPE 5", True)
    assert one(json.dumps({"answer": "B", "value": "x" * 3_000})) == StepReply("B", " " + "x" * 2_000, True)


@pytest.mark.parametrize(
    "text", ['{"answer": "G"}', '{"answer": "b"}', '{"action": "CLICK"}', '{"answer": "B", "action": "click"}', "{"]
)
def test_other_letters_and_actions_are_unreadable(text: str) -> None:
    assert isinstance(one(text), UnreadableCall)


def test_a_reply_without_an_answer_is_no_call() -> None:
    assert CHOOSE.write(read("What a page.")) is None
