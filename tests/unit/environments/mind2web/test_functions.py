"""Protocol `tools`: the function, how a session reads calls, and what the environment refuses."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from environments.mind2web import prompt
from environments.mind2web.environment import Mind2Web
from environments.mind2web.functions import TOOLSET
from environments.mind2web.reply import StepReply, read, written
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.tools import NO_PUBLISHED_FUNCTIONS, UnreadableCall
from proctor.tools.readers import CallReader
from proctor.types import Action, FinishReason
from tests.tool_calls import call, calls, replying

(CHOOSE,) = TOOLSET.functions


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Mind2Web:
    return Mind2Web(cache=tmp_path_factory.mktemp("cache"), protocol="tools")


@pytest.fixture(scope="module")
def sample(tools: Mind2Web) -> str:
    """A step with three questions for those who always choose."""
    return next(
        name for name in tools.samples() if len(tools.contest(name).line()) == 10 and tools.contest(name).positives
    )


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


async def test_each_question_is_a_conversation_of_instruction_and_question(tools: Mind2Web, sample: str) -> None:
    agent = replying(call("choose", answer="B", action="CLICK"))
    finish = await play_to_finish(tools, sample, agent)
    assert len(agent.seen) == 3
    for observation in agent.seen:
        assert observation.fresh
        assert observation.tools == TOOLSET.tools()
        instruction, question = observation.messages
        assert (instruction.role, instruction.content) == ("system", prompt.CALLS_INSTRUCTION)
        assert question.role == "user"
        assert question.content.startswith("'''\n<html")
    assert finish.reason is FinishReason.COMPLETED
    text = Mind2Web(cache=tools.cache)
    asked = replying(Action(content="Answer: B.\nAction: CLICK"))
    in_text = await play_to_finish(text, sample, asked)
    assert [each.messages[-1] for each in asked.seen] == [each.messages[-1] for each in agent.seen]
    assert (in_text.score, in_text.detail) == (finish.score, finish.detail)
    assert in_text.metrics == {name: finish.metrics[name] for name in in_text.metrics}


@pytest.mark.parametrize(
    ("replies", "reason", "counted"),
    [
        ([Action(content="Answer: B.")], FinishReason.INVALID_FORMAT, {"no_call": 2, "unparsed": 2}),
        ([calls(("choose", '{"answer": '))], FinishReason.INVALID_FORMAT, {"bad_arguments": 2, "unparsed": 2}),
        ([calls(("pick", '{"answer": "B"}'))], FinishReason.INVALID_FORMAT, {"unknown_function": 2, "unparsed": 2}),
        (
            [call("choose", answer="A"), Action(content="-")],
            FinishReason.INVALID_ACTION,
            {"no_call": 1, "unparsed": 1},
        ),
        (
            [calls(("choose", '{"answer": "A"}'), ("choose", '{"answer": "B"}'))],
            FinishReason.INVALID_ACTION,
            {"extra_calls": 2, "unparsed": 0},
        ),
    ],
)
async def test_what_can_t_be_read_chooses_nothing(
    tools: Mind2Web, sample: str, replies: list[Action], reason: FinishReason, counted: dict[str, float]
) -> None:
    finish = await play_to_finish(tools, sample, replying(*replies))
    assert (finish.reason, finish.score, finish.metrics["calls"]) == (reason, 0.0, 2)
    assert {name: finish.metrics[name] for name in counted} == counted


@pytest.mark.parametrize("kind", ["naive", "random"])
async def test_the_policies_answer_by_calls(tools: Mind2Web, sample: str, kind: str) -> None:
    finish = await play_to_finish(tools, sample, PolicyAgent(getattr(tools, kind)(sample, 1)), 1)
    in_text = Mind2Web(cache=tools.cache)
    assert finish.metrics["unparsed"] == 0
    same = await play_to_finish(in_text, sample, PolicyAgent(getattr(in_text, kind)(sample, 1)), 1)
    assert finish.detail == same.detail


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"examples": "x.json"}, "examples: the file's prompt is for protocol: text; leave one of the two out"),
        ({"prompt": "plain"}, "prompt: protocol: tools shows no solved examples; leave `prompt` out"),
    ],
)
def test_solved_examples_are_for_text(fields: dict[str, str], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Mind2Web.model_validate({"protocol": "tools", **fields})


def test_the_protocol_is_part_of_the_digest_and_text_is_as_before(tools: Mind2Web, tmp_path: Path) -> None:
    """The digests are those from before there was a protocol."""
    assert Mind2Web(cache=tools.cache, protocol="text").digest() == "4376aafc545bac846aa5ac28a73c3e86"
    assert Mind2Web(cache=tools.cache, profile="strict").digest() == "e46b36762bdf1028766b247664ef9b1d"
    assert Mind2Web(cache=tools.cache, prompt="plain").digest() == "7b7d0207665fcc4dba56c7bbe1ab65ad"
    assert tools.digest() not in ("4376aafc545bac846aa5ac28a73c3e86", "e46b36762bdf1028766b247664ef9b1d")
    assert tools.not_comparable_because() == NO_PUBLISHED_FUNCTIONS
