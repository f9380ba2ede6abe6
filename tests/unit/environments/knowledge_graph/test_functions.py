"""Replies and calls: what functions there are, how names are read, and how a session with calls goes."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from environments.knowledge_graph import prompt
from environments.knowledge_graph.environment import KnowledgeGraph
from environments.knowledge_graph.functions import toolset
from environments.knowledge_graph.prompt import before_calls
from environments.knowledge_graph.reply import (
    MAX_ARGUMENTS,
    MAX_CALLS,
    FinalAnswer,
    LooseAnswer,
    NoAction,
    ToolRequests,
    read,
    shorten,
)
from environments.knowledge_graph.tools import Profile
from proctor.environment import Agent
from proctor.session.play import play_to_finish
from proctor.types import Action, Finish, FinishReason
from tests.tool_calls import CallingAgent, Reply, calls, invalid_history, replying

PROFILES: Sequence[Profile] = ("compat", "strict")
RELATIONS = ("get_relations", {"variable": "Fenholm"})
HOP = ("get_neighbors", {"variable": "m.isle_006", "relation": "isles.island.lighthouses"})


def text(content: str) -> Action:
    return Action(content=content)


async def play(*replies: Reply, profile: Profile = "strict") -> tuple[Finish, CallingAgent]:
    agent = replying(*replies)
    return await play_with(agent, KnowledgeGraph(profile=profile, protocol="tools")), agent


async def play_with(agent: Agent, environment: KnowledgeGraph, sample: str = "isles-01") -> Finish:
    async with environment.lifespan():
        return await play_to_finish(environment, sample, agent)


def test_every_function_reads_what_it_writes() -> None:
    lines = (
        *("get_relations(#0)", "get_neighbors(Fenholm, a.b)", "intersection(#0, #1)", "get_attributes(#0)"),
        *("argmax(#0, a.b)", "argmin(#0, a.b)", "count(#0)"),
    )
    for line, function in zip(lines, toolset("strict").functions, strict=False):
        arguments = function.write(read(f"Action: {line}"))
        assert arguments is not None
        assert function.read(arguments) == read(f"Action: {line}")
    answer = toolset("strict").functions[-1]
    assert answer.read({"variable": "#3"}) == answer.read({"variable": " 3"}) == FinalAnswer("3")
    assert answer.write(FinalAnswer("3")) == {"variable": "#3"}
    wrong = ("exit(#0)", "count(#0, #1)", "count(")
    for action in (NoAction(), *(read(f"Action: {line}") for line in wrong)):
        assert [function.write(action) for function in toolset("strict").functions] == [None] * 8


@pytest.mark.parametrize("profile", PROFILES)
def test_the_worked_example_is_one_that_endpoints_take_and_uses_no_variable_before_it_is_made(profile: Profile) -> None:
    system, *example = before_calls(profile)
    assert system.role == "system"
    assert ("function answer" in system.content) == (profile == "strict")
    assert invalid_history((system, *example)) is None
    made = 0
    for message in example:
        for call in message.tool_calls:
            assert call.name in system.content or call.name in {tool.name for tool in toolset("compat").tools()}
            used = [value for value in json.loads(call.arguments).values() if value.startswith("#")]
            assert all(int(value[1:]) < made for value in used)
        made += message.content.startswith("Observation: variable #")
    assert [len(message.tool_calls) for message in example if message.role == "assistant"] == [1] * 7 + [0]
    assert example[-1].content.endswith(f"\nFinal Answer: #{made - 1}")
    assert not any("Action:" in message.content for message in example)


async def test_a_final_answer_beside_calls_is_not_read() -> None:
    replies = (calls(RELATIONS, HOP, content="Final Answer: #0"), text("Final Answer: #0\nObservation: #7"))
    finish, agent = await play(*replies)
    assert (finish.reason, len(agent.seen)) == (FinishReason.COMPLETED, 2)


def test_the_digest_holds_instruction_example_and_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = [KnowledgeGraph(profile=profile, protocol="tools").digest() for profile in PROFILES]
    texts: Sequence[JsonValue] = [message.model_dump(mode="json") for message in before_calls("strict")]
    assert '"example00"' in json.dumps(texts)
    monkeypatch.setattr(prompt, "before_calls", lambda profile: before_calls(profile)[:-1])
    digests.append(KnowledgeGraph(protocol="tools").digest())
    monkeypatch.undo()
    fewer = toolset("compat")
    monkeypatch.setattr("environments.knowledge_graph.environment.toolset", lambda profile: fewer)
    digests.append(KnowledgeGraph(protocol="tools").digest())
    assert len({*digests, KnowledgeGraph().digest()}) == 5


NAMES = ("Bell", "Bell & Sons", "Bell, Sons (and daughters)", "")


@given(st.text(), st.booleans())
def test_any_reply_is_read(reply: str, strict: bool) -> None:
    assert isinstance(read(shorten(reply), NAMES, strict), FinalAnswer | LooseAnswer | ToolRequests | NoAction)


@given(st.text(alphabet="(),# 'ab"), st.booleans())
def test_any_line_of_an_action_is_read(text: str, strict: bool) -> None:
    found = read("Action: " + text, NAMES, strict)
    assert isinstance(found, ToolRequests)
    assert all(call.written.startswith(f"{call.function}(") for call in found.calls)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 200_000,
        "a(" * 100_000,
        "(" * 200_000,
        "Action" * 40_000,
        "a(b," * 50_000,
        "a(b," * 50_000 + ")",
        "#" * 200_000,
    ],
)
def test_a_long_line_is_read_only_in_part(text: str) -> None:
    for names in ((), NAMES):
        found = read(f"Action: {text}", names)
        assert isinstance(found, ToolRequests)
        assert len(found.calls) <= MAX_CALLS
        assert all(len(call.arguments or ()) <= MAX_ARGUMENTS for call in found.calls)


@pytest.mark.parametrize(
    "text", ["final answer:" * 20_000, "final answer" + " " * 200_000, "final answer:" + "*" * 200_000]
)
def test_a_long_reply_without_an_answer_is_read_quickly(text: str) -> None:
    assert read(text) == NoAction()
