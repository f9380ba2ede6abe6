"""Protocol `tools`: what function there is, and how a session with calls goes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from environments.alfworld import environment as household
from environments.alfworld import prompt
from environments.alfworld.dataset import own_games
from environments.alfworld.environment import ALFWorld
from environments.alfworld.functions import spelled, toolset
from environments.alfworld.prompt import CALLS_INSTRUCTION, ROUNDS
from environments.alfworld.reply import Move, NoMove, Profile, read
from proctor.environment import ContextLimitExceeded
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.tools import OWN_FUNCTIONS, Toolset
from proctor.tools.readers import NOT_EXECUTED
from proctor.types import Action, Finish, FinishReason
from tests.random_calls import fuzz
from tests.tool_calls import CallingAgent, Reply, calls, replying, sessions_in_text

PROFILES: Sequence[Profile] = ("compat", "strict")
PLAN = own_games()[0].plan


def take(action: object) -> Action:
    return calls(("take_action", {"action": action}))


def text(content: str) -> Action:
    return Action(content=content)


async def play(*replies: Reply, profile: Profile = "compat") -> tuple[Finish, CallingAgent]:
    agent = replying(*replies)
    return await play_to_finish(ALFWorld(profile=profile, protocol="tools"), "own-00000", agent), agent


def test_the_function_reads_what_it_writes() -> None:
    for profile in PROFILES:
        function = toolset(profile).functions[0]
        move = read("ACTION: Look", profile)
        arguments = function.write(move)
        assert arguments == {"action": "look"}
        assert function.read(arguments) == Move(action="look", written="look")
        assert spelled(function.read(arguments)) == "ACTION: look"
    assert toolset("compat").functions[0].write(NoMove(reason=FinishReason.INVALID_FORMAT)) is None
    assert spelled(NoMove(reason=FinishReason.INVALID_FORMAT)) == ""


def test_an_argument_is_compared_with_commands_as_an_action_in_a_reply() -> None:
    moves = [toolset(profile).functions[0].read({"action": '\n "Look". \nthen go'}) for profile in PROFILES]
    assert [move.action for move in moves if isinstance(move, Move)] == ['"look".', "look"]


async def test_a_session_only_adds_to_its_history_and_every_result_keeps_its_list() -> None:
    finish, agent = await play(*map(take, PLAN))
    system, task = agent.seen[0].messages
    assert (system.role, system.content, task.role) == ("system", CALLS_INSTRUCTION, "user")
    assert task.content.startswith(prompt.TASK)
    assert prompt.task_of(task.content)
    assert (finish.reason, finish.score, len(agent.seen)) == (FinishReason.COMPLETED, 1.0, len(PLAN))
    for turn, seen in enumerate(agent.seen):
        assert (seen.fresh, seen.tools) == (False, toolset("compat").tools())
        assert PLAN[turn] in prompt.listed(seen.messages[-1].content)
        assert not turn or [(m.role, m.tool_call_id) for m in seen.messages] == [("tool", f"call{turn:05}")]
    assert finish.detail["upstream_status"] == "completed"
    assert finish.metrics == {
        **{"steps": len(PLAN), "matched": 0, "refused": 0, "below_1": 0, "calls": len(PLAN)},
        **{"no_call": 0, "bad_arguments": 0, "unknown_function": 0, "extra_calls": 0, "extra_arguments": 0},
    }


async def test_of_several_calls_the_first_is_executed() -> None:
    finish, agent = await play(calls(*[("take_action", {"action": "look"})] * 3), ContextLimitExceeded())
    assert [NOT_EXECUTED in told for told in agent.told(1)] == [False, True, True]
    assert (finish.reason, finish.metrics["steps"], finish.metrics["extra_calls"]) == (
        FinishReason.CONTEXT_LIMIT, 1.0, 2.0,
    )  # fmt: skip


async def test_in_compat_a_call_of_any_name_and_argument_acts() -> None:
    reply = calls(("look_around", {"what": "look"}))
    finish, agent = await play(reply, ContextLimitExceeded())
    assert (finish.metrics["steps"], finish.metrics["unknown_function"]) == (1.0, 0.0)
    finish, agent = await play(reply, ContextLimitExceeded(), profile="strict")
    assert (finish.metrics["steps"], finish.metrics["unknown_function"]) == (0.0, 1.0)
    assert "There are: take_action." in agent.told(1)[0]


@pytest.mark.parametrize(
    ("reply", "role", "told", "upstream"),
    [
        (text("ACTION: look"), "user", "Your reply calls no function.", "agent validation failed"),
        (text(""), "user", "Your reply calls no function.", "agent validation failed"),
        (calls(("take_action", '{"action": "lo')), "tool", "can't be read: no JSON", "agent invalid action"),
        (calls(("take_action", {})), "tool", "action is missing", "agent invalid action"),
        (take(""), "tool", "Nothing happens.", "completed"),
        (take("xyzzy"), "tool", "Nothing happens.", "completed"),
    ],
)
@pytest.mark.parametrize("profile", PROFILES)
async def test_what_cannot_be_executed_costs_a_round_and_the_game_can_still_be_won(
    reply: Action, role: str, told: str, upstream: str, profile: Profile
) -> None:
    """The published code would then not call it completed: that is kept in the detail."""
    finish, agent = await play(reply, *map(take, PLAN), profile=profile)
    (message,) = agent.seen[1].messages
    assert (message.role, told in message.content) == (role, True)
    assert prompt.listed(message.content) == prompt.listed(agent.seen[0].messages[-1].content)
    assert (finish.reason, finish.score, len(agent.seen)) == (FinishReason.COMPLETED, 1.0, len(PLAN) + 1)
    assert finish.detail["upstream_status"] == upstream


async def test_three_equal_actions_in_a_row_end_a_session_as_in_text() -> None:
    finish, agent = await play(take("inventory"), take("look"))
    assert (finish.reason, len(agent.seen)) == (FinishReason.INVALID_ACTION, 4)
    finish, agent = await play(take("inventory"), take("look"), take("look"), text("hm"), take("look"))
    assert (finish.reason, len(agent.seen)) == (FinishReason.INVALID_ACTION, 5)
    finish, agent = await play(take("look"), profile="strict")
    assert (finish.reason, len(agent.seen)) == (FinishReason.TURN_LIMIT, ROUNDS["tools"])
    finish, agent = await play(take("xyzzy"), profile="strict")
    assert (finish.reason, len(agent.seen)) == (FinishReason.INVALID_ACTION, 4)


@pytest.mark.parametrize(
    ("reply", "strict", "metrics"),
    [
        (text("hm"), FinishReason.INVALID_FORMAT, {"no_call": 20}),
        (calls(("take_action", "{")), FinishReason.INVALID_FORMAT, {"bad_arguments": 20}),
        (calls(("take_action", {})), FinishReason.INVALID_ACTION, {"bad_arguments": 20}),
        (calls(("go", {})), FinishReason.INVALID_ACTION, {}),
    ],
)
async def test_a_session_without_one_readable_call_ends_at_the_limit(
    reply: Action, strict: FinishReason, metrics: Mapping[str, float]
) -> None:
    for profile, reason in zip(PROFILES, (FinishReason.TURN_LIMIT, strict), strict=True):
        finish, agent = await play(reply, profile=profile)
        assert (finish.reason, finish.score, len(agent.seen)) == (reason, 0.0, 20)
        assert {name: finish.metrics[name] for name in metrics} == metrics


@pytest.mark.thorough
@pytest.mark.parametrize("profile", PROFILES)
async def test_the_reference_wins_every_shipped_game_and_the_others_play_on(profile: Profile) -> None:
    environment = ALFWorld(profile=profile, protocol="tools")
    for sample in environment.samples():
        agent = CallingAgent(environment.reference(sample))
        assert (await play_to_finish(environment, sample, agent)).score == 1.0
    for sample in environment.samples()[::6]:
        for policy, in_text in (
            (environment.naive(sample), ALFWorld(profile=profile).naive(sample)),
            (environment.random(sample, 1), ALFWorld(profile=profile).random(sample, 1)),
        ):
            finish = await play_to_finish(environment, sample, CallingAgent(policy))
            other = await play_to_finish(ALFWorld(profile=profile), sample, PolicyAgent(in_text))
            ours, theirs = finish.detail["steps"], other.detail["steps"]
            assert isinstance(ours, list)
            assert isinstance(theirs, list)
            assert ours == theirs[: ROUNDS["tools"]]


def test_the_published_prompt_goes_with_text_alone() -> None:
    with pytest.raises(ValueError, match="remove it, or set protocol: text"):
        ALFWorld(protocol="tools", prompts="alfworld")


def test_scores_with_own_functions_compare_with_nothing_published_and_say_whose_words_they_heard() -> None:
    environment = ALFWorld(protocol="tools")
    assert environment.not_comparable_because() == OWN_FUNCTIONS
    assert (environment.max_turns, ALFWorld().max_turns) == (20, 35)
    assert "function" in environment.summarize([]).notes[0]
    assert "examples" in ALFWorld().summarize([]).notes[0]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("profile", "digest", "sessions"),
    [
        ("compat", "f67052121b39ee17e292bf7e45aa3597", "9149bfaa4905bab3"),
        ("strict", "e42672f34804eb0183fecc65b1fc42dc", "f74137366b27e3c4"),
    ],
)
async def test_text_is_as_it_was_before_there_were_functions(profile: Profile, digest: str, sessions: str) -> None:
    """A run of then goes on. The values change with the shipped games, and where the revision is raised."""
    environment = ALFWorld(profile=profile)
    assert environment.digest() == digest
    mixed = ("ACTION: look", "ACTION: go to the moon", "action: **inventory**.", "ACTION: look")
    assert (
        await sessions_in_text(environment, environment.samples(), mixed, ["hm"], ["ACTION:"], ["ACTION: look"])
        == sessions
    )


def test_the_digest_holds_instruction_and_function(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = ALFWorld(protocol="tools")
    digests = [environment.digest(), ALFWorld().digest(), ALFWorld(profile="strict", protocol="tools").digest()]
    monkeypatch.setattr(prompt, "CALLS_INSTRUCTION", "Play.")
    digests.append(environment.digest())
    monkeypatch.undo()
    described = replace(toolset("compat").functions[0], description="Acts.")
    monkeypatch.setattr(household, "toolset", lambda profile: Toolset((described,)))
    digests.append(environment.digest())
    assert len({*digests}) == 5


@pytest.mark.thorough
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("seed", range(60))
async def test_whatever_is_called_every_session_ends_in_time_with_a_score(profile: Profile, seed: int) -> None:
    environment = ALFWorld(profile=profile, protocol="tools")
    samples = environment.samples()
    _, turns = await fuzz(environment, samples[seed % len(samples)], seed)
    assert turns <= ROUNDS["tools"]
