"""Protocol `tools`: what function there is, and how a session with calls goes."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from environments.alfworld import environment as household
from environments.alfworld import prompt
from environments.alfworld.dataset import own_games
from environments.alfworld.environment import ALFWorld
from environments.alfworld.functions import spelled, toolset
from environments.alfworld.reply import Move, NoMove, Profile, read
from proctor.session.play import play_to_finish
from proctor.tools import Toolset
from proctor.types import Action, Finish, FinishReason
from tests.tool_calls import CallingAgent, Reply, replying, sessions_in_text

PROFILES: Sequence[Profile] = ("compat", "strict")
PLAN = own_games()[0].plan


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
