"""Social tasks in protocol `tools`: the functions, the requests, and what differs from protocol `text`."""

import json
from typing import Literal

import pytest
from pydantic import JsonValue

from environments.stss.agent.forms import toolset
from environments.stss.environment import Stss
from environments.stss.prompt import ANSWERS, NAMES
from environments.stss.reply import Day, Encounter, Note, PerformerReply, Review, fields_of, fitted
from proctor.environment import Agent
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.tools import NO_PUBLISHED_FUNCTIONS
from proctor.tools.readers import NOT_EXECUTED
from proctor.types import Action, Finish, FinishReason
from tests.random_calls import fuzz
from tests.tool_calls import CallingAgent, call, calls, replying, sessions_in_text

TEXT, TOOLS = Stss(), Stss(protocol="tools")
SAMPLE = "fernmouth_birthday"
PLAN = {"plan": ["Be there.", "Ask.", "Go."]}


async def played(environment: Stss, agent: Agent, sample: str = SAMPLE) -> Finish:
    return await play_to_finish(environment, sample, agent)


def parameters(kind: type[PerformerReply]) -> dict[str, JsonValue]:
    (tool,) = toolset(kind).tools()
    return tool.parameters


def test_every_kind_of_request_has_a_function_and_a_form_in_text() -> None:
    assert [tool.name for tool in toolset(*NAMES).tools()] == [
        *("plan", "remind", "day", "encounter", "say", "note", "review")
    ]
    assert set(NAMES) == set(ANSWERS)
    assert all(tool.description for tool in toolset(*NAMES).tools())


def test_parameters_are_the_schema_of_the_form_without_references() -> None:
    text = {"type": "string"}
    row = dict.fromkeys(("start", "end", "activity"), text)
    planned = {
        "type": "object",
        "properties": row | {name: {"anyOf": [text, {"type": "null"}]} for name in ("place", "object")},
        "required": ["start", "end", "activity", "place"],
    }
    assert parameters(Day) == {
        "type": "object",
        "properties": {
            "wake": text,
            "bed": text,
            "schedule": {"type": "array", "items": planned, "minItems": 4, "maxItems": 14},
        },
        "required": ["wake", "bed", "schedule"],
    }
    assert parameters(Encounter)["required"] == ["talk"]
    assert "required" not in parameters(Note)
    for tool in toolset(*NAMES).tools():
        assert "$" not in json.dumps(tool.parameters)


async def test_each_request_offers_its_function_alone_and_the_next_one_is_the_result_of_the_call() -> None:
    agent = CallingAgent(TOOLS.reference(SAMPLE))
    finish = await played(TOOLS, agent)
    assert finish.score == 1
    codes = {"plan": "T1", "remind": "T2", "day": "D", "encounter": "E", "say": "U", "note": "N", "review": "R"}
    for observation in agent.seen:
        (tool,) = observation.tools
        assert f"Request {codes[tool.name]}." in observation.messages[-1].content
        assert f"Call `{tool.name}`." in observation.messages[-1].content
        assert "Answer:" not in observation.messages[-1].content
        roles = [message.role for message in observation.messages]
        assert roles == (["system", "user"] if observation.fresh else ["tool"])
    assert {tool.name for observation in agent.seen for tool in observation.tools} >= {*codes} - {"say"}
    rules = agent.seen[0].messages[0].content
    assert ("JSON" in rules, "calling the function" in rules) == (False, True)


@pytest.mark.thorough
@pytest.mark.parametrize(("level", "kind"), [("language", "reference"), ("language", "naive"), ("action", "naive")])
async def test_scripted_performers_do_the_same_in_both_protocols(
    level: Literal["action", "language"], kind: str
) -> None:
    """For the reference's two days see acceptance/test_tools_protocol.py, line 3."""
    text, tools = Stss(level=level), Stss(level=level, protocol="tools")
    for sample in text.samples():
        one = await played(text, PolicyAgent(getattr(text, kind)(sample)), sample)
        other = await played(tools, PolicyAgent(getattr(tools, kind)(sample)), sample)
        assert (other.reason, other.score, other.detail) == (one.reason, one.score, one.detail)
        assert one.metrics.items() <= other.metrics.items()


async def test_the_random_performer_plays_in_both_protocols() -> None:
    finish = await played(TOOLS, PolicyAgent(TOOLS.random(SAMPLE, 1)))
    assert (finish.reason, finish.metrics["format_errors"]) == (FinishReason.COMPLETED, 0)


async def test_what_is_seen_in_text_is_as_it_was() -> None:
    assert await sessions_in_text(TEXT, [SAMPLE]) == "3b3e8e5db0b2a8ee"
    assert await sessions_in_text(Stss(level="language"), [SAMPLE]) == "b64f1ef81ad1a888"


def test_only_protocol_tools_changes_the_digest() -> None:
    assert TEXT.digest() == "afc596a082f84ac2f3d15403f1d05bde"
    assert Stss(profile="compat").digest() == "fd01947ae5c04d82ff81d615ef216c0f"
    assert Stss(level="language").digest() == "2e140e8ba31c03562463c09036ccde43"
    assert TOOLS.digest() != TEXT.digest()
    assert TOOLS.not_comparable_because() == NO_PUBLISHED_FUNCTIONS
    assert TEXT.not_comparable_because() not in (None, NO_PUBLISHED_FUNCTIONS)


@pytest.mark.parametrize(
    ("reply", "told", "reason"),
    [
        (Action(content=json.dumps(PLAN)), "Your reply calls no function.", FinishReason.INVALID_FORMAT),
        (calls(("plan", '{"plan": ["a')), "not JSON", FinishReason.INVALID_FORMAT),
        (calls(("plan", "[]")), "no JSON object", FinishReason.INVALID_FORMAT),
        (calls(("plan", "[" * 50_001)), "more than 50000 characters", FinishReason.INVALID_FORMAT),
        (call("plan"), "plan: ", FinishReason.INVALID_ACTION),
        (call("plan", plan=["a", "b"]), "plan: ", FinishReason.INVALID_ACTION),
        (call("t1", **PLAN), "there is no function 't1'. There are: plan.", FinishReason.INVALID_ACTION),
        (call("remind", **PLAN), "there is no function 'remind'. There are: plan.", FinishReason.INVALID_ACTION),
    ],
)
async def test_an_unreadable_reply_is_told_and_counted(reply: Action, told: str, reason: FinishReason) -> None:
    agent = replying(reply)
    finish = await played(Stss(protocol="tools", calls=2), agent)
    (message,) = agent.seen[1].messages
    assert told in message.content
    assert message.role == ("tool" if reply.tool_calls else "user")
    assert (finish.reason, finish.score, finish.metrics["calls"]) == (reason, 0, 2)
    unknown = "there is no function" in told
    assert finish.metrics["action_errors" if unknown else "format_errors"] == 2
    assert finish.metrics[("unknown_function" if unknown else "bad_arguments") if reply.tool_calls else "no_call"] == 2


async def test_a_performer_that_never_answers_readably_ends_as_in_text_when_its_days_are_over() -> None:
    for reply, reason in (
        (Action(content=json.dumps(PLAN)), FinishReason.INVALID_FORMAT),
        (call("t1", **PLAN), FinishReason.INVALID_ACTION),
    ):
        finish = await played(TOOLS, replying(reply))
        assert (finish.reason, finish.score) == (reason, 0)


async def test_arguments_are_read_by_the_form_alone() -> None:
    spoken = fitted(fields_of('{"talk": true, "utterance": null, "mood": "\n"}'), Encounter)
    assert spoken == Encounter(talk=True)
    assert fitted(fields_of("{}"), Review) == Review()
    agent = replying(call("plan", **PLAN, why="more"), call("remind", schedule_reminder="x", checklist=[]))
    await played(TOOLS, agent)
    assert [tool.name for observation in agent.seen[:3] for tool in observation.tools] == ["plan", "remind", "day"]


async def test_what_is_not_allowed_is_the_result_of_the_call_and_is_asked_for_once_more() -> None:
    row = {"start": "08:00", "end": "09:00", "activity": "work", "place": "Atlantis"}
    day = call("day", wake="07:00", bed="23:00", schedule=[row] * 4)
    agent = replying(call("plan", **PLAN), call("remind", schedule_reminder="", checklist=[]), day)
    finish = await played(Stss(protocol="tools", calls=4), agent)
    (told,) = agent.seen[3].messages
    assert told.role == "tool"
    assert told.content.startswith("Your call can't be used: 'Atlantis' is no place you know")
    assert finish.metrics["action_errors"] == 2


async def test_of_several_calls_the_first_is_read_and_all_are_answered() -> None:
    reminder = {"schedule_reminder": "", "checklist": []}
    agent = replying(calls(("plan", PLAN), ("remind", reminder)), call("remind", **reminder))
    finish = await played(TOOLS, agent)
    request, extra = agent.seen[1].messages
    assert "Request T2." in request.content
    assert extra.content == NOT_EXECUTED
    assert finish.metrics["extra_calls"] == 1


async def test_a_session_out_of_replies_that_read_one_call_ends_at_its_limit() -> None:
    assert (
        await played(Stss(protocol="tools", calls=2), replying(call("plan", **PLAN)))
    ).reason is FinishReason.TURN_LIMIT
    assert (await played(Stss(calls=2), replying(Action(content="hm")))).reason is FinishReason.TURN_LIMIT


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(20))
async def test_random_calls_raise_nothing_and_play_no_reply_too_many(seed: int) -> None:
    environment = Stss(protocol="tools", profile="compat" if seed % 2 else "strict", level="action")
    _, turns = await fuzz(environment, SAMPLE, seed)
    assert turns <= 200
