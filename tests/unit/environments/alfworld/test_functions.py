"""Protocol `tools`: what function there is, and how a session with calls goes."""

from dataclasses import replace

import pytest

from environments.alfworld import environment as household
from environments.alfworld import prompt
from environments.alfworld.environment import ALFWorld
from environments.alfworld.functions import toolset
from environments.alfworld.reply import Profile
from proctor.tools import Toolset
from tests.tool_calls import sessions_in_text


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
