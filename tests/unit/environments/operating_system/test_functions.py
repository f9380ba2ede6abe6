"""Protocol `tools`, played in the namespace engine where a session is needed."""

import json
from pathlib import Path

import pytest

from environments.operating_system.environment import OperatingSystem
from environments.operating_system.functions import toolset
from environments.operating_system.reply import MAX_ANSWER_BYTES, Bash, Commit, Invalid
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.tools import OWN_FUNCTIONS, CallReader, UnreadableCall
from proctor.tools.readers import NOT_EXECUTED
from proctor.types import Action, Finish, FinishReason
from tests.random_calls import fuzz
from tests.tool_calls import CallingAgent, call, calls, replying

TOOLS = toolset(thought_answers=False).tools()
DIGESTS = {
    "compat": "762441928f44ff96aad97d0fc62548ab",
    "strict": "8d9244c57b9226e03d4cf35dcc38d12c",
    "errata": "6c2653faee87407ff60f09f2dcccaa77",
}
"""Of protocol `text` before there was another; to be changed with the revisions alone."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two questions, and a check that prints what it got as the answer."""
    path = tmp_path / "dev.json"
    shows = {"description": "Do it.", "evaluation": {"check": 'test "$1" = "all is well"'}}
    asks = {"description": "Why?", "evaluation": {"match": "42"}}
    path.write_text(json.dumps([asks, shows]))
    return path


def world(data: Path | None = None, profile: str = "errata", protocol: str = "tools") -> OperatingSystem:
    fields = {"engine": "namespace", "profile": profile, "protocol": protocol, "data": data}
    return OperatingSystem.model_validate(fields)


async def play(environment: OperatingSystem, number: int, *replies: Action) -> tuple[Finish, CallingAgent]:
    caller = replying(*replies)
    async with environment.lifespan():
        finish = await play_to_finish(environment, environment.samples()[number], caller)
    assert all((seen.tools, seen.fresh) == (TOOLS, False) for seen in caller.seen)
    return finish, caller


def told(agent: CallingAgent) -> list[str]:
    return [message.content for message in agent.answers]


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


@pytest.mark.parametrize(("profile", "scores"), [("compat", [1.0, 1.0]), ("errata", [0.0, 0.0])])
async def test_a_finish_passes_its_thought_to_the_checks_in_compat(
    data: Path, profile: str, scores: list[float]
) -> None:
    environment = world(data, profile)
    first, _ = await play(environment, 0, call("finish_action", thought="42"))
    second, _ = await play(environment, 1, call("finish_action", thought="all is well"))
    assert [first.score, second.score] == scores
    assert {first.reason, second.reason} == {FinishReason.COMPLETED}


async def test_a_nul_in_the_answer_ends_the_session(data: Path) -> None:
    finish, _ = await play(world(data), 0, call("answer_action", answer="4\0"))
    assert (finish.reason, finish.score) == (FinishReason.INVALID_ACTION, 0.0)


async def test_7_the_first_of_two_calls_runs_and_both_are_answered(data: Path) -> None:
    two = calls(("bash_action", '{"script": "echo one"}'), ("answer_action", '{"answer": "42"}'))
    finish, caller = await play(world(data), 0, two, call("answer_action", answer="42"))
    assert told(caller) == ["The output of the OS:\n\none", NOT_EXECUTED]
    assert [message.role for message in caller.history[:2]] == ["system", "user"]
    assert (finish.reason, finish.score) == (FinishReason.COMPLETED, 1.0)
    assert (finish.metrics["calls"], finish.metrics["extra_calls"], finish.metrics["rounds"]) == (3, 1, 2)


async def test_9_malformed_arguments_are_told_and_the_session_goes_on(data: Path) -> None:
    finish, caller = await play(
        world(data), 0, calls(("bash_action", '{"script": "')), call("answer_action", answer="42")
    )
    assert told(caller)[0].startswith("The arguments of bash_action can't be read: no JSON")
    assert caller.history[2].tool_calls[0].arguments == '{"script": "'
    assert (finish.score, finish.metrics["bad_arguments"]) == (1.0, 1)


@pytest.mark.parametrize(
    ("reply", "reason", "metric"),
    [
        (Action(content="Act: answer(42)"), FinishReason.INVALID_FORMAT, "no_call"),
        (call("run", script="ls"), FinishReason.INVALID_ACTION, "unknown_function"),
        (call("bash_action", script="true"), FinishReason.TURN_LIMIT, "calls"),
    ],
)
async def test_20_a_session_ends_after_8_replies_with_what_was_wrong(
    data: Path, reply: Action, reason: FinishReason, metric: str
) -> None:
    finish, caller = await play(world(data), 0, reply)
    assert (finish.reason, finish.score, finish.metrics[metric], len(caller.seen)) == (reason, 0.0, 8, 8)
    finish, _ = await play(world(data, "compat"), 0, reply)
    assert (finish.reason, finish.score) == (FinishReason.TURN_LIMIT, 0.0)


@pytest.mark.thorough
@pytest.mark.parametrize("profile", ["compat", "errata"])
async def test_3_the_naive_policy_scores_as_in_text(profile: str) -> None:
    async def scores(protocol: str) -> list[tuple[FinishReason, float | None, float]]:
        environment = world(None, profile, protocol)
        async with environment.lifespan():
            played = [
                await play_to_finish(environment, sample, PolicyAgent(environment.naive(sample, 7)))
                for sample in environment.samples()
            ]
        return [(each.reason, each.score, each.metrics["rounds"]) for each in played]

    assert await scores("tools") == await scores("text")


@pytest.mark.parametrize("profile", DIGESTS)
def test_5_the_digest_of_text_stays_and_that_of_tools_is_another(profile: str) -> None:
    tools = OperatingSystem.model_validate({"profile": profile, "protocol": "tools"})
    assert OperatingSystem.model_validate({"profile": profile}).digest() == DIGESTS[profile] != tools.digest()


def test_scores_in_tools_compare_with_nothing_published() -> None:
    assert OperatingSystem(protocol="tools").not_comparable_because() == OWN_FUNCTIONS
    assert any("AgentBench FC" in note for note in OperatingSystem(protocol="tools").summarize([]).notes)


def test_a_published_prompt_is_refused_in_tools() -> None:
    with pytest.raises(ValueError, match=r"prompts: .* set protocol: text"):
        OperatingSystem.model_validate({"protocol": "tools", "prompts": "task.py"})


@pytest.mark.thorough
@pytest.mark.parametrize("profile", ["compat", "errata"])
@pytest.mark.parametrize("seed", range(8))
async def test_22_any_calls_are_played_to_a_finish_with_a_score(profile: str, seed: int) -> None:
    environment = world(profile=profile)
    samples = environment.samples()
    async with environment.lifespan():
        _, turns = await fuzz(environment, samples[seed % len(samples)], seed)
    assert turns <= 8
