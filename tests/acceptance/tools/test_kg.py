"""Protocol `tools` of the knowledge graph environment, by the numbers of its acceptance list.

Line 6, and line 22 in small, are tests/unit/environments/knowledge_graph/test_functions.py.
"""

import json

import pytest

from environments.knowledge_graph.environment import KnowledgeGraph
from environments.knowledge_graph.prompt import ROUNDS
from environments.knowledge_graph.tools import Profile
from eval_client.plan import differences
from proctor import registry
from proctor.config.task import TaskDefinition
from proctor.conformance.check import check
from proctor.environment import PolicyAgent, play_to_finish
from proctor.tools import Protocol
from proctor.types import Action, FinishReason
from tests.support import SHARED_DATA
from tests.tool_calls import CallingAgent, calls, replying

PROFILES: tuple[Profile, ...] = ("compat", "strict")
PROTOCOLS: tuple[Protocol, ...] = ("text", "tools")
DATA = SHARED_DATA / "kg"


def test_01_it_builds_with_either_protocol() -> None:
    for protocol in PROTOCOLS:
        assert registry.load("kg").model_validate({"protocol": protocol}).samples()


@pytest.mark.shared
async def test_02_the_functions_are_the_published_ones_but_for_their_descriptions() -> None:
    published = json.loads((SHARED_DATA / "interop" / "fc" / "tools.json").read_text(encoding="utf-8"))["kg"]
    agent = replying(Action(content="hm"))
    environment = KnowledgeGraph(profile="compat", protocol="tools")
    async with environment.lifespan():
        await play_to_finish(environment, "isles-01", agent)
    wanted = [_without_words(tool["function"]) for tool in published["tools"]]
    assert [_without_words(tool.model_dump()) for tool in agent.seen[0].tools] == wanted
    assert len(agent.seen) == published["rounds"]


def _without_words(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {key: _without_words(each) for key, each in value.items() if key != "description"}


@pytest.mark.shared
@pytest.mark.parametrize("profile", PROFILES)
async def test_03_the_reference_finishes_alike_in_both_protocols_on_all_published_samples(profile: Profile) -> None:
    """The shipped samples are in the unit tests. In `compat` two samples can't be solved, and stop at the limit."""
    found = []
    for protocol in PROTOCOLS:
        environment = KnowledgeGraph(
            data=DATA / "dev.json", graph=DATA / "mini_dev.nq", profile=profile, protocol=protocol
        )
        async with environment.lifespan():
            for sample in environment.samples():
                policy = environment.reference(sample)
                agent = PolicyAgent(policy) if protocol == "text" else CallingAgent(policy)
                finish = await play_to_finish(environment, sample, agent)
                found.append((finish.score, finish.metrics["EM"], finish.reason, finish.metrics["rounds"]))
    assert found[:20] == found[20:]
    assert sum(exact for _, exact, *_ in found[20:]) == (18 if profile == "compat" else 20)


@pytest.mark.parametrize("profile", PROFILES)
async def test_04_every_requirement_is_met(profile: Profile) -> None:
    results = [result async for result in check(KnowledgeGraph(profile=profile, protocol="tools"))]
    assert [f"{result.name}: {result.detail}" for result in results if result.state != "ok"] == []
    assert len(results) > 10


def test_05_digest_and_shape_differ_between_the_protocols() -> None:
    assert KnowledgeGraph().digest() == KnowledgeGraph(protocol="text").digest() != _tools().digest()
    before, after = (
        TaskDefinition(name="kg", environment="kg", parameters={"protocol": protocol}).shape() for protocol in PROTOCOLS
    )
    (line,) = differences(before, after)
    assert "protocol" in line


async def test_20_replies_without_calls_are_an_invalid_format_and_unknown_functions_an_invalid_action() -> None:
    for reply, reason, metric in (
        (Action(content="I would rather talk."), FinishReason.INVALID_FORMAT, "no_call"),
        (calls(("talk", {})), FinishReason.INVALID_ACTION, "unknown_function"),
    ):
        environment = _tools()
        async with environment.lifespan():
            finish = await play_to_finish(environment, "isles-01", replying(reply))
        assert (finish.reason, finish.score, finish.metrics[metric]) == (reason, 0.0, ROUNDS)


def _tools() -> KnowledgeGraph:
    return KnowledgeGraph(protocol="tools")
