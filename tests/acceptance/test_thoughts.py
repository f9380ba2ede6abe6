"""A closed `<think>` block at the beginning of a reply is dropped by `strict`, kept by `compat`, counted by both."""

from collections.abc import Mapping

import pytest

from proctor import registry
from proctor.environment import Agent, Environment, Policy
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.session.thoughts import without_thought
from proctor.types import Action, Finish, Observation

THOUGHT = """
<think>
Shall I say Act: finish, or Action: Operation?
```sql
SELECT 1;
```
THOUGHT: no. ACTION: look
Final Answer: [[1]] {"pick_fish": 1} #0
</think>

"""
ENGINES: Mapping[str, dict[str, str]] = {"db": {"engine": "sqlite"}, "os": {"engine": "namespace"}}


class Aloud(Agent):
    """Plays a policy, and thinks aloud before each answer."""

    def __init__(self, policy: Policy) -> None:
        self._silent = PolicyAgent(policy)
        self.replies = 0

    async def act(self, observation: Observation) -> Action:
        self.replies += 1
        action = await self._silent.act(observation)
        return action.model_copy(update={"content": THOUGHT + action.content})


def environment(name: str, profile: str) -> Environment:
    engine = {"engine": "docker"} if (name, profile) == ("os", "strict") else ENGINES.get(name, {})
    return registry.load(name).model_validate({"profile": profile, **engine})


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.docker if name == "os" else ()) for name in registry.names()]
)
async def test_strict_plays_what_follows_a_thought(name: str) -> None:
    world = environment(name, "strict")
    sample = world.samples()[0]
    reference = world.reference(sample, 1)
    assert reference is not None
    async with world.lifespan():
        silent = await play_to_finish(world, sample, PolicyAgent(reference), 1)
        aloud = Aloud(reference)
        finish = await play_to_finish(world, sample, aloud, 1)
    assert (finish.reason, finish.score, finish.metrics) == (silent.reason, silent.score, silent.metrics)
    assert finish.detail["thoughts"] == aloud.replies > 0
    assert "thoughts" not in silent.detail


class Overheard(Agent):
    """Keeps what the world is given."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.replies: list[str] = []

    async def act(self, observation: Observation) -> Action:
        action = await self._agent.act(observation)
        self.replies.append(action.content)
        return action


@pytest.mark.parametrize("name", registry.names())
async def test_compat_counts_thoughts_and_is_given_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = environment(name, "compat")
    sample, play, between = world.samples()[0], type(world).play, list[Overheard]()

    async def overheard(world: Environment, sample: str, agent: Agent, seed: int = 0) -> Finish:
        between.append(Overheard(agent))
        return await play(world, sample, between[0], seed)

    monkeypatch.setattr(type(world), "play", overheard)
    reference = world.reference(sample, 1)
    assert reference is not None
    async with world.lifespan():
        aloud = Aloud(reference)
        finish = await play_to_finish(world, sample, aloud, 1)
    assert finish.detail["thoughts"] == aloud.replies == len(between[0].replies) > 0
    assert all(reply.startswith(THOUGHT) for reply in between[0].replies)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("<think>a</think>b", "b"),
        (" \n<think>\na\n</think>\n\nb </think>", "b </think>"),
        ("<think></think>", ""),
        ("<think>never closed", "<think>never closed"),
        ("b <think>a</think>", "b <think>a</think>"),
        ("<thinking>a</thinking>b", "<thinking>a</thinking>b"),
    ],
)
def test_only_a_closed_block_at_the_beginning_is_a_thought(text: str, rest: str) -> None:
    assert without_thought(text) == rest
