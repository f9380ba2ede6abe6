"""The puzzles in protocol `tools`: the function, the turns of a game, and what differs from protocol `text`."""

import json

import pytest

from environments.lateral_thinking.environment import LateralThinking
from environments.lateral_thinking.functions import toolset
from environments.lateral_thinking.host import Profile
from environments.lateral_thinking.prompt import ROUNDS
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.tools import NO_PUBLISHED_FUNCTIONS
from proctor.tools.readers import NOT_EXECUTED
from proctor.types import Action, Finish, FinishReason
from tests.random_calls import fuzz
from tests.tool_calls import CallingAgent, call, calls, replying, sessions_in_text

TEXT = LateralThinking()
TOOLS = LateralThinking(protocol="tools")
SAMPLE = "english-00000"


async def played(environment: LateralThinking, sample: str, *replies: Action) -> tuple[CallingAgent, Finish]:
    """A session of these replies, the last one repeated."""
    agent = replying(*replies)
    async with environment.lifespan():
        return agent, await play_to_finish(environment, sample, agent)


def ask(question: object) -> Action:
    return call("ask", question=question)


def test_the_function_is_declared_with_its_one_argument() -> None:
    (tool,) = toolset("en", "strict").tools()
    assert tool.name == "ask"
    assert tool.parameters["required"] == ["question"]
    assert tool.parameters["additionalProperties"] is False
    assert list(tool.parameters["properties"]) == ["question"]  # type: ignore[arg-type]
    (chinese,) = toolset("zh", "strict").tools()
    assert chinese.name == "ask"
    assert chinese.description != tool.description


async def test_the_first_turn_is_the_rules_and_the_story_and_an_answer_is_the_result_of_the_call() -> None:
    agent, finish = await played(TOOLS, SAMPLE, ask("Is it about the weather forecast on television?"))
    first = agent.seen[0].messages
    assert [message.role for message in first] == ["system", "user"]
    assert "`ask`" in first[0].content
    assert "The story:" in first[1].content
    assert {len(observation.tools) for observation in agent.seen} == {1}
    assert [(message.role, message.content) for message in agent.answers] == [("tool", "Irrelevant.")] * (ROUNDS - 1)
    assert finish.metrics["calls"] == finish.metrics["rounds"] == ROUNDS


async def test_the_text_protocol_is_as_it_was() -> None:
    agent, finish = await played(TEXT, SAMPLE, Action(content="Is it raining?"))
    (first,) = agent.seen[0].messages
    assert (first.role, agent.seen[0].tools) == ("user", ())
    assert "`ask`" not in first.content
    assert "calls" not in finish.metrics
    assert await sessions_in_text(TEXT, TEXT.samples()) == "850abd428a90c035"
    assert TEXT.digest() == "fb525afba209a0b4e313d315aa6b0cff"
    compat = LateralThinking(profile="compat")
    assert await sessions_in_text(compat, compat.samples()) == "be1f8513c06c4fb1"
    assert compat.digest() == "8059df46cfe737f3d5d3178962a0a200"


def test_the_protocols_have_digests_of_their_own_and_only_text_was_published() -> None:
    digests = [LateralThinking(protocol="tools", profile=profile).digest() for profile in ("strict", "compat")]
    assert len({*digests, TEXT.digest()}) == 3
    assert TOOLS.not_comparable_because() == NO_PUBLISHED_FUNCTIONS
    assert TEXT.not_comparable_because() != NO_PUBLISHED_FUNCTIONS


@pytest.mark.parametrize("profile", ["strict", "compat"])
async def test_every_policy_scores_the_same_in_both_protocols_on_every_sample(profile: Profile) -> None:
    text, tools = (LateralThinking(profile=profile, protocol=protocol) for protocol in ("text", "tools"))
    async with text.lifespan(), tools.lifespan():
        for sample in text.samples():
            for kind in ("reference", "naive", "random"):
                one, other = [
                    await play_to_finish(each, sample, PolicyAgent(getattr(each, kind)(sample)))
                    for each in (text, tools)
                ]
                assert (other.reason, other.score, other.detail) == (one.reason, one.score, one.detail)
                assert one.metrics.items() <= other.metrics.items()
                assert other.metrics["calls"] == other.metrics["rounds"]


@pytest.mark.parametrize(
    ("reply", "metric", "reason"),
    [
        (Action(content="Is it raining?"), "no_call", FinishReason.INVALID_FORMAT),
        (Action(content=""), "no_call", FinishReason.INVALID_FORMAT),
        (calls(("ask", '{"question": "Is')), "bad_arguments", FinishReason.INVALID_FORMAT),
        (call("ask"), "bad_arguments", FinishReason.INVALID_ACTION),
        (ask(" \n "), "bad_arguments", FinishReason.INVALID_ACTION),
        (ask(None), "bad_arguments", FinishReason.INVALID_ACTION),
        (call("query", question="Is it?"), "unknown_function", FinishReason.INVALID_ACTION),
    ],
)
async def test_an_unreadable_reply_is_told_and_costs_a_round(reply: Action, metric: str, reason: FinishReason) -> None:
    agent, finish = await played(TOOLS, SAMPLE, reply)
    assert (finish.reason, finish.score, finish.metrics["rounds"], finish.metrics[metric]) == (
        reason,
        0,
        ROUNDS,
        ROUNDS,
    )
    assert {message.role for message in agent.answers} == {"tool" if reply.tool_calls else "user"}
    assert all("ask" in message.content for message in agent.answers)
    compat = LateralThinking(profile="compat", protocol="tools")
    assert (await played(compat, SAMPLE, reply))[1].reason is FinishReason.TURN_LIMIT


async def test_compat_takes_a_single_argument_of_any_name() -> None:
    key = TOOLS.reference(SAMPLE)("main", []).tool_calls[0]
    other_name = call("ask", text=json.loads(key.arguments)["question"])
    expected: dict[Profile, int] = {"strict": 0, "compat": 1}
    for profile, hits in expected.items():
        environment = LateralThinking(profile=profile, protocol="tools")
        _, finish = await played(environment, SAMPLE, other_name)
        assert len(finish.detail["hits"]) == hits  # type: ignore[arg-type]


async def test_of_two_calls_the_first_is_asked_and_both_are_answered() -> None:
    agent, finish = await played(
        TOOLS, SAMPLE, calls(("ask", {"question": "Is it raining?"}), ("ask", {"question": "Why?"}))
    )
    assert [message.content for message in agent.seen[1].messages] == ["Irrelevant.", NOT_EXECUTED]
    assert (finish.metrics["rounds"], finish.metrics["extra_calls"]) == (ROUNDS, ROUNDS)


async def test_forbidden_phrases_and_hints_count_as_in_text() -> None:
    agent, finish = await played(TOOLS, SAMPLE, ask("Great job, shall we play a new game?"))
    assert (finish.reason, finish.metrics["rounds"]) == (FinishReason.INVALID_ACTION, 3)
    assert all("Go on guessing" in message.content for message in agent.answers)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(60))
async def test_random_calls_raise_nothing_and_play_no_round_too_many(seed: int) -> None:
    environment = LateralThinking(profile="compat" if seed % 2 else "strict", protocol="tools")
    async with environment.lifespan():
        _, turns = await fuzz(environment, SAMPLE, seed)
    assert turns <= ROUNDS
