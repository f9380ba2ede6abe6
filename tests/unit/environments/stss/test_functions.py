"""Social tasks in protocol `tools`: the functions, the requests, and what differs from protocol `text`."""

import json
from typing import Literal

import pytest
from pydantic import JsonValue

from environments.stss.agent.performer import toolset
from environments.stss.environment import Stss
from environments.stss.prompt import ANSWERS, NAMES
from environments.stss.reply import Encounter, Review, fields_of, fitted
from proctor.environment import Agent
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Finish
from tests.tool_calls import call, replying

TEXT, TOOLS = Stss(), Stss(protocol="tools")
SAMPLE = "fernmouth_birthday"
PLAN = {"plan": ["Be there.", "Ask.", "Go."]}


async def played(environment: Stss, agent: Agent, sample: str = SAMPLE) -> Finish:
    return await play_to_finish(environment, sample, agent)


def parameters(name: str) -> dict[str, JsonValue]:
    """The schema of the arguments of a function, for tables."""
    return next(tool.parameters for tool in toolset(*NAMES).tools() if tool.name == name)


def test_every_kind_of_request_has_a_function_and_a_form_in_text() -> None:
    assert [tool.name for tool in toolset(*NAMES).tools()] == [
        *("plan", "remind", "day", "encounter", "say", "note", "review")
    ]
    assert set(NAMES) == set(ANSWERS)
    assert all(tool.description for tool in toolset(*NAMES).tools())


def test_parameters_are_without_references() -> None:
    for tool in toolset(*NAMES).tools():
        assert "$" not in json.dumps(tool.parameters)


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


async def test_arguments_are_read_by_the_form_alone() -> None:
    spoken = fitted(fields_of('{"talk": true, "utterance": null, "mood": "\n"}'), Encounter)
    assert spoken == Encounter(talk=True)
    assert fitted(fields_of("{}"), Review) == Review()
    agent = replying(call("plan", **PLAN, why="more"), call("remind", schedule_reminder="x", checklist=[]))
    await played(TOOLS, agent)
    assert [tool.name for observation in agent.seen[:3] for tool in observation.tools] == ["plan", "remind", "day"]
