"""What a person types, as an action."""

import json

import pytest

from eval_client.cli.terminal import UnreadableInput, parse_answer
from proctor.tools.functions import arguments_schema
from proctor.types import Tool

TEXT = {"type": "string"}
RUN = Tool(name="run", parameters=arguments_schema(command=TEXT))
RUN_ALL = Tool(name="run_all", parameters=arguments_schema(commands={"type": "array"}, times={"type": "integer"}))
COUNT = Tool(name="count", parameters=arguments_schema(times={"type": "integer"}))
LEAVE = Tool(name="leave", parameters={"type": "object", "properties": {}})
TOOLS = (RUN, RUN_ALL, COUNT, LEAVE)


def calls(text: str) -> list[tuple[str, object]]:
    return [(call.name, json.loads(call.arguments)) for call in parse_answer(text, TOOLS, 3).tool_calls]


def test_without_functions_the_text_is_the_answer_as_it_is() -> None:
    assert parse_answer("  leave {}\n\nx ", (), 1).content == "  leave {}\n\nx "


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ('run {"command": "ls"}', [("run", {"command": "ls"})]),
        ('run{"command": "a"}\nleave', [("run", {"command": "a"}), ("leave", {})]),
        ("run ls -l /etc\npwd", [("run", {"command": "ls -l /etc\npwd"})]),
        ('run_all {"commands": ["a"],\n"times": 2}', [("run_all", {"commands": ["a"], "times": 2})]),
        ("leave", [("leave", {})]),
    ],
)
def test_a_function_is_named_with_its_arguments(text: str, called: list[tuple[str, object]]) -> None:
    assert calls(text) == called


def test_calls_of_a_session_have_ids_of_their_own() -> None:
    ids = {call.id for turn in (1, 2) for call in parse_answer("leave\nleave", TOOLS, turn).tool_calls}
    assert len(ids) == 4


def test_words_alone_call_nothing() -> None:
    action = parse_answer("> leave it", TOOLS, 1)
    assert (action.content, action.tool_calls) == ("leave it", ())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("go", "there are: run, run_all, count, leave"),
        ("run {", "no JSON object"),
        ("run_all a", "as a JSON object"),
        (" ", "name a function"),
        ("count 5", "as a JSON object"),
    ],
)
def test_what_calls_no_function_says_how_to(text: str, told: str) -> None:
    with pytest.raises(UnreadableInput, match=told):
        parse_answer(text, TOOLS, 1)
