"""Every world says in the finish what was asked, expected and answered."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from proctor import registry
from proctor.environment import AgentStopped, policy_of
from proctor.observability.redaction import remember
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import WORDS, Finish, FinishReason, asked_and_answered
from tests.scripted_agent import Scripted

LONGEST = 300
WORLDS: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("alfworld", {"per_type": 1}),
    ("card_game", {}),
    ("db", {"engine": "sqlite"}),
    ("kg", {}),
    ("ltp", {}),
    ("mind2web", {"steps": 2}),
    ("simulbench", {}),
    ("simulbench", {"mode": "live"}),
    ("stss", {"level": "language"}),
    ("webshop", {}),
)


@pytest.mark.parametrize(("name", "fields"), WORLDS)
async def test_a_finish_tells_them(name: str, fields: Mapping[str, object], tmp_path: Path) -> None:
    kind = registry.load(name)
    cache = {"cache": tmp_path} if "cache" in kind.model_fields else {}
    world = kind.model_validate({**cache, **fields})
    sample = world.samples()[0]
    policy, stopping = policy_of(world, "reference", sample, seed=1), Scripted(AgentStopped(FinishReason.CONTEXT_LIMIT))
    assert policy is not None
    async with world.lifespan():
        right = await play_to_finish(world, sample, PolicyAgent(policy), seed=1)
        stopped = await play_to_finish(world, sample, stopping, seed=1)
    words = [right.detail[each] for each in WORDS]
    assert all(isinstance(each, str) and 0 < len(each) <= LONGEST and "\n" not in each for each in words)
    assert [stopped.detail[each] for each in WORDS[:2]] == words[:2]


def test_they_are_short_plain_and_without_secrets() -> None:
    remember("a-secret-of-this-test")
    words = asked_and_answered("a\x1b[31m\n b  c", "x" * 500, "a-secret-of-this-test", redistributable=False)
    assert words["asked"] == r"a\x1b[31m b c"
    assert words["expected"] == "x" * (LONGEST - 1) + "…"
    assert (words["answered"], words["not_redistributable"]) == ("***", True)
    assert asked_and_answered("", "", "") == {}
    assert Finish(reason=FinishReason.COMPLETED, score=1.0, detail=words).detail == words
