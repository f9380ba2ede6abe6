"""Protocol `tools` of ALFWorld, by the numbers of its acceptance list.

Line 6, and line 22 in small, are tests/unit/environments/alfworld/test_functions.py.
"""

import json

import pytest

from environments.alfworld.environment import ALFWorld
from environments.alfworld.reply import Profile
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
DATA = SHARED_DATA / "alfworld"


def test_01_it_builds_with_either_protocol() -> None:
    for protocol in PROTOCOLS:
        assert registry.load("alfworld").model_validate({"protocol": protocol}).samples()


@pytest.mark.shared
async def test_02_the_function_is_the_published_one_but_for_its_descriptions() -> None:
    published = json.loads((SHARED_DATA / "interop" / "fc" / "tools.json").read_text(encoding="utf-8"))["alfworld"]
    for profile in PROFILES:
        agent = replying(Action(content="hm"))
        await play_to_finish(ALFWorld(profile=profile, protocol="tools"), "own-00000", agent)
        wanted = [_without_words(tool["function"]) for tool in published["tools"]]
        assert [_without_words(tool.model_dump()) for tool in agent.seen[0].tools] == wanted
        assert len(agent.seen) == published["rounds"]


def _without_words(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {key: _without_words(each) for key, each in value.items() if key != "description"}


@pytest.mark.shared
async def test_03_the_reference_wins_all_published_games_in_both_protocols() -> None:
    """The shipped games are in the unit tests."""
    for protocol in PROTOCOLS:
        environment = ALFWorld(data=DATA, plans=DATA / "walkthroughs.json", protocol=protocol)
        for sample in environment.samples():
            policy = environment.reference(sample)
            agent = PolicyAgent(policy) if protocol == "text" else CallingAgent(policy)
            finish = await play_to_finish(environment, sample, agent)
            assert (finish.reason, finish.score) == (FinishReason.COMPLETED, 1.0)
        assert len(environment.samples()) == 50


@pytest.mark.parametrize("profile", PROFILES)
async def test_04_every_requirement_is_met(profile: Profile) -> None:
    results = [result async for result in check(ALFWorld(profile=profile, protocol="tools"))]
    assert [f"{result.name}: {result.detail}" for result in results if result.state != "ok"] == []
    assert len(results) > 10


def test_05_digest_and_shape_differ_between_the_protocols() -> None:
    assert ALFWorld().digest() == ALFWorld(protocol="text").digest() != ALFWorld(protocol="tools").digest()
    before, after = (
        TaskDefinition(name="house", environment="alfworld", parameters={"protocol": protocol}).shape()
        for protocol in PROTOCOLS
    )
    (line,) = differences(before, after)
    assert "protocol" in line


async def test_20_replies_without_calls_are_an_invalid_format_and_unknown_functions_an_invalid_action() -> None:
    for reply, reason, metric in (
        (Action(content="I will tidy up."), FinishReason.INVALID_FORMAT, "no_call"),
        (calls(("tidy_up", {})), FinishReason.INVALID_ACTION, "unknown_function"),
    ):
        environment = ALFWorld(profile="strict", protocol="tools")
        finish = await play_to_finish(environment, "own-00000", replying(reply))
        assert (finish.reason, finish.score, finish.metrics[metric]) == (reason, 0.0, 20)
